"""What an answer to a question may carry besides its decision, by one table, and what is refused of it at every door.

A text answers the question; other arguments are what is approved instead of those that were asked about; a reason says
why. None of them is ever in an event: a text and a reason are a person's, and arguments are shown where the application
discloses them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, TypeAlias

from agents_progress.errors import AnswerNotUsed, UsageError

Kind: TypeAlias = Literal["approval", "clarification", "choice", "recovery", "handoff"]
"""What a question to a person is for. However it is called, it is approved or rejected."""
Wanted: TypeAlias = Literal["refused", "optional", "required", "option"]
"""What an approval does with a text; `option`: it is required, and one of those that the question offers."""

TEXTS: Final[Mapping[str, Wanted]] = {
    "approval": "refused",
    "clarification": "required",
    "choice": "option",
    "recovery": "optional",
    "handoff": "optional",
}
"""Kind of a question to what its approval does with a text."""

CARRIED: Final = ("arguments", "text", "reason")
"""What an answer may carry, by the names that it has at every door."""

MOST_TEXT: Final = 4000
"""Characters of a text or a reason, at most."""
MOST_ARGUMENTS: Final = 65_536
"""Characters of edited arguments as JSON, at most."""


class Asked(Protocol):
    """What must be known of a question to look at an answer to it.

    ``takes`` gives the names of the arguments that its tool has, and whether it needs them; None: the call cannot be
    edited. ``options_in`` names the argument that holds the options of a choice.
    """

    @property
    def call_id(self) -> str | None: ...
    @property
    def tool(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def digest(self) -> str | None: ...
    @property
    def details(self) -> str | None: ...
    @property
    def takes(self) -> Mapping[str, bool] | None: ...
    @property
    def options_in(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Reply:
    """What one person decided about one question."""

    approved: bool
    actor: str | None = None
    arguments: Mapping[str, Any] | None = field(default=None, repr=False)
    text: str | None = field(default=None, repr=False)
    reason: str | None = field(default=None, repr=False)

    @property
    def decision(self) -> Literal["approved", "rejected"]:
        """In the words of the protocol."""
        return "approved" if self.approved else "rejected"


@dataclass(frozen=True, slots=True)
class Edit:
    """Arguments that a person put in the place of a call's own: as JSON, with the digests of before and after."""

    call_id: str | None
    before: str
    arguments: str = field(repr=False)
    digest: str


def refuse(asked: Asked, reply: Reply) -> None:
    """Raise :exc:`AnswerNotUsed` for an answer that carries what this question does not take, or lacks what it needs.

    Looks at nothing else: who may answer, and until when, is looked at elsewhere.
    """
    if any(len(said or "") > MOST_TEXT for said in (reply.text, reply.reason)):
        raise AnswerNotUsed("answer_too_long")
    if reply.approved:
        refuse_arguments(asked, reply.arguments)
        _refuse_text(asked, reply)
    elif reply.text is not None or reply.arguments is not None:
        raise AnswerNotUsed("answer_unexpected")


def refuse_arguments(asked: Asked, arguments: object) -> None:
    """Raise :exc:`AnswerNotUsed` for arguments that cannot be approved in the place of those that are asked about."""
    if arguments is None:
        return
    if asked.takes is None:
        raise AnswerNotUsed("not_editable")
    if not isinstance(arguments, Mapping):
        raise AnswerNotUsed("arguments_not_object")
    if len(arguments_text(arguments)) > MOST_ARGUMENTS:
        raise AnswerNotUsed("answer_too_long")
    if unknown := sorted(arguments.keys() - asked.takes.keys()):
        raise AnswerNotUsed("arguments_unknown", names=unknown)
    if missing := sorted({name for name, needed in asked.takes.items() if needed} - arguments.keys()):
        raise AnswerNotUsed("arguments_missing", names=missing)


def _refuse_text(asked: Asked, reply: Reply) -> None:
    wanted, said = TEXTS.get(asked.kind, "refused"), reply.text
    if wanted == "option" and said is not None:
        if said not in options_offered(asked, reply.arguments):
            raise AnswerNotUsed("not_an_option")
    elif said is None or not said.strip():
        if wanted in ("required", "option"):
            raise AnswerNotUsed("answer_missing")
    elif wanted == "refused":
        raise AnswerNotUsed("answer_unexpected")


def options_offered(asked: Asked, arguments: Mapping[str, Any] | None = None) -> tuple[str, ...]:
    """The options of a choice: those that were shown, or those of the arguments that are approved instead."""
    return options_of(asked.details if arguments is None else arguments_text(arguments), asked.options_in)


def options_of(details: str | None, argument: str | None) -> tuple[str, ...]:
    """The options of a choice, in their order and as an answer names them: the texts and whole numbers that the named
    argument of a call lists. None where it lists none.
    """
    with suppress(ValueError, RecursionError, KeyError, TypeError):
        listed = json.loads(details or "")[argument]
        if isinstance(listed, list):
            return tuple(str(each) for each in listed if type(each) in (str, int))
    return ()


def arguments_text(arguments: Mapping[str, Any]) -> str:
    """Edited arguments as the tool gets them. Raises :exc:`AnswerNotUsed` for what JSON cannot say."""
    try:
        text = _json(dict(arguments))
        text.encode()
    except (TypeError, ValueError, RecursionError):
        raise AnswerNotUsed("arguments_not_object") from None
    return text


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def action_digest(tool: str, arguments: str) -> str:
    """SHA-256 of exactly what is approved: the tool and its arguments, however the JSON was spaced."""
    with suppress(ValueError, RecursionError):  # a free text, or what is no JSON that can be told, is digested as it is
        plain = json.dumps(json.loads(arguments), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        plain.encode()
        arguments = plain
    return hashlib.sha256(json.dumps([tool, arguments], ensure_ascii=False).encode()).hexdigest()


def edits_of(questions: Mapping[str, Asked], replies: Mapping[str, Reply]) -> Mapping[str, Edit]:
    """The arguments that answers put in the place of others, by interaction id."""
    edits: dict[str, Edit] = {}
    for name, reply in replies.items():
        if reply.arguments is not None:
            asked, text = questions[name], arguments_text(reply.arguments)
            edits[name] = Edit(asked.call_id, asked.digest or "", text, action_digest(asked.tool, text))
    return edits


def restated(drafts: Iterable[tuple[str, dict[str, Any]]], edits: Mapping[str, Edit]) -> Iterator[Any]:
    """The calls and questions of a pause as the run that goes on says them: with the arguments that it was given."""
    calls = {edit.call_id: edit for edit in edits.values()}
    for type_, payload in drafts:
        if type_ == "tool.requested" and payload["call_id"] in calls:
            yield type_, {**payload, "arguments": calls[payload["call_id"]].arguments}
        elif type_ == "approval.wait" and payload["interaction_id"] in edits:
            edit = edits[payload["interaction_id"]]
            x = {**payload.get("x", {}), "edited_from": edit.before}
            yield type_, {**payload, "digest": edit.digest, "details": edit.arguments, "x": x}
        else:
            yield type_, payload


def by_question(name: str, given: object, chosen: Collection[str]) -> Mapping[str, Any]:
    """What is given of each question by its id, or bare where only one is meant. Raises :exc:`UsageError`."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        if len(chosen) != 1:
            raise UsageError(f"one {name} is of one question; give a mapping from interaction id to {name}")
        return dict.fromkeys(chosen, given)
    if stray := given.keys() - set(chosen):
        raise UsageError(f"{name} of {min(map(str, stray))}, of which nothing was decided; decide it too")
    return given
