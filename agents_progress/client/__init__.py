"""A server of runs, from Python: start, list, follow, cancel and answer runs that live in another process.

    async with Client("https://host/prefix", token=token) as client:
        run = await client.start("total", {"question": "2 EUR plus 3 EUR?"})
        async for view in client.follow(run["run_id"]):
            print(view.status, view.message)

Feeds outlive their connections: they come back after a broken one, a restarted server or one that is busy, and go on
where they were. A token stands in a header and nowhere else. Needs httpx2 or httpx (extra ``client``).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Final, Literal, Self, cast
from urllib.parse import quote

from agents_progress.client.address import header_word
from agents_progress.client.answers import OpenCall, RemoteEffect, RemoteRun, effect, part, row
from agents_progress.client.feed import Feed
from agents_progress.client.link import Link
from agents_progress.effects.entry import is_entry
from agents_progress.errors import CursorExpired, ProgressError, UsageError
from agents_progress.events import Envelope, is_run_id
from agents_progress.messages import Language, Status
from agents_progress.payloads import CancelAnswer, CancelMode
from agents_progress.view import RunView

__all__ = ["CancelAnswer", "Client", "OpenCall", "RemoteEffect", "RemoteRun"]

_ASK_AGAIN_S: Final = 2.0
"""How often a paused run is asked whether it was continued."""


class Client:
    """A server of runs at a URL. Use it in ``async with``, from one event loop.

    ``token`` is sent as a bearer token; a warning is logged when it would travel unencrypted to another machine.
    ``patience`` is how long a feed may go without progress while its server is away, in seconds, and None for ever;
    ``heartbeat_s`` is how often the server says something on an idle feed: after twice that a silent one is dead.

    Everything raises :exc:`Refused` for an answer that is not what was asked for, and :exc:`Unreachable` for none. What
    changes nothing is asked again for ten seconds before that, and so is a start. A cancel and an answer are sent once.
    """

    def __init__(
        self, url: str, *, token: str | None = None, patience: float | None = 300.0, heartbeat_s: float = 15.0
    ) -> None:
        self._link = Link(url, token)
        self._patience = patience
        self._heartbeat_s = heartbeat_s

    def __repr__(self) -> str:
        return f"Client({self._link.url!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection. Runs go on."""
        await self._link.close()

    # Asking.

    async def start(
        self,
        function: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        *,
        task_id: str | None = None,
        labels: Mapping[str, str] | None = None,
        title: str | None = None,
        idempotency_key: str | None = None,
    ) -> RemoteRun:
        """Start a run of a function of the server, which may be left out where there is one only.

        One call starts one run at most, however often the request has to be sent. Give an ``idempotency_key`` to have
        that across calls too: of all calls with it, one starts the run, and the others get the same.
        """
        given = {"function": function, "task_id": task_id, "labels": labels, "title": title}
        body = {name: value for name, value in given.items() if value is not None}
        key = secrets.token_hex(16) if idempotency_key is None else header_word(idempotency_key)
        return row(await self._link.ask("POST", "/runs", body={**body, "arguments": dict(arguments or {})}, key=key))

    async def runs(
        self,
        *,
        status: Status | None = None,
        task_id: str | None = None,
        labels: Mapping[str, str] | None = None,
        before: str | None = None,
        limit: int = 100,
    ) -> list[RemoteRun]:
        """The newest runs first, at most ``limit`` of those that match every given filter; begun before the run
        ``before``, where that is given.
        """
        query = {"limit": str(limit), **{f"label.{name}": value for name, value in (labels or {}).items()}}
        wanted = {"status": status, "task_id": task_id, "before": before}
        query |= {name: value for name, value in wanted.items() if value is not None}
        answer = await self._link.ask("GET", "/runs", query=query)
        return [row(item) for item in part(answer, "runs", list)]

    async def run(self, run_id: str) -> RemoteRun:
        """What the server says of one run."""
        return row(await self._link.ask("GET", _path(run_id)))

    async def effect(self, entry: str) -> RemoteEffect:
        """What became of an effect of a tool that acts once; ``entry`` is that of an :exc:`EffectError`."""
        if not is_entry(entry):
            raise UsageError("an effect is named by 64 hex digits")
        return effect(await self._link.ask("GET", f"/tool-executions/{entry}"))

    async def snapshot(self, run_id: str) -> dict[str, Any]:
        """All that is known of a run so far; :meth:`RunView.from_snapshot` makes a view of it."""
        return await self._link.ask("GET", f"{_path(run_id)}/snapshot")

    async def cancel(self, run_id: str, *, mode: CancelMode | None = None) -> CancelAnswer:
        """Ask a run to stop. It has stopped when its log says so."""
        body = {} if mode is None else {"mode": mode}
        answer = await self._link.ask("POST", f"{_path(run_id)}/cancel", body=body)
        return cast("CancelAnswer", part(answer, "answer", str))

    async def answer(
        self,
        run_id: str,
        interaction_id: str,
        decision: Literal["approve", "reject"],
        *,
        reason: str | None = None,
        digest: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        text: str | None = None,
    ) -> str | None:
        """Answer a question of a waiting run; gives the run that goes on with it, None where that is not known yet.

        ``digest`` repeats that of the question, where it has one: only what was seen is answered. Of many answers one
        wins; every other one is :exc:`Refused` with the code `already_answered` and the winner in its ``facts``.
        ``arguments`` are approved in the place of those that were asked about; ``text`` answers a question of a kind
        that takes one; ``reason`` is why: the model gets that of a rejection.
        """
        given = {"decision": decision, "reason": reason, "digest": digest, "arguments": arguments, "text": text}
        body = {name: value for name, value in given.items() if value is not None}
        path = f"{_path(run_id)}/interactions/{quote(interaction_id, safe='')}"
        answer = await self._link.ask("POST", path, body=body)
        return None if answer.get("continued_as") is None else part(answer, "continued_as", str)

    # Following.

    async def events(self, run_id: str, after_seq: int = 0) -> AsyncGenerator[Envelope, None]:
        """Every envelope of a run after a sequence number, each once and in order, until its log is closed.

        Raises :exc:`CursorExpired`, with the snapshot to go on from, when what comes next was pruned or cannot be read,
        and :exc:`RunErased`.
        """
        if after_seq < 0:
            raise UsageError("a cursor is a sequence number from 0 on")
        async with aclosing(self._feed(run_id, after_seq).items()) as items:
            async for item in items:
                if isinstance(item, RunView):
                    message = f"run {run_id} cannot be read on after {after_seq}; go on from the snapshot"
                    raise CursorExpired(message, item.snapshot())
                after_seq = item.seq
                yield item

    async def follow(
        self, run_id: str, *, language: Language = "en", continued: bool = False
    ) -> AsyncGenerator[RunView, None]:
        """The view of a run as it is now, and again after each of its envelopes, until its log is closed.

        It begins with what the server knows. A snapshot that heals a gap makes a new view, so keep none. With
        ``continued`` the newest run of the task follows on a paused one, as soon as somebody continued it. When it
        gives up, the view's input is over before the error is raised: without an ending it is `unknown`.
        """
        while True:
            view = RunView(run_id, language)
            async with aclosing(self._feed(run_id, 0, language).items()) as items:
                try:
                    async for item in items:
                        if isinstance(item, RunView):
                            view = item
                        else:
                            view.feed(item)
                        yield view
                except ProgressError:
                    view.close_transport()
                    raise
            if not continued or view.standing.outcome != "paused":
                return
            run_id = await self._continuation(run_id)

    async def _continuation(self, run_id: str) -> str:
        while True:
            answer = row(await self._link.ask("GET", _path(run_id), patience=self._patience))
            if answer["continued_as"] is not None:
                return answer["continued_as"]
            await asyncio.sleep(_ASK_AGAIN_S)

    def _feed(self, run_id: str, after_seq: int, language: Language | None = None) -> Feed:
        """Of envelopes, or with a language of a view to begin with."""
        return Feed(
            self._link,
            f"{_path(run_id)}/events",
            run_id,
            after_seq,
            patience=self._patience,
            heartbeat_s=self._heartbeat_s,
            language=language or "en",
            snapshot_first=language is not None,
        )


def _path(run_id: str) -> str:
    if not is_run_id(run_id) or not run_id.strip("."):  # dots alone would lead elsewhere
        raise UsageError("a run id is 1 to 64 letters, digits, dots, underscores and hyphens")
    return f"/runs/{run_id}"
