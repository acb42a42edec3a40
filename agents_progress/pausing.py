"""What a run that pauses leaves behind, so that any process which has its function can go on with it.

The body of a :class:`Pause` is JSON, sealed or not: how the function was called, and what its source says of the run.
Its digest stands in the run's ending, so that a body that was changed since is seen.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from agents_progress.clock import rfc3339
from agents_progress.disclosure import Draft
from agents_progress.errors import AnswerNotUsed, NotResumableHere
from agents_progress.journal.base import Journal
from agents_progress.journal.pauses import Pause
from agents_progress.keeper import Tenure
from agents_progress.sealing import must_be_sealed, plain_text, sealed_text
from agents_progress.source import Source
from agents_progress.telemetry import RunLogger
from agents_progress.verify import digest

Answerers: TypeAlias = Collection[str] | Callable[[str], Collection[str] | None]
"""The actors who may answer, or what gives them for the name of a tool; None is anybody."""

KeptContext: TypeAlias = tuple[Callable[[Any], Mapping[str, Any]], Callable[[Mapping[str, Any]], Any]]
"""What makes JSON of the context of an application's tools, and what makes a context of that JSON again."""

LEFT: Final = "pause"
"""In ``x`` of a `run.ended`: the digest of what was left behind."""


@dataclass(frozen=True, slots=True)
class Pausing:
    """How the runs of one call are left behind: the name of the function, and its arguments as JSON.

    ``arguments`` raises for a call that cannot be repeated from what JSON holds; None leaves no state behind, but for
    whoever looks who may answer, and until when.
    """

    function: str
    arguments: Callable[[], Mapping[str, Any]] | None
    answerers: Answerers | None = None
    shared: bool = True
    seal: object = None

    def refuse(self, tool: str, actor: str | None) -> None:
        """Raise :exc:`AnswerNotUsed` unless this actor may answer a question about this tool."""
        refuse_actor(self._actors(tool), actor)

    def _actors(self, tool: str) -> Collection[str] | None:
        return self.answerers(tool) if callable(self.answerers) else self.answerers

    async def leave(self, source: Source, tenure: Tenure, patience: float, logger: RunLogger) -> dict[str, Any]:
        """Store what a drained run leaves behind, under its owner's lease; what its ending says of it.

        Where that fails the run pauses all the same, and this process can go on with it.
        """
        try:
            pause = self._pause(tenure.run_id, source)
            if not (self.shared and (pause.body or pause.answerers or pause.expires_at)):
                return {}
            async with asyncio.timeout(patience):
                await tenure.journal.keep_pause(pause, lease=await tenure.begin())
        except Exception as error:  # noqa: BLE001 - see above
            logger.warning("only this process can go on with it: %s", type(error).__name__)
            return {}
        return {"x": {LEFT: digest(pause.body)}}

    def _pause(self, run_id: str, source: Source) -> Pause:
        said = list(source.restated())
        waits = [payload for type_, payload in said if type_ == "approval.wait"]
        named = {wait["interaction_id"]: self._actors(wait["tool"]) for wait in waits}
        body = "" if self.arguments is None else self._body(source, said, self.arguments())
        return Pause(
            run_id,
            self.function,
            sealed_text(body, run_id, self.seal) if body else "",
            min((wait["expires_at"] for wait in waits if "expires_at" in wait), default=None),
            {name: sorted(actors) for name, actors in named.items() if actors is not None},
        )

    def _body(self, source: Source, said: Sequence[Draft], arguments: Mapping[str, Any]) -> str:
        body = {"arguments": dict(arguments), "agent": source.agent, "said": said, "left": dict(source.left())}
        return json.dumps(body)


def refuse_actor(actors: Collection[str] | None, actor: str | None) -> None:
    """Raise :exc:`AnswerNotUsed` unless an actor is among those who may answer; None is anybody."""
    if actors is not None and actor not in actors:
        raise AnswerNotUsed("not_allowed")


def expired(expires_at: str | None, wall: float) -> bool:
    """Whether a question can be answered no more, at a wall time in seconds."""
    return expires_at is not None and expires_at <= rfc3339(int(wall * 1000))


async def used(journal: Journal, run_id: str, logger: RunLogger) -> None:
    """Erase what a run left behind, now that another one goes on from it. Whoever finds it later does it otherwise."""
    try:
        await journal.drop_pause(run_id)
    except Exception as error:  # noqa: BLE001 - the run that goes on must not be hurt
        logger.warning("what its pause left behind is still stored: %s", type(error).__name__)


@dataclass(frozen=True, slots=True)
class Opened:
    """A pause as it was left behind. ``said`` is what a run that goes on from it says first."""

    arguments: Mapping[str, Any]
    agent: str
    said: tuple[Draft, ...]
    left: Mapping[str, Any]


def opened(pause: Pause, ending: Mapping[str, Any], seal: object) -> Opened:
    """What is in a pause, given the payload of its run's ending. Raises :exc:`NotResumableHere` for a changed one, and
    for one that is sealed with another key, or not at all where there is a seal.
    """
    if digest(pause.body) != ending.get("x", {}).get(LEFT):
        raise NotResumableHere(pause.run_id, "tampered")
    if must_be_sealed(pause.body, seal):
        raise NotResumableHere(pause.run_id, "unsealed")
    try:
        body = json.loads(plain_text(pause.body, pause.run_id, seal))
    except Exception as error:  # a seal of the application's own raises what it likes
        raise NotResumableHere(pause.run_id, "sealed") from error
    said = tuple((type_, payload) for type_, payload in body["said"])
    return Opened(body["arguments"], body["agent"], said, body["left"])
