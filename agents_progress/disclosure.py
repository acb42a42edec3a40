"""What may leave the process. Applied once, before the journal, so that no replay, export or page shows more than
another.

Closed by default: reasoning, tool arguments, tool outputs, details of an approval, a verifier's reasons.
:class:`Disclosure` opens them by name, with caps, and masks anything, the answer included. Exception texts, prompts,
paths and stack traces have no field in the protocol at all.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from agents_progress.errors import UsageError
from agents_progress.events import private_fields
from agents_progress.masks import Masks
from agents_progress.payloads import ENDINGS, NOTE_PREFIX

Draft: TypeAlias = tuple[str, dict[str, Any]]
"""An event before it is stamped: its type and its payload."""

TEXTS: Final = "text.deltas"
"""Deltas of one answer that came together, ``{"item_id": str, "texts": list[str]}``: a draft only, the log makes
``text.delta`` events of it.
"""

Names: TypeAlias = Collection[str] | Literal["all"]

CUT: Final = "… [cut]"

_IDENTITY: Final = frozenset(
    {
        "item_id", "call_id", "interaction_id", "response_id", "stage_id", "artifact_id", "task_id", "resumed_from",
        "parent", "channel", "kind", "outcome", "status", "decision", "mode", "error", "digest", "sha256",
        "media_type", "expires_at",
    }
)  # fmt: skip
"""Fields of known types that link events or come from closed lists: masking them would break the log and protect
nobody.
"""

_SETTLED: Final = frozenset({"tool.finished", "tool.failed", "tool.rejected", "tool.skipped"})
"""After these a call's row takes no more arguments, so what is held of them goes first."""


def _opens(names: Names, name: str) -> bool:
    return names == "all" or name in names


@dataclass(frozen=True, slots=True)
class Disclosure:
    """What an application opens and masks.

    ``arguments`` and ``outputs`` name tools, or are ``"all"``. ``mask`` holds literal texts and compiled patterns;
    every free text passes them, and in streamed text the last ``hold`` characters are kept back, so that a secret of up
    to that length is found however it is split. ``max_chars`` caps each opened argument and output.
    """

    arguments: Names = ()
    outputs: Names = ()
    reasoning: bool = False
    approval_details: Names = ()
    verdict_reasons: bool = False
    mask: Collection[str | re.Pattern[str]] = ()
    hold: int = 256
    max_chars: int = 4096

    def opens(self, what: Literal["arguments", "outputs", "approval_details"], tool: str) -> bool:
        """Whether a private text of this tool may leave."""
        return _opens(getattr(self, what), tool)

    def __post_init__(self) -> None:
        for what in ("arguments", "outputs", "approval_details"):
            names = getattr(self, what)
            if isinstance(names, str) and names != "all":
                raise UsageError(f"{what}={names!r} names no list of tools; write [{names!r}], or 'all'")
            if not isinstance(names, Collection):
                raise UsageError(f"{what} is a list of tools, or 'all', not {names!r:.80}")
        if isinstance(self.mask, str) or not isinstance(self.mask, Collection):
            raise UsageError("mask is a list of texts and compiled patterns; write one as [...]")
        for each in self.mask:
            if not isinstance(each, str | re.Pattern):
                raise UsageError(f"mask holds texts and compiled patterns, not {type(each).__name__}")
        for what in ("hold", "max_chars"):
            if not isinstance(number := getattr(self, what), int):
                raise UsageError(f"{what} is a number of characters, not {number!r:.80}")


@dataclass(slots=True)
class _Held:
    """Streamed text that was not released yet, and the payload to release it with."""

    type_: str
    payload: dict[str, Any]
    text: str = ""


