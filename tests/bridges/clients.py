"""The front ends at work: one conversation in Node, or on a page in Chromium, driven as its user drives it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Protocol
from urllib.parse import urlencode

from playwright.async_api import Page

from tests.browser.node import NODE

Act = Literal["send", "approve", "reject", "reply", "decline", "cancel", "reload"]
STREAM_LIMIT: Final = 2**22
"""Bytes of one line of a driver, at most."""


@dataclass(frozen=True)
class Screen:
    """What a user sees of one conversation.

    ``state`` is where the front end says it is: `idle`, `working`, `asking`, `answered`, `success`, `stopped` or
    `error`; ``says`` is that in its own words. ``texts`` are those of the assistant, ``tools`` the state of each call,
    ``sentence`` what stands there of our status, ``states`` every state since the user looked last.
    """

    state: str = "idle"
    says: str = ""
    texts: tuple[str, ...] = ()
    tools: tuple[tuple[str, str], ...] = ()
    asked: int = 0
    sentence: str | None = None
    states: frozenset[str] = frozenset()

    @classmethod
    def of(cls, seen: dict[str, Any], states: frozenset[str]) -> Screen:
        tools = tuple((call.rpartition(":")[2], state) for call, state in seen["tools"])
        found = {**seen, "texts": tuple(seen["texts"]), "tools": tools}
        return cls(**{**found, "states": states | {*seen["states"], seen["state"]}})


class Client(Protocol):
    """One conversation of one front end."""

    async def do(self, act: Act, text: str = "") -> None:
        """What a user does; comes back before anything came of it."""

    async def see(self) -> dict[str, Any]:
        """What the user sees, in the form of :class:`Screen`."""


class NodeProcess:
    """A front end in Node, for any number of conversations. What it prints of errors goes to a file beside its code."""

    def __init__(self, process: asyncio.subprocess.Process, errors: Path) -> None:
        self._process = process
        self._errors = errors
        self._turn = asyncio.Lock()

    @classmethod
    async def started(cls, bundle: Path) -> NodeProcess:
        assert NODE is not None
        pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
        errors = bundle.with_suffix(".log")
        with errors.open("wb") as log:
            process = await asyncio.create_subprocess_exec(NODE, str(bundle), stderr=log, limit=STREAM_LIMIT, **pipes)
        return cls(process, errors)

    async def ask(self, name: str, act: str, **more: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        async with self._turn:
            self._process.stdin.write(json.dumps({"name": name, "act": act, **more}).encode() + b"\n")
            line = await self._process.stdout.readline()
        assert line, self._errors.read_text(encoding="utf-8")[-2000:]
        seen: dict[str, Any] = json.loads(line)
        return seen

    async def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), 5)
        except TimeoutError:  # a stream that is open keeps it alive
            self._process.kill()
            await self._process.wait()


@dataclass
class InNode:
    """One conversation in Node; ``api`` is the whole URL of the bridge."""

    process: NodeProcess
    name: str
    api: str
    truth: bool
    _unseen: list[str] = field(default_factory=list)

    async def open(self) -> InNode:
        await self._ask("open", api=self.api, truth=self.truth)
        return self

    async def do(self, act: Act, text: str = "") -> None:
        if act in ("approve", "reject"):
            await self._ask("answer", answer=[act == "approve"])
        elif act in ("reply", "decline"):
            await self._ask("answer", answer=[act == "reply", text])
        elif act == "send":
            await self._ask("send", text=text)
        else:
            await self._ask(act, api=self.api, truth=self.truth)

    async def see(self) -> dict[str, Any]:
        seen = await self.process.ask(self.name, "see")
        seen["states"] += self._unseen
        self._unseen.clear()
        return seen

    async def _ask(self, act: str, **more: Any) -> None:
        self._unseen += (await self.process.ask(self.name, act, **more))["states"]


@dataclass
class InChromium:
    """A conversation on a page, which a user works by its buttons."""

    page: Page

    async def open(self, server: str, front: str, name: str, path: str, truth: bool) -> InChromium:
        query = urlencode({"conversation": name, "api": path, "truth": int(truth)})
        await self.page.goto(f"{server}/front/{front}?{query}")
        await self.page.wait_for_selector("#state", state="attached")
        return self

    async def do(self, act: Act, text: str = "") -> None:
        if act in ("send", "reply", "decline"):
            await self.page.fill("input", text)
        if act == "reload":
            await self.page.reload()
            await self.page.wait_for_selector("#state", state="attached")
        else:
            await self.page.click(f"text={BUTTONS[act]}")

    async def see(self) -> dict[str, Any]:
        seen: dict[str, Any] = await self.page.evaluate("read()")
        return seen


BUTTONS: Final = {
    "send": "Send",
    "approve": "Approve",
    "reject": "Reject",
    "reply": "Reply",
    "decline": "Decline",
    "cancel": "Stop",
}
