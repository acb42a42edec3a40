"""What a user of an AG-UI front end sees of a stream, as @ag-ui/client 1.0.0 reads it: a check of truth, not of form.

A stream may keep every rule of AG-UI and still be a lie: a cancelled run that ends with a bare ``RUN_FINISHED`` is read
as success. Compare :attr:`Screen.success` with the status of our own view.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from agents_progress.errors import UsageError

_TEXTS: Final = ("TEXT_MESSAGE", "REASONING_MESSAGE")
_OUTCOMES: Final = ("cancelled", "interrupt")


class Screen:
    """Takes events and shows what they come to.

    ``ended`` is how the client takes the end: `success`, `cancelled`, `interrupt`, `error`, or None before it. An
    outcome that the client does not know, or none, is success to it. ``texts`` are the messages by their ids, whole;
    ``results`` the tools' by the ids of their calls; ``arguments`` those of the calls; ``activities`` contents by id.
    """

    def __init__(self, messages: Iterable[Mapping[str, Any]] = ()) -> None:
        self.ended: str | None = None
        self.code: str | None = None
        self.texts: dict[str, str] = {}
        self.arguments: dict[str, str] = {}
        self.results: dict[str, str] = {}
        self.activities: dict[str, Mapping[str, Any]] = {}
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
        elif kind == "RUN_FINISHED":
            outcome = (event.get("outcome") or {}).get("type")
            self.ended = outcome if outcome in _OUTCOMES else "success"
        elif kind == "RUN_ERROR":
            self.ended, self.code = "error", event.get("code")
        else:
            self._show(kind, event)

    def _show(self, kind: str, event: Mapping[str, Any]) -> None:
        name, _, step = kind.rpartition("_")
        if name in _TEXTS and step == "START":
            self.texts.setdefault(event["messageId"], "")
        elif name in _TEXTS and step == "CONTENT":
            self.texts[event["messageId"]] += event["delta"]
        elif kind == "TOOL_CALL_START":
            self.arguments.setdefault(event["toolCallId"], "")
        elif kind == "TOOL_CALL_ARGS":
            self.arguments[event["toolCallId"]] += event["delta"]
        elif kind == "TOOL_CALL_RESULT":
            self.results[event["toolCallId"]] = event["content"]
        elif kind == "ACTIVITY_SNAPSHOT":
            self.activities[event["messageId"]] = event["content"]
        elif kind == "MESSAGES_SNAPSHOT":
            self._snapshot(event["messages"])

    def _snapshot(self, messages: Iterable[Mapping[str, Any]]) -> None:
        """A snapshot replaces every message; what it leaves out is gone."""
        self.texts, self.arguments, self.results = {}, {}, {}
        for message in messages:
            if message["role"] == "tool":
                self.results[message["toolCallId"]] = message["content"]
            elif message["role"] != "activity":
                calls = message.get("toolCalls") or ()
                self.arguments |= {call["id"]: call["function"]["arguments"] for call in calls}
                if not calls:
                    self.texts[message["id"]] = message.get("content") or ""


def says_success(events: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a stream tells its user that the run worked.

    One that breaks off without a terminal event does not say it here; the bare client takes even that as success, which
    is why the page module of this package stands between the two.
    """
    screen = Screen()
    for event in events:
        screen.take(event)
    return screen.success
