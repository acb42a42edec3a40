"""100,000 requests to every route of a server of runs: `tests/bars/fuzz_routes.py [--inputs N] [--seed N]`.

Methods, paths, queries, headers, cursors and bodies are drawn from what fits and from what does not, as a caller of one
tenant or as nobody. No exception, no 500, no record of an error; every answer is of the documented form; nothing of the
other tenant is in any answer, and nothing of it was changed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from agents import Agent, Runner, RunResultStreaming, set_tracing_disabled
from starlette.requests import Request

from agents_progress import progress
from agents_progress.bridges.ag_ui import AgUI
from agents_progress.bridges.vercel import Vercel
from agents_progress.journal import MemoryJournal, Origin
from agents_progress.journal.base import Journal
from agents_progress.server import Limits, Principal, runs_app
from agents_progress.server.pages import MEDIA_TYPES, PAGE_HEADERS
from agents_progress.server.refusals import REFUSALS
from agents_progress.testing import ScriptedAPI, text, turn
from agents_progress.testing.contract.logs import Log

SECRETS: Final = (b"bob", b"swordfish", b"south")
"""Of the other tenant: its owner, a word of its runs, its own name. No input holds them where an answer repeats it."""

OWN: Final = ["ada-live", "ada-paused", "ada-done", "ada-pruned"]
FOREIGN: Final = ["bob-live", "bob-paused", "bob-done"]
DIGEST: Final = "ab" * 32
STATUSES: Final = {status for status, _ in REFUSALS.values()} - {500, 502, 503} | {200, 201, 202, 204, 304, 308}

ODD: Final = ["", " ", "\0", "é", "流", "🧭", "\ufeff", "\u2028", "a" * 65, "a" * 300, "9" * 16, "9" * 40, "\x1b[2J"]
ODD += ".. % %2e -1 0 1 NaN 1e3 ٣ +1 0x1 1.0 null true [] {} ' \" \\ <script>".split()
PATHS: Final = "/runs /runs/{} /runs/{}/events /runs/{}/snapshot /runs/{}/cancel /runs/{}/interactions/{}".split()
CHATS: Final = ["/ag-ui", "/api/chat"]
PATHS += [f"{chat}{rest}" for chat in CHATS for rest in ("", "", "/{}/stream", "/{}/cancel")]
NO_PATHS: Final = ["", *"/ /{} /livez /readyz /runs/ /runs/{}/ /runs/{}/{} /runs/{}/interactions //runs".split()]
METHODS: Final = "HEAD PUT DELETE PATCH OPTIONS TRACE CONNECT get G PROPFIND é".split()
NAMES: Final = "status task_id limit label.chat label. label.a%20b after_seq snapshot token x owner".split()
VALUES: Final = ["running", "done", "waiting", "ada-done", "shared", "200", "201", "c9", *ODD]
HEADERS: Final = "origin sec-fetch-site host if-none-match idempotency-key last-event-id x-forwarded-for accept".split()
HEADERS += "accept-encoding content-encoding range cookie expect upgrade content-length transfer-encoding".split()
HEADER_VALUES: Final = 'http://runs.test http://evil.test null same-origin cross-site runs.test * "4" k1 k2'.split()
HEADER_VALUES += ["gzip", "identity", "100-continue", "websocket", "bytes=0-1", *ODD]
KINDS: Final = ["text/plain", "application/json; charset=utf-16", "application/json;charset=utf-8", "", "multipart/x"]
FIELDS: Final = "function arguments task_id labels title run_id mode decision reason digest actor x".split()


@progress
def quick(question: str = "?", count: int = 1) -> RunResultStreaming:
    return Runner.run_streamed(Agent("A", model=ScriptedAPI([turn(text("5 EUR"))]).model()), question)


def authorize(request: Request, action: Any, run: Any) -> Principal | None:
    known = request.headers.get("authorization") == "Bearer ada"
    return Principal("ada", owner="ada", tenant="north") if known else None


async def stocked() -> Journal:
    """Runs of two tenants, in every state; two of them belong to tasks of one name."""
    journal = MemoryJournal()

    async def write(log: Log, sealed: bool = True) -> None:
        owner = log.run_id.partition("-")[0]
        tenant = {"ada": "north", "bob": "south"}[owner]
        labels = {"chat": "c9" if owner == "ada" else "swordfish"}
        labels |= {f"{bridge}.conversation": "c1" for bridge in ("ag-ui", "vercel")}
        await journal.append(log.envelopes, origin=Origin(owner, tenant, labels))
        if sealed:
            await journal.seal(log.run_id)

    for owner, said in (("ada", "hi"), ("bob", "swordfish")):

        def begun(name: str, task_id: str | None = None, owner: str = owner) -> Log:
            return Log(f"{owner}-{name}").start(task_id=task_id or f"{owner}-{name}")

        question = {"interaction_id": "ask-1", "call_id": "c1", "tool": said, "title": said, "digest": DIGEST}
        await write(begun("live").say("text.delta", item_id="m", index=0, text=said).request(), sealed=False)
        await write(begun("paused", "shared").request(name=said).say("approval.wait", **question).end("paused"))
        await write(begun("done").say("text.delta", item_id="m", index=0, text=said).end(final_output=said))
        await write(begun("pruned").say("text.delta", item_id="m", index=0, text=said).end(final_output=said))
        await journal.prune(f"{owner}-pruned", 2)
    await write(Log("bob-later").start(task_id="shared").end(final_output="swordfish"))
    return journal


@dataclass
class Input:
    """One request, as a server would hand it over. A chunk that is None hangs up; one that stalls never ends."""

    method: str
    path: str
    query: bytes
    headers: list[tuple[bytes, bytes]]
    chunks: list[bytes | None]
    stalls: bool = False


@dataclass
class Output:
    """What came back."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class Author:
    """Draws requests: nearly right ones, so that they get far, with something odd about most of them."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def maybe(self, share: float) -> bool:
        return self.chance.random() < share

    def draw(self) -> Input:
        choose = self.chance.choice
        pattern = choose(PATHS) if self.maybe(0.85) else choose(NO_PATHS)
        path = pattern
        while "{}" in path:
            place = "interactions/{}" in path and path.count("{}") == 1
            path = path.replace("{}", self.conversation() if path.startswith(tuple(CHATS)) else self.segment(place), 1)
        post = "cancel" in path or "interactions" in path or path in CHATS or (path == "/runs" and self.maybe(0.5))
        method = choose(METHODS) if self.maybe(0.08) else "POST" if post != self.maybe(0.05) else "GET"
        headers, chunks = self.headers(), list[bytes | None]()
        if method == "POST" or self.maybe(0.02):
            kind = choose(KINDS) if self.maybe(0.06) else "application/json"
            headers.append((b"content-type", kind.encode()))
            chunks = self.chunks(self.body(path))
        return Input(method, path, self.query(), headers, chunks, stalls=bool(chunks) and self.maybe(0.003))

    def segment(self, interaction: bool) -> str:
        if interaction and self.maybe(0.6):
            return "ask-1"
        pool = OWN if self.maybe(0.5) else FOREIGN if self.maybe(0.5) else ODD
        return self.chance.choice(pool)

    def conversation(self) -> str:
        return self.chance.choice(ODD) if self.maybe(0.2) else self.chance.choice(["c1", "c2", "c3"])

    def query(self) -> bytes:
        if self.maybe(0.6):
            return b""
        if self.maybe(0.05):
            return self.chance.randbytes(self.chance.randrange(30))
        pairs = [(self.chance.choice(NAMES), self.chance.choice(VALUES)) for _ in range(self.chance.randrange(1, 4))]
        return "&".join(f"{name}={value}" for name, value in pairs).encode("utf-8", "surrogatepass")

    def headers(self) -> list[tuple[bytes, bytes]]:
        who = (
            "Bearer ada"
            if self.maybe(0.9)
            else self.chance.choice(["", "Bearer", "Bearer é", "Basic ada", "bearer ada"])
        )
        found = [(b"host", b"runs.test"), (b"authorization", who.encode())]
        for _ in range(self.chance.choice([0, 0, 1, 1, 2, 3])):
            value = self.chance.choice(HEADER_VALUES).encode() if self.maybe(0.9) else self.chance.randbytes(9)
            found.append((self.chance.choice(HEADERS).encode(), value))
        return found

    def body(self, path: str) -> bytes:
        if self.maybe(0.1):
            return self.chance.choice(
                [b"", b"{", b"[]", b"null", b"[" * 999, b'{"a":' * 99, b"\xff", b" " * 3000, b'{"a": 1e999}']
            )
        right: dict[str, Any] = {"arguments": {"question": "?"}} if path == "/runs" else {}
        if "interactions" in path:
            right = {"decision": self.chance.choice(["approve", "reject"]), "digest": DIGEST}
        elif "cancel" in path and self.maybe(0.5):
            right = {"mode": self.chance.choice(["immediate", "after_turn"])}
        elif path in CHATS:
            right = self.request(path)
        for _ in range(self.chance.choice([0, 0, 1, 2])):
            right[self.chance.choice([*FIELDS, *ODD])] = self.value(3)
        body = bytearray(json.dumps(right, ensure_ascii=self.maybe(0.5)).encode("utf-8", "surrogatepass"))
        for _ in range(self.chance.choice([0, 0, 0, 1, 3])):
            body[self.chance.randrange(len(body))] = self.chance.randrange(256)
        return bytes(body)

    def request(self, path: str) -> dict[str, Any]:
        """A message, or an answer, as a front end of another protocol sends it."""
        name, approved = f"{self.segment(interaction=False)}/ask-1/{DIGEST}", self.maybe(0.5)
        key = self.chance.choice(["k1", "k2", "k3", *ODD])
        answers = self.maybe(0.5)
        if path == "/ag-ui":
            message = {"id": "u1", "role": "user", "content": "hi"}
            right = {"threadId": self.conversation(), "runId": key, "messages": [message], "tools": [], "context": []}
            resume = [{"interruptId": name, "status": "resolved", "payload": {"approved": approved}}]
            return {**right, "state": {}, "forwardedProps": {}, **({"resume": resume} if answers else {})}
        approval = {"id": name, "approved": approved}
        call = {
            "type": "dynamic-tool",
            "toolName": "hi",
            "toolCallId": "c1",
            "state": "approval-responded",
            "input": {},
        }
        said = {"id": key, "role": "user", "parts": [{"type": "text", "text": "hi"}]}
        answer = {"id": key, "role": "assistant", "parts": [{**call, "approval": approval}]}
        trigger = self.chance.choice(["submit-message", "submit-message", "regenerate-message", *ODD[:3]])
        return {"id": self.conversation(), "trigger": trigger, "messages": [answer if answers else said]}

    def value(self, depth: int) -> Any:
        choose = self.chance.choice
        if depth and self.maybe(0.3):
            return {choose(ODD): self.value(depth - 1) for _ in range(self.chance.randrange(3))}
        if depth and self.maybe(0.2):
            return [self.value(depth - 1) for _ in range(self.chance.randrange(3))]
        return choose([None, True, 0, -1, 2**70, 1.5, "ada-done", "approve", "shared", DIGEST, "quick", *ODD])

    def chunks(self, body: bytes) -> list[bytes | None]:
        at = sorted(self.chance.choices(range(len(body) + 1), k=self.chance.choice([0, 0, 1, 3])))
        pieces: list[bytes | None] = [body[start:end] for start, end in zip([0, *at], [*at, len(body)], strict=True)]
        if self.maybe(0.02):
            pieces[-1] = None  # it hangs up before the end
        return pieces


async def answered(app: Any, given: Input) -> Output:
    """What the app sends for a request, as a server would see it. A feed is left after its first frames."""
    out, frames_came = Output(), asyncio.Event()
    left = list(given.chunks)

    async def receive() -> dict[str, Any]:
        if left:
            if (chunk := left.pop(0)) is None:
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": chunk, "more_body": bool(left) or given.stalls}
        if not given.chunks and not out.status:
            return {"type": "http.request", "body": b"", "more_body": False}
        await frames_came.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            assert not out.status, "an answer begins once"
            out.status = message["status"]
            out.headers = {name.decode(): value.decode("latin-1") for name, value in message["headers"]}
        else:
            out.body += message.get("body", b"")
            frames_came.set()

    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http", "root_path": ""}
    scope |= {"method": given.method, "path": given.path, "raw_path": given.path.encode(), "query_string": given.query}
    scope |= {"headers": given.headers, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80)}
    async with asyncio.timeout(20):
        await app(scope, receive, send)
    return out


POLICY: Final = PAGE_HEADERS["content-security-policy"]


def wrong(given: Input, out: Output) -> str | None:
    """What is wrong with an answer, None when it is as documented."""
    if None in given.chunks and not out.status:
        return None  # who hung up is told nothing
    if out.status not in STATUSES:
        return f"status {out.status}"
    if any(secret in out.body or secret in repr(out.headers).encode() for secret in SECRETS):
        return "something of the other tenant"
    if any(name.startswith("access-control-") for name in out.headers):
        return "CORS was opened"
    return _wrong_form(given, out)


def _wrong_form(given: Input, out: Output) -> str | None:
    if out.status == 308:
        return None if not given.path and out.headers.get("location") == ".//" else "sent elsewhere"
    if out.status in (204, 304):
        return "a body" if out.body else None
    if out.headers.get("content-type", "").startswith("text/event-stream"):
        begins = (b"id: ", b": ") if "x-cursor" in out.headers else (b"retry: ",)
        return None if out.status == 200 and (not out.body or out.body.startswith(begins)) else "no feed"
    if out.headers.get("content-type") in MEDIA_TYPES.values():
        return None if out.status == 200 and out.headers.get("content-security-policy") == POLICY else "no page"
    if out.headers.get("content-type") != "application/json":
        return f"content-type {out.headers.get('content-type')}"
    answer = json.loads(out.body)
    if out.status < 400 or given.path in ("/livez", "/readyz"):
        return None if isinstance(answer, dict) else "no object"
    error = answer["error"]
    return None if REFUSALS[error["code"]][0] == out.status and error["message"] else "another status than its code has"


class Errors(logging.Handler):
    """Records of errors: nothing a caller sends makes one."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


