"""``serve``: one decorated function as a service on loopback, its token, its names, and its way out on a signal."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import code, envelopes, feed, frames
from staging import stored

from agents_progress.errors import NotServable, UsageError
from agents_progress.journal import open_journal, redacted
from agents_progress.server.serve import INTERRUPTED, STOPPED, Serving, serve
from agents_progress.targets import named

FUNCTIONS = """
import asyncio
from pathlib import Path
from agents import Runner, set_tracing_disabled
from agents_progress import progress
from agents_progress.server import Principal
from agents_progress.testing import ScriptedAPI, text, turn, wait
from agents import Agent

set_tracing_disabled(True)
plain = 42
TASKS = []

@progress
def quick(question: str = "?"):
    return Runner.run_streamed(Agent("A", model=ScriptedAPI([turn(text("5 EUR"))]).model()), question)

@progress
def asks(question: str, *, amount: int, note: str = "it's"):
    return quick._function(f"{question} {amount} {note}")

@progress
async def held():
    gate = asyncio.Event()
    return Runner.run_streamed(Agent("A", model=ScriptedAPI([turn(text("a"), wait(gate), text("b"))]).model()), "go")

@progress
async def brief():
    gate = asyncio.Event()
    async def until_told():
        while not Path("go on").exists():
            await asyncio.sleep(0.02)
        gate.set()
    TASKS.append(asyncio.create_task(until_told()))
    return Runner.run_streamed(Agent("A", model=ScriptedAPI([turn(text("a"), wait(gate), text("b"))]).model()), "go")

def undecorated():
    return None

def everybody(request, action, run):
    return Principal("somebody", owner="somebody")