class Screen:
    """Applies one disclosure to the drafts of one run, in order."""

    def __init__(self, disclosure: Disclosure) -> None:
        self.disclosure = disclosure
        self._masks = Masks(disclosure.mask, disclosure.hold)
        self._held: dict[tuple[str, str], _Held] = {}
        self._tools: dict[str, str] = {}
        self._argument_room: dict[str, int] = {}

    @property
    def transparent(self) -> bool:
        """Whether answers pass unchanged because nothing is masked."""
        return not self._masks

    def pass_on(self, type_: str, payload: dict[str, Any]) -> Iterable[Draft]:
        """What may leave of one draft: nothing, or the draft without its closed fields, after held text it releases."""
        if payload.get("channel") == "reasoning" and not self.disclosure.reasoning:
            return ()
        if type_ == "text.delta":
            key = payload["item_id"], payload.get("channel", "answer")
            return self._delta(key, type_, payload) if self._masks else ((type_, payload),)
        if type_ == "tool.arguments.delta":
            return self._argument_delta(type_, payload)
        return self._whole(type_, payload)

    def release(self) -> Iterator[Draft]:
        """Everything that is still held back, masked."""
        for key in list(self._held):
            yield from self._release(key)

    def mask(self, text: str) -> str:
        """A text with every masked part replaced."""
        return self._masks.text(text)

    def _whole(self, type_: str, payload: dict[str, Any]) -> Iterator[Draft]:
        if type_ == "text.completed":
            yield from self._release((payload["item_id"], payload.get("channel", "answer")))
        elif type_ == "tool.arguments.completed" or type_ in _SETTLED:
            yield from self._release((payload["call_id"], "arguments"))
        elif type_ == "tool.requested":
            self._tools[payload["call_id"]] = payload["name"]
        elif type_ in ENDINGS:
            yield from self.release()
        kept = self._without_closed(type_, payload)
        if kept is not None:
            yield type_, (self._masked(type_, kept) if self._masks else kept)

    def _without_closed(self, type_: str, payload: dict[str, Any]) -> dict[str, Any] | None:
        closed = private_fields(type_) & payload.keys()
        if not closed:
            return payload
        kept = dict(payload)
        for name in closed:
            if self._is_open(type_, name, payload):
                kept[name] = self._capped(payload[name])
            elif type_ == "tool.arguments.completed":
                return None
            else:
                del kept[name]
        return kept

    def _is_open(self, type_: str, name: str, payload: Mapping[str, Any]) -> bool:
        tool = payload.get("tool") or payload.get("name") or self._tools.get(payload.get("call_id", ""), "")
        if type_ == "app.checked":
            return self.disclosure.verdict_reasons
        if type_ == "approval.wait":
            return self.disclosure.opens("approval_details", tool)
        if name == "output":
            return self.disclosure.opens("outputs", tool)
        return name != "ref" and self.disclosure.opens("arguments", tool)

    def _capped(self, text: str) -> str:
        # Masked before it is cut: a secret cut in half would no longer be found.
        text, limit = self.mask(text), self.disclosure.max_chars
        return text if len(text) <= limit else text[:limit] + CUT

    def _masked(self, type_: str, payload: dict[str, Any]) -> dict[str, Any]:
        if type_.startswith(NOTE_PREFIX):
            masked: dict[str, Any] = self._masks.free(payload)
            return masked
        return {name: part if name in _IDENTITY else self._masks.free(part) for name, part in payload.items()}

    # Text that arrives in pieces.

    def _argument_delta(self, type_: str, payload: dict[str, Any]) -> Iterable[Draft]:
        call_id = payload["call_id"]
        if not self.disclosure.opens("arguments", self._tools.get(call_id, "")):
            return
        for _, part in self._delta((call_id, "arguments"), type_, payload):
            yield from self._with_room(type_, part)

    def _with_room(self, type_: str, part: dict[str, Any]) -> Iterator[Draft]:
        call_id = part["call_id"]
        room = self._argument_room.get(call_id, self.disclosure.max_chars)
        if room > 0:
            self._argument_room[call_id] = room - len(part["text"])
            yield type_, {**part, "text": part["text"][:room]}

    def _delta(self, key: tuple[str, str], type_: str, payload: dict[str, Any]) -> Iterator[Draft]:
        held = self._held.setdefault(key, _Held(type_, payload))
        held.text += payload["text"]
        cut = self._masks.safe_cut(held.text)
        if cut:
            safe, held.text = held.text[:cut], held.text[cut:]
            yield type_, {**payload, "text": self.mask(safe)}

    def _release(self, key: tuple[str, str]) -> Iterator[Draft]:
        held = self._held.pop(key, None)
        if held is not None and held.text:
            rest = {**held.payload, "text": self.mask(held.text)}
            yield from self._with_room(held.type_, rest) if "call_id" in rest else ((held.type_, rest),)
