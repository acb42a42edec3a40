"""What a bridge is: how a request of another protocol is read, and how one run is told in its events."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TypeAlias

from pydantic_core import from_json

from agents_progress.disclosure import CUT
from agents_progress.errors import UsageError
from agents_progress.events import Envelope, is_run_id
from agents_progress.labels import in_words, label
from agents_progress.messages import MESSAGES, Language
from agents_progress.rows import Activity, Interaction, Message
from agents_progress.view import RunView

if TYPE_CHECKING:
    from agents_progress.decorate import Decorated

Event: TypeAlias = dict[str, Any]
"""One event of the other protocol: JSON-ready, in its wire form."""

Cut: TypeAlias = Literal["not_checked", "unknown", "erased", "forbidden", "try_again", "internal"]

CUTS: Final[Mapping[Cut, Mapping[Language, str]]] = {
    "not_checked": MESSAGES["checking"],
    "unknown": MESSAGES["unknown"],
    "erased": {"en": "This run was erased", "zh": "这次运行已被删除"},
    "forbidden": {"en": "You may no longer read this run", "zh": "你不能再读取这次运行"},
    "try_again": {
        "en": "This server cannot go on with this run now; come back for the rest",
        "zh": "服务器现在无法继续显示这次运行；请重新连接",
    },
    "internal": {"en": "This run cannot be shown here; come back", "zh": "这里无法显示这次运行；请重新连接"},
}
"""Why a stream is cut, with what its reader is told. Nothing here says how the run ends.

``not_checked``: it succeeded, its log is closed, and no verdict came. ``unknown``: its log is closed without an ending.
"""


class Projection(Protocol):
    """One reader's stream of one run: ours to another protocol. Holds what is open, nothing else.

    The same calls give the same events, and after :meth:`join` the events are those of a reader who was there from the
    start: so a reader who was cut off goes on after the last event it had.
    """

    @property
    def over(self) -> bool:
        """Whether a terminal event was given: nothing follows."""

    def join(self, view: RunView, earlier: Sequence[RunView] = ()) -> list[Event]:
        """The events that bring a client which knows nothing to the state of this view, an empty one at the start.

        ``earlier`` are the runs that this one continues, oldest first, as far as there are any still. A client that
        comes in at the start was told of them. Called once, first.
        """

    def feed(self, envelope: Envelope) -> list[Event]:
        """The events of the next envelope."""

    def cut(self, code: Cut) -> list[Event]:
        """The feed cannot go on, and nobody will know here: an ending that no client reads as success.

        Empty after a terminal event.
        """


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer that came back: what was sent as the id of the question (:func:`question_id`), what was decided, and
    what the answer carries, as in :mod:`agents_progress.answers`. ``text`` is None where the protocol has no place for
    one, and empty where nothing was said.
    """

    interaction: str
    decision: Literal["approved", "rejected"]
    reason: str | None = field(default=None, repr=False)
    text: str | None = field(default=None, repr=False)
    arguments: Mapping[str, Any] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks for.

    ``conversation`` is the client's id of the chat, opaque: a label, never the id of a run or task. ``key`` is its own
    id of this request, so that the same request twice starts one run; empty where each is meant. ``arguments`` are the
    function's, None when the request only answers or joins. ``answers`` are those that came back. ``history`` are the
    client's own messages, where the protocol's projections need them.
    """

    conversation: str
    key: str
    arguments: Mapping[str, Any] | None
    answers: tuple[Answered, ...] = ()
    history: tuple[Mapping[str, Any], ...] = ()


class BadBody(Exception):
    """A request body that is not understood. The sentence names the field and the rule, and no value."""


class Bridge(Protocol):
    """What ``runs_app(bridges=[...])`` mounts. One instance serves all readers."""

    @property
    def chat(self) -> Decorated[...]:
        """The function that a request starts."""

    @property
    def path(self) -> str:
        """Where it is mounted, such as ``/ag-ui``."""

    @property
    def name(self) -> str:
        """The protocol, such as ``ag-ui``: what the labels that it keeps begin with."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of the streams, besides those of every stream."""

    @property
    def last(self) -> bytes:
        """What is sent after the terminal event; empty where the protocol has nothing."""

    def asked(self, body: Mapping[str, Any]) -> Asked:
        """What a request asks for. Raises :exc:`BadBody`."""

    def projection(self, conversation: str, key: str, history: Sequence[Mapping[str, Any]] = ()) -> Projection:
        """A stream for one reader; ``key`` and ``history`` are those of its request, empty for one that joins."""

    def frame(self, event: Event) -> bytes:
        """One event as a frame of server-sent events, without an id."""


# The id of a question in other protocols.


class Question(NamedTuple):
    """Which question an answer is about, and the digest of what was shown."""

    run_id: str
    interaction_id: str
    digest: str | None


