"""What a user of an AG-UI front end sees of a stream, as @ag-ui/client 1.0.0 reads it: a check of truth, not of form.

A stream may keep every rule of AG-UI and still be a lie: a cancelled run that ends with a bare ``RUN_FINISHED`` is read
as success. Compare :attr:`Screen.success` with the status of our own view.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from agents_progress.errors import UsageError

_OUTCOMES: Final = ("cancelled", "interrupt")

_OPENING: Final[Mapping[str, str]] = {
    "TEXT_MESSAGE": "messageId",
    "REASONING_MESSAGE": "messageId",
    "REASONING": "messageId",
    "TOOL_CALL": "toolCallId",
    "STEP": "stepName",
    "SUBAGENT": "subagentRunId",
}
"""What is opened and closed, and the field that names it."""

_STARTS: Final = ("START", "STARTED")
_GOES_ON: Final = ("CONTENT", "ARGS")
_ENDS: Final = ("END", "FINISHED", "ERROR")


class Screen:
    """Takes events and shows what they come to.

    ``ended`` is how the client takes the end: `success`, `cancelled`, `interrupt`, `error`, or None before it. An
    outcome that the client does not know, or none, is success to it. ``texts`` are the messages by their ids, whole;
    ``results`` the tools' by the ids of their calls; ``arguments`` those of the calls; ``order`` the ids of texts and
    calls as they stand under each other; ``activities`` contents by id.
    """

    def __init__(self, messages: Iterable[Mapping[str, Any]] = ()) -> None:
        self.ended: str | None = None
        self.code: str | None = None
        self.order: list[str] = []
        self.texts: dict[str, str] = {}
        self.arguments: dict[str, str] = {}
        self.results: dict[str, str] = {}
        self.activities: dict[str, Mapping[str, Any]] = {}
        self._open: set[tuple[str, str]] = set()
        self._snapshot(messages)

    @property
    def success(self) -> bool:
        """Whether the user is told that it worked."""
        return self.ended == "success"

    def take(self, event: Mapping[str, Any]) -> None:
        """One more event. Raises :exc:`UsageError` where the client fails the whole run."""
        kind = event["type"]
        if self.ended is not None and kind != "RUN_STARTED" and not (kind == "RUN_ERROR" and self.ended != "error"):
            raise UsageError(f"{kind} after the run ended; the client fails the run, so send nothing after its end")
        if kind == "RUN_STARTED":
            self.ended = self.code = None
            self._open.clear()
        elif kind == "RUN_FINISHED":
            if self._open:
                raise UsageError(f"the run finished over an open {min(self._open)[0]}; close it first")
            outcome = (event.get("outcome") or {}).get("type")
            self.ended = outcome if outcome in _OUTCOMES else "success"
        elif kind == "RUN_ERROR":
            self.ended, self.code = "error", event.get("code")
        else:
            name, _, step = kind.rpartition("_")
            if name in _OPENING:
                self._pair(name, step, event[_OPENING[name]])
            self._show(name, step, event)

    def _pair(self, name: str, step: str, what: str) -> None:
        """Hold an event to what is open."""
        is_open = (name, what) in self._open
        if step in _STARTS and is_open:
            raise UsageError(f"{name} is opened twice; close it first")
        if step in (*_GOES_ON, *_ENDS) and not is_open:
            raise UsageError(f"{name} is not open; start it first")
        if step in _STARTS:
            self._open.add((name, what))
        elif step in _ENDS:
            self._open.remove((name, what))

    def _show(self, name: str, step: str, event: Mapping[str, Any]) -> None:
        if step in _STARTS and name in ("TEXT_MESSAGE", "REASONING_MESSAGE", "TOOL_CALL"):
            what = event[_OPENING[name]]
            self.order += [] if what in self.order else [what]
        if name in ("TEXT_MESSAGE", "REASONING_MESSAGE") and step != "END":
            text = self.texts.get(event["messageId"], "")
            self.texts[event["messageId"]] = text + event.get("delta", "")
        elif name == "TOOL_CALL" and step in ("START", "ARGS"):
            text = self.arguments.get(event["toolCallId"], "")
            self.arguments[event["toolCallId"]] = text + event.get("delta", "")
        elif name == "TOOL_CALL" and step == "RESULT":
            self.results[event["toolCallId"]] = event["content"]
        elif name == "ACTIVITY":
            self.activities[event["messageId"]] = event["content"]
        elif name == "MESSAGES":
            self._snapshot(event["messages"])

    def _snapshot(self, messages: Iterable[Mapping[str, Any]]) -> None:
        """A snapshot replaces every message where it stands; what it leaves out is gone."""
        stands: list[str] = []
        self.texts, self.arguments, self.results = {}, {}, {}
        for message in messages:
            if message["role"] == "tool":
                self.results[message["toolCallId"]] = message["content"]
            elif message["role"] != "activity":
                calls = message.get("toolCalls") or ()
                self.arguments |= {call["id"]: call["function"]["arguments"] for call in calls}
                if not calls:
                    self.texts[message["id"]] = message.get("content") or ""
                stands += [call["id"] for call in calls] or [message["id"]]
        kept = [each for each in self.order if each in stands]
        self.order = kept + [each for each in stands if each not in kept]


def says_success(events: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a stream tells its user that the run worked.

    One that breaks off without a terminal event does not say it here; the bare client takes even that as success, which
    is why the page module of this package stands between the two.
    """
    screen = Screen()
    for event in events:
        screen.take(event)
    return screen.success