def _question(body: Mapping[str, Any]) -> dict[str, Any]:
    return {"question": "hi"}


async def fuzz(inputs: int, seed: int) -> tuple[list[str], Counter[str]]:
    """The faults that were found, and how often each answer was given."""
    journal, author, errors = await stocked(), Author(seed), Errors()
    limits = Limits(body_bytes=2000, body_s=0.05, answer_s=0.001, runs_per_owner=10_000)
    bridges = [AgUI(quick, arguments=_question), Vercel(quick, major=7, arguments=_question)]
    app = runs_app(journal, authorize, functions=[quick], bridges=bridges, limits=limits)
    before = {run_id: await journal.read(run_id, 2 * ("pruned" in run_id)) for run_id in (*FOREIGN, "bob-later")}
    faults, seen = list[str](), Counter[str]()
    logging.getLogger("agents_progress").addHandler(errors)
    try:
        async with app.router.lifespan_context(app):
            for number in range(inputs):
                given = author.draw()
                try:
                    out = await answered(app, given)
                    fault = wrong(given, out)
                except Exception as error:
                    fault, out = f"{error!r}", Output()
                seen[str(out.status)] += 1
                if fault or errors.said:
                    faults.append(f"input {number} of seed {seed}: {fault or errors.said}: {given}: {out.body[:200]!r}")
                    errors.said.clear()
    finally:
        logging.getLogger("agents_progress").removeHandler(errors)
    after = {run_id: await journal.read(run_id, 2 * ("pruned" in run_id)) for run_id in before}
    if before != after or await journal.requests(FOREIGN):
        faults.append("the runs of the other tenant were changed")
    return faults, seen


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    chosen = parser.parse_args(arguments)
    set_tracing_disabled(True)
    began = time.monotonic()
    faults, seen = asyncio.run(fuzz(chosen.inputs, chosen.seed))
    for fault in faults[:10]:
        print(fault)
    print(
        f"seed {chosen.seed}: {chosen.inputs:,} requests, {len(faults)} faults, "
        f"{time.monotonic() - began:.0f} s; {dict(sorted(seen.items()))}"
    )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