def question_id(run_id: str, question: Interaction) -> str:
    """The id under which a question travels. An answer repeats it, and with it the digest of what was shown."""
    return f"{run_id}/{question.interaction_id}/{question.digest or ''}"


def question_of(text: str) -> Question | None:
    """The question that an id was made for; None for what :func:`question_id` does not make."""
    run_id, _, rest = text.partition("/")
    interaction_id, slash, digest = rest.rpartition("/")
    if not (slash and is_run_id(run_id) and is_run_id(interaction_id)):
        return None
    return Question(run_id, interaction_id, digest or None)


# The id of a call in other protocols.


class CallNames:
    """The ids under which the calls of a run travel, by their own: ``RUN:CALL`` with the run that made the call.

    Ids of calls repeat in a conversation, and clients look for one in all of it. A run that continues others, which are
    ``earlier``, oldest first, restates what was open there under its ids, and may make other calls of the same id as
    one that is settled.
    """

    def __init__(self, run_id: str, earlier: Iterable[RunView] = ()) -> None:
        self.run_id = run_id
        self._makers: dict[str, str] = {}
        for view in earlier:
            paused = view.standing.outcome == "paused"
            waiting = [call_id for call_id, row in view.rows.items() if row.open and paused]
            self._makers = {call_id: self._makers.get(call_id, view.run_id) for call_id in waiting}

    def __call__(self, call_id: str) -> str:
        return f"{self._makers.get(call_id, self.run_id)}:{call_id}"


# What both protocols say the same way.


class Response(NamedTuple):
    """A response of the model, by the envelope that began it."""

    seq: int


def in_order(view: RunView) -> list[Response | Activity | Message | Interaction]:
    """What a view holds that has a place among the rest, in the order in which it began."""
    rows, texts, questions = view.rows.values(), view.texts.values(), view.interactions.values()
    return sorted([*map(Response, view.responses), *rows, *texts, *questions], key=lambda each: each.seq)


def json_of(text: str | None) -> Any:
    """Arguments as the object that they are; a text that is no JSON as it is, and null for what is not disclosed.

    So is one with a number that a front end would not show as it is written, since all its numbers are doubles.
    """
    if text is None:
        return None
    try:
        from_json(text, allow_inf_nan=False)  # the stricter one: NaN, surrogates, depth
        return json.loads(text, parse_int=_exact, parse_float=_finite)
    except ValueError:
        return text


_MOST: Final = 2**53 - 1
"""Up to this a double holds every integer."""


def _exact(digits: str) -> int:
    if len(digits) > len(f"-{_MOST}") or abs(number := int(digits)) > _MOST:
        raise ValueError("an integer is too large for a double")
    return number


def _finite(digits: str) -> float:
    if not isfinite(number := float(digits)):
        raise ValueError("a number is too large for a double")
    return number


def unsaid_of(view: RunView) -> str:
    """Of an output what no text of the run said: all of a tool's result that is the answer, for instance."""
    output = (view.terminal or {}).get("final_output")
    said = [message.text for message in view.texts.values() if message.channel == "answer"]
    if view.standing.outcome != "succeeded" or view.issues or not output:
        return ""
    if output in said or json_of(output) in map(json_of, said):
        return ""
    begun, whole = view.text.removesuffix(CUT), output.removesuffix(CUT)  # what is over a cap is cut, each for itself
    return "" if begun.startswith(whole) else str(output.removeprefix(begun))


def is_on_the_web(url: str) -> bool:
    """Whether an address may be a link: no other scheme is one that a page should follow."""
    return url.startswith(("https://", "http://"))


def told_of(row: Activity, language: Language) -> str:
    """In words, what came of a call that did not return."""
    words = (label(row.state, language), in_words(row.note, language), row.summary)
    return ": ".join(word for word in words if word)


# What a request gives to the function.

MESSAGE_NAMES: Final = ("message", "messages")


def message_parameter(function: Decorated[...]) -> str:
    """The parameter that takes the text of the last user message: ``message`` or ``messages``, else the only required
    one. Raises :exc:`UsageError` for a function that has neither, or requires others besides.
    """
    parameters = inspect.signature(function).parameters.values()
    named = [each for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    needed = [each.name for each in named if each.default is each.empty]
    chosen = next((each.name for each in named if each.name in MESSAGE_NAMES), None)
    chosen = chosen or (needed[0] if len(needed) == 1 else None)
    if chosen is None or set(needed) - {chosen}:
        name = getattr(function, "__name__", type(function).__name__)
        raise UsageError(
            f"{name} requires {', '.join(needed) or 'nothing'}; a bridge gives one message: name a parameter `message` "
            "and give the others defaults, or say `arguments=` how a request becomes arguments"
        )
    return chosen
