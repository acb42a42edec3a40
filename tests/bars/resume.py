"""How soon a reader who comes back at the end of a long run sees something: `python tests/bars/resume.py`.

A run of 100,000 events in a SQLite journal, still going on, with a snapshot stored 500 events before its end. Twenty
times each, over a fresh connection: from the connect to the first byte, and to the newest frame there is. The exit code
is 1 when the median of a first byte is over 50 ms.
"""

from __future__ import annotations

import asyncio
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

EVENTS, BEHIND, TIMES = 100_000, 500, 20
BAR_MS = 50
RUN, HOST = "run-of-the-bar", "127.0.0.1"
CASES = {"with its cursor at the end": f"after_seq={EVENTS - 1}", "from a snapshot": "snapshot=1"}


async def serve() -> None:
    import uvicorn

    from agents_progress.events import Envelope
    from agents_progress.journal import open_journal
    from agents_progress.server import runs_app
    from agents_progress.server.principal import Principal
    from agents_progress.view import RunView

    def envelope(seq: int, type_: str, payload: dict[str, Any]) -> Envelope:
        return Envelope(f"{RUN}:{seq}", RUN, seq, type_, "2026-10-07T08:00:01.250Z", payload)

    start = {"agent": "Clerk", "task_id": "task", "parent": None, "resumed_from": None}
    log = [envelope(1, "run.started", start)]
    log += [
        envelope(seq, "text.delta", {"item_id": f"msg_{seq // 5000}", "index": seq % 5000, "text": "some words "})
        for seq in range(2, EVENTS + 1)
    ]
    with tempfile.TemporaryDirectory() as folder:
        journal = open_journal(f"sqlite:///{Path(folder, 'runs.db')}")
        view = RunView(RUN)
        for first in range(0, EVENTS, 1000):
            await journal.append(log[first : first + 1000])
        for each in log[:-BEHIND]:
            view.feed(each)
        await journal.keep_snapshot(RUN, view.snapshot())
        app = runs_app(journal, lambda request, action, run: Principal("bench"))
        server = uvicorn.Server(uvicorn.Config(app, host=HOST, port=0, log_level="warning", ws="none"))
        serving = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        print(server.servers[0].sockets[0].getsockname()[1], flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        app.state.service.hub.say_bye()
        server.should_exit = True
        await serving
        await journal.close()


def resume(port: int, query: str) -> tuple[float, float, int]:
    """Milliseconds to the first byte and to the last frame there is, and the bytes read."""
    request = f"GET /runs/{RUN}/events?{query} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    start = time.perf_counter()
    with socket.create_connection((HOST, port)) as sock:
        sock.sendall(request)
        seen = sock.recv(1)
        first = time.perf_counter() - start
        while b"\nid: %d\n" % EVENTS not in seen or not seen.endswith(b"\n\n\r\n"):
            seen += sock.recv(1 << 20)
        return first * 1000, (time.perf_counter() - start) * 1000, len(seen)


def main() -> int:
    if sys.argv[1:] == ["--serve"]:
        asyncio.run(serve())
        return 0
    command = [sys.executable, __file__, "--serve"]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdin and server.stdout
    missed = False
    try:
        port = int(server.stdout.readline())
        for name, query in CASES.items():
            resume(port, query)
            tries = [resume(port, query) for _ in range(TIMES)]
            first, whole = (statistics.median(figures) for figures in list(zip(*tries, strict=True))[:2])
            missed |= first > BAR_MS
            mark = "   <-- OVER THE BAR" if first > BAR_MS else ""
            said = f"{name:28} first byte {first:5.1f} ms (at most {BAR_MS}), all of it {whole:5.1f} ms"
            print(f"{said}, {tries[0][2] / 1024:.0f} KB; load {os.getloadavg()[0]:.1f}{mark}", flush=True)
        server.communicate("\n", timeout=20)
    finally:
        server.kill()
        server.wait()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