"""

MAIN = """
import sys
from functools import partial
from agents_progress.server.serve import Serving, serve
sys.exit(serve(Serving(**eval(sys.argv[1])), partial(print, flush=True)))
"""


class Service:
    """A service in a process of its own, and what it said."""

    def __init__(self, process: Process, said: list[str]) -> None:
        self.process = process
        self.said = said
        self.url = re.search(r"https?://\S+:\d+", said[0]).group()  # type: ignore[union-attr]
        token = re.search(r"token, shown this once: (\S+)", "\n".join(said))
        self.token = token[1] if token else None

    def client(self, **headers: str) -> httpx.AsyncClient:
        headers = {"authorization": f"Bearer {self.token}", **headers}
        return httpx.AsyncClient(base_url=self.url, headers=headers, timeout=20)

    async def signalled(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def ended(self) -> tuple[int, str]:
        """Its exit code, and what it said on the error stream."""
        async with asyncio.timeout(30):
            _, errors = await self.process.communicate()
        return self.process.returncode or 0, errors.decode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(FUNCTIONS, encoding="utf-8")
    return tmp_path


@asynccontextmanager
async def served(folder: Path, function: str = "quick", **more: Any) -> AsyncIterator[Service]:
    chosen = {"target": f"shop:{function}", "journal": "memory://", "port": 0, **more}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", MAIN, repr(chosen), cwd=folder, stdout=PIPE, stderr=PIPE, env={**os.environ}
    )
    try:
        said: list[str] = []
        async with asyncio.timeout(30):
            assert process.stdout is not None
            while not said or "curl" not in said[-1]:
                line = (await process.stdout.readline()).decode()
                assert line, (await process.communicate())[1].decode()
                said.append(line)
        yield Service(process, said)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def test_a_function_is_a_service_that_shows_its_address_and_its_token_once(folder: Path) -> None:
    async with served(folder) as service, service.client() as client:
        assert service.said[0].startswith(f"serving shop:quick at {service.url}/ (open it in a browser)")
        assert (await client.get("/")).headers["content-type"].startswith("text/html")
        assert "".join(service.said).count(service.token or "?") == 2, "by itself, and in the command"
        assert len(service.token or "") >= 43
        answer = await client.post("/runs", json={"arguments": {"question": "2+3?"}})
        assert answer.status_code == 201
        found = envelopes(await feed(client, f"{answer.headers['location']}/events"))
        assert found[-1]["payload"]["final_output"] == "5 EUR"
        await service.signalled(signal.SIGTERM)
        assert await service.ended() == (STOPPED, "")


@pytest.mark.parametrize("function", ["quick", "asks"])
async def test_the_command_that_is_printed_starts_a_run_as_it_stands(folder: Path, function: str) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    async with served(folder, function) as service, service.client() as client:
        process = await asyncio.create_subprocess_shell(service.said[-1], stdout=PIPE, stderr=PIPE)
        out, errors = await process.communicate()
        assert process.returncode == 0, errors.decode()
        run_id = json.loads(out)["run_id"]
        found = envelopes(await feed(client, f"/runs/{run_id}/events"))
        assert found[-1]["payload"]["final_output"] == "5 EUR"


async def test_without_the_token_nothing_but_the_probes_is_answered(folder: Path) -> None:
    async with served(folder) as service:
        async with httpx.AsyncClient(base_url=service.url) as nobody:
            assert (await nobody.get("/livez")).status_code == 200
            assert (await nobody.get("/readyz")).status_code == 200
            for wrong in ("", "Bearer", "Bearer x", f"Basic {service.token}", f"Bearer  {service.token}", "Bearer é"):
                answer = await nobody.get("/runs", headers={b"authorization": wrong.encode()})
                assert (answer.status_code, code(answer)) == (401, "unauthenticated")
            answer = await nobody.get("/runs", params={"token": service.token or ""})
            assert (answer.status_code, code(answer)) == (400, "token_in_url")


async def test_a_service_answers_to_its_own_name_and_to_nothing_that_was_forwarded(folder: Path) -> None:
    async with served(folder) as service, service.client() as client:
        port = service.url.rpartition(":")[2]
        for host, status in (
            (f"localhost:{port}", 200),
            (f"127.0.0.1:{port}", 200),
            (f"rebound.test:{port}", 421),
            ("127.0.0.1", 421),
            (f"127.0.0.1:{port}.rebound.test", 421),
        ):
            assert (await client.get("/runs", headers={"host": host})).status_code == status, host
        assert code(await client.get("/livez", headers={"host": "rebound.test"})) == "wrong_host"
        assert code(await client.get("/runs", headers={"x-forwarded-for": "10.0.0.1"})) == "forwarded"
        assert "server" not in (await client.get("/livez")).headers


async def test_the_first_signal_lets_a_run_end_and_tells_readers_to_come_back(folder: Path) -> None:
    async with served(folder, "brief", journal=f"sqlite:///{folder}/runs.db") as service, service.client() as client:
        run_id = (await client.post("/runs", json={})).json()["run_id"]
        async with client.stream("GET", f"/runs/{run_id}/events") as response:
            chunks = response.aiter_raw()
            await anext(chunks)
            await service.signalled(signal.SIGTERM)
            rest = b"".join([chunk async for chunk in chunks])
        assert b"event: bye" in rest
        assert (await client.get("/readyz")).status_code == 503
        (folder / "go on").touch()
        assert await service.ended() == (STOPPED, "")
    journal = open_journal(f"sqlite:///{folder}/runs.db")
    assert (await stored(journal, run_id)).ending["outcome"] == "succeeded"
    (row,) = await journal.runs()
    assert row.sealed
    await journal.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_run_that_does_not_end_is_cancelled_by_the_shutdown(folder: Path, number: signal.Signals) -> None:
    url = f"sqlite:///{folder}/runs.db"
    async with served(folder, "held", journal=url, drain_s=0.2) as service, service.client() as client:
        run_id = (await client.post("/runs", json={})).json()["run_id"]
        await service.signalled(number)
        assert await service.ended() == (STOPPED, "")
    journal = open_journal(url)
    ending = (await stored(journal, run_id)).ending
    assert (ending["outcome"], ending["requested_by"]) == ("cancelled", "shutdown")
    await journal.close()


async def test_the_second_signal_does_not_wait(folder: Path) -> None:
    async with served(folder, "held", drain_s=60.0) as service, service.client() as client:
        run_id = (await client.post("/runs", json={})).json()["run_id"]
        async with client.stream("GET", f"/runs/{run_id}/events") as response:
            await service.signalled(signal.SIGINT)
            assert (await frames(response))[-1].event == "bye"  # it has heard the first one
            await service.signalled(signal.SIGINT)
            assert (await service.ended())[0] == INTERRUPTED


async def test_whoever_opens_a_service_to_others_decides_who_they_are(folder: Path) -> None:
    more = {"host": "0.0.0.0", "hosts": ["127.0.0.1"], "authorize": "shop:everybody"}
    async with served(folder, **more) as service:
        assert service.token is None
        assert service.url.startswith("http://127.0.0.1:")  # 0.0.0.0 would not be answered
        assert any(line.startswith("warning: without TLS") for line in service.said)
        async with httpx.AsyncClient(base_url=service.url) as anybody:
            assert (await anybody.post("/runs", json={})).status_code == 201


# What is not served.


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "shop", raising=False)
    return folder


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("shop", "write module:function"),
        ("shop:", "write module:function"),
        (":quick", "write module:function"),
        ("no_shop:quick", "there is no module no_shop"),
        ("shop.inner:quick", "there is no module shop.inner"),
        ("shop:slow", "has no slow"),
        ("shop:undecorated", "put @progress over"),
        ("shop:plain", "is a int"),
        ("..:quick", "write module:function"),
        ("shop py:quick", "write module:function"),
    ],
)
def test_what_cannot_be_served_is_said_before_anything_is_bound(here: Path, target: str, why: str) -> None:
    with pytest.raises(NotServable, match=re.escape(why)):
        serve(Serving(target), print)


def test_an_import_error_inside_the_module_keeps_its_own_words(here: Path) -> None:
    (here / "broken.py").write_text("import no_such_package\n", encoding="utf-8")
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        named("broken:f")


def test_other_machines_see_nothing_without_an_authorize_and_a_name(here: Path) -> None:
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.test"):
        with pytest.raises(UsageError, match="--authorize"):
            serve(Serving("shop:quick", host=host), print)
    with pytest.raises(UsageError, match="--allow-host"):
        serve(Serving("shop:quick", host="0.0.0.0", port=0, authorize="shop:everybody"), print)


def test_a_port_that_is_taken_is_an_os_error_of_its_own_kind(here: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(UsageError, match="choose another --port"):
            serve(Serving("shop:quick", journal="memory://", port=taken.getsockname()[1]), print)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("memory://", "memory://"),
        ("sqlite:///runs.db", "sqlite:///runs.db"),
        ("sqlite:////data/a@b.db", "sqlite:////data/a@b.db"),
        ("postgresql://u:hunter2@db:5432/runs?sslmode=require", "postgresql://db:5432/runs"),
        ("postgresql://u:hun@ter2@db/runs", "postgresql://db/runs"),
        ("postgresql://u:hunter2/@db/runs", "postgresql://db/runs"),
        ("postgresql://u:hunter2?@db/runs", "postgresql://***"),
        ("postgresql://db/runs?password=hunter2", "postgresql://db/runs"),
        ("postgresql://db/runs?user=a@b&password=hunter2", "postgresql://***"),
        ("redis://:hunter2@r:6379/0", "redis://r:6379/0"),
        ("u:hunter2@db/runs", "***"),
        ("hunter2", "***"),
    ],
)
def test_a_journal_is_shown_without_what_is_secret_in_its_url(url: str, shown: str) -> None:
    assert redacted(url) == shown


def test_a_certificate_that_cannot_be_read_is_said_before_the_address(here: Path) -> None:
    said: list[str] = []
    with pytest.raises(OSError, match="No such file"):
        serve(Serving("shop:quick", journal="memory://", port=0, certificate="no.pem", key="no.key"), said.append)
    assert said == []


@pytest.mark.parametrize(
    ("module", "missing"), [("agents_progress.server", "starlette"), ("agents_progress.server.serve", "uvicorn")]
)
def test_a_missing_extra_is_named(module: str, missing: str) -> None:
    code = f"""
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "{missing}":
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Refuse())
try:
    import {module}
except ImportError as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=True)
    assert done.stdout.startswith("ServerExtraMissing")
    assert "pip install 'agents-progress[server]'" in done.stdout
