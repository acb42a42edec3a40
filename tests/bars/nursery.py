"""A warm process that forks owners: a child begins its life within milliseconds, and can be killed at any moment of it.

The nursery reads a line of JSON per child, names what the child is to do, and answers with the child's pid.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).parents[2]


class Child:
    """A process that is not ours to wait for; its pidfd says when it is gone, and reaches no other process."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._fd = os.pidfd_open(pid)

    async def gone(self) -> None:
        loop, over = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._fd, over.set)
        try:
            await over.wait()
        finally:
            loop.remove_reader(self._fd)

    async def frozen(self) -> None:
        """Wait until it has stopped itself, or is gone."""
        with suppress(FileNotFoundError):
            while Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
                await asyncio.sleep(0.01)

    def thaw(self) -> None:
        """Let it go on."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._fd, signal.SIGCONT)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._fd, signal.SIGKILL)

    def close(self) -> None:
        os.close(self._fd)


class Nursery:
    """Children of a module beside this one: its ``warm()`` is called once, its ``live(about)`` in each child."""

    def __init__(self, module: str) -> None:
        command = [sys.executable, "-m", "tests.bars.nursery", module]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self._one = threading.Lock()

    def __enter__(self) -> Self:
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "warm\n":
            raise RuntimeError("the nursery did not start")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()

    def born(self, about: Mapping[str, Any]) -> Child:
        """A new child."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with self._one:
            self._process.stdin.write(json.dumps(about) + "\n")
            return Child(int(self._process.stdout.readline()))


def serve(work: Callable[[Mapping[str, Any]], None]) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the children
    print("warm", flush=True)
    while line := sys.stdin.readline():
        assert threading.active_count() == 1, "a fork keeps no thread"
        pid = os.fork()
        if pid:
            print(pid, flush=True)
            continue
        os.dup2(2, 1)
        try:
            work(json.loads(line))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)


if __name__ == "__main__":
    grown = import_module(f"tests.bars.{sys.argv[1]}")
    grown.warm()
    serve(grown.live)
