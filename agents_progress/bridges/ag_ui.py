"""AG-UI 1.0: what CopilotKit, assistant-ui, TanStack and every `HttpAgent` read. Needs the extra ``ag-ui``.

A request is a ``RunAgentInput``. Its ``runId`` is the key under which the same request twice starts one run; the ids in
the stream are ours. A pause is an interrupt, and ``resume`` answers it with what its ``responseSchema`` says:
``approved`` and, where the question takes them, ``text``, ``editedArgs`` and ``reason``; one that is cancelled was not
approved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from pydantic import ValidationError
from pydantic_core import to_json

from agents_progress.bridges.ag_ui_calls import EDITED
from agents_progress.bridges.ag_ui_projection import AgUiProjection
from agents_progress.bridges.base import Answered, Asked, BadBody, Event, message_parameter
from agents_progress.errors import BridgeExtraMissing

if TYPE_CHECKING:
    from ag_ui.core import RunAgentInput

    from agents_progress.decorate import Decorated

Arguments: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""What a request body gives to the function, by the names of its parameters. May raise :exc:`BadBody`."""

_OLD: Final = "before-1.0:"
"""What the key of a request begins with whose client declares no version of AG-UI, as none did before 1.0. They read
every outcome as success, or fail for it (measured with @ag-ui/client 0.0.50 to 0.0.59).
"""

_PAYLOAD: Final = ("approved", "text", EDITED, "reason")
"""What the payload of an answer may hold."""

_HEADERS: Final[Mapping[str, str]] = {"content-type": "text/event-stream"}


class AgUI:
    """Serves one decorated function to AG-UI clients under a path.

    ``arguments`` makes the function's arguments of a request body. Without it the text of the last user message goes to
    the parameter ``message`` or ``messages``, or else to the only required one; a function that this does not serve is
    refused here with :exc:`UsageError`. Raises :exc:`BridgeExtraMissing`.

    What a client says of earlier messages, of tools, context and state reaches nothing unless ``arguments`` takes it
    there: it is the client's own word.
    """

    name: Final = "ag-ui"
    last: Final = b""
    headers: Final = _HEADERS

    def __init__(self, chat: Decorated[...], path: str = "/ag-ui", arguments: Arguments | None = None) -> None:
        self._input = _input_model()
        self.chat = chat
        self.path = path
        self._arguments = arguments or _last_message(message_parameter(chat))

    def asked(self, body: Mapping[str, Any]) -> Asked:
        """Read a ``RunAgentInput``. Raises :exc:`BadBody`, which names the field and no value."""
        try:
            given = self._input.model_validate(body)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False, include_context=False)[0]
            place = ".".join(str(part) for part in first["loc"]) or "the body"
            raise BadBody(f"{place}: {first['type']}") from None
        if not given.run_id:
            raise BadBody("runId: empty; give each request one of its own")
        answers = tuple(_answer(place, entry) for place, entry in enumerate(given.resume or ()))
        arguments = None if answers else self._arguments(body)
        history = tuple(message.model_dump(mode="json", by_alias=True) for message in given.messages)
        key = given.run_id if given.protocol_version else f"{_OLD}{given.run_id}"
        return Asked(given.thread_id, key, arguments, answers, history)

    def projection(self, conversation: str, key: str, history: Sequence[Mapping[str, Any]] = ()) -> AgUiProjection:
        """A stream for one reader, whose own messages are ``history``."""
        return AgUiProjection(conversation, self.chat.options.language, history, outcomes=not key.startswith(_OLD))

    def frame(self, event: Event) -> bytes:
        """One event as a frame of server-sent events."""
        # JSON has no line ends of its own: the frame needs no look for them.
        return b"data: %b\n\n" % to_json(event, inf_nan_mode="null")


def _input_model() -> type[RunAgentInput]:
    try:
        from ag_ui.core import RunAgentInput
    except ImportError as error:
        raise BridgeExtraMissing("the AG-UI bridge needs ag-ui-protocol; install agents-progress[ag-ui]") from error
    return RunAgentInput


def _last_message(parameter: str) -> Arguments:
    """The text of the last user message, for one parameter."""

    def arguments(body: Mapping[str, Any]) -> Mapping[str, Any]:
        messages = body["messages"]
        place = next((n for n, each in reversed([*enumerate(messages)]) if each["role"] == "user"), None)
        if place is None:
            raise BadBody("messages: one of a user, or `resume` with the answers to a pause")
        content = messages[place]["content"]
        if isinstance(content, str):
            return {parameter: content}
        for number, part in enumerate(content):
            if part["type"] != "text":
                raise BadBody(f"messages.{place}.content.{number}: only text is read; say `arguments=` to read more")
        return {parameter: "".join(part["text"] for part in content)}

    return arguments


def _answer(place: int, entry: Any) -> Answered:
    """One entry of ``resume``. An interrupt that was cancelled was not approved."""
    if entry.status == "cancelled":
        return Answered(entry.interrupt_id, "rejected")
    where = f"resume.{place}.payload"
    payload = entry.payload if isinstance(entry.payload, Mapping) else {}
    approved, edited = payload.get("approved"), payload.get(EDITED)
    if not isinstance(approved, bool):
        raise BadBody(f"{where}.approved: true or false")
    for name in ("reason", "text"):
        if not isinstance(payload.get(name), str | None):
            raise BadBody(f"{where}.{name}: text")
    if not isinstance(edited, Mapping | None):
        raise BadBody(f"{where}.{EDITED}: an object")
    if payload.keys() - set(_PAYLOAD):
        raise BadBody(f"{where}: known are {', '.join(_PAYLOAD)}; nothing else would be used")
    decision: Literal["approved", "rejected"] = "approved" if approved else "rejected"
    return Answered(entry.interrupt_id, decision, payload.get("reason"), payload.get("text") or "", edited)
