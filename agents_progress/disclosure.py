"""What may leave the process. Applied once, before the journal, so that no replay, export or page shows more than another.

Closed by default: reasoning, tool arguments, tool outputs, details of an approval, a verifier's reasons. :class:`Disclosure` opens
them by name, with caps, and masks anything, the answer included. Exception texts, prompts, paths and stack traces have no field
in the protocol at all.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from agents_progress.events import private_fields

Draft: TypeAlias = tuple[str, dict[str, Any]]
"""An event before it is stamped: its type and its payload."""

Names: TypeAlias = Collection[str] | Literal["all"]

MASKED: Final = "[masked]"
CUT: Final = "… [cut]"
_IDENTITY: Final = frozenset(
    "item_id call_id interaction_id response_id stage_id artifact_id task_id run_id resumed_from parent channel kind outcome "
    "status decision mode digest sha256 media_type expires_at protocol".split()
)
"""Fields that link events or come from closed lists: masking them would break the log and protect nobody."""


def _opens(names: Names, name: str) -> bool:
    return names == "all" or name in names


@dataclass(frozen=True, slots=True)
class Disclosure:
    """What an application opens and masks.

    ``arguments`` and ``outputs`` name tools, or are ``"all"``. ``mask`` holds literal texts and compiled patterns; every free text
    passes them, and in streamed text the last ``hold`` characters are kept back, so that a secret of up to that length is found
    however it is split. ``max_chars`` caps each opened argument and output.
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

    def pattern(self) -> re.Pattern[str] | None:
        """All masks as one pattern, None without masks. An empty text is no mask."""
        parts = [mask.pattern if isinstance(mask, re.Pattern) else re.escape(mask) for mask in self.mask if mask]
        return re.compile("|".join(f"(?:{part})" for part in parts)) if parts else None


@dataclass(slots=True)
class _Held:
    """Streamed text that was not released yet, of one item and channel."""

    payload: dict[str, Any]
    text: str = ""


@dataclass(slots=True)
class Screen:
    """Applies one disclosure to the drafts of one run, in order."""

    disclosure: Disclosure
    _pattern: re.Pattern[str] | None = field(init=False)
    _held: dict[tuple[str, str], _Held] = field(init=False, default_factory=dict)
    _tools: dict[str, str] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._pattern = self.disclosure.pattern()

    def pass_on(self, type_: str, payload: dict[str, Any]) -> Iterable[Draft]:
        """What may leave of one draft: nothing, the draft with closed fields removed, or held text released before it."""
        if type_ == "text.delta":
            if payload.get("channel") == "reasoning" and not self.disclosure.reasoning:
                return ()
            return ((type_, payload),) if self._pattern is None else self._delta(payload)
        return self._whole(type_, payload)

    def release(self) -> Iterator[Draft]:
        """Everything that is still held back, masked."""
        for key in list(self._held):
            yield from self._release(key)

    def mask(self, text: str) -> str:
        """A text with every masked part replaced."""
        return text if self._pattern is None else self._pattern.sub(MASKED, text)

    def _whole(self, type_: str, payload: dict[str, Any]) -> Iterator[Draft]:
        if type_ == "text.completed":
            if payload.get("channel") == "reasoning" and not self.disclosure.reasoning:
                return
            yield from self._release((payload["item_id"], payload.get("channel", "answer")))
        elif type_ == "tool.requested":
            self._tools[payload["call_id"]] = payload["name"]
        elif type_ in ("run.ended", "run.lost"):
            yield from self.release()
        kept = self._without_closed(type_, payload)
        if kept is not None:
            yield type_, (kept if self._pattern is None else self._masked(kept))

    def _without_closed(self, type_: str, payload: dict[str, Any]) -> dict[str, Any] | None:
        closed = private_fields(type_) & payload.keys()
        if not closed:
            return payload
        kept = dict(payload)
        for name in closed:
            if self._is_open(type_, name, payload):
                kept[name] = self._capped(payload[name])
            elif type_.startswith("tool.arguments."):
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

    def _masked(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.mask(value)
        if isinstance(value, dict):
            return {name: part if name in _IDENTITY else self._masked(part) for name, part in value.items()}
        if isinstance(value, list):
            return [self._masked(part) for part in value]
        return value

    # Streamed text under masks.

    def _delta(self, payload: dict[str, Any]) -> Iterator[Draft]:
        key = payload["item_id"], payload.get("channel", "answer")
        held = self._held.setdefault(key, _Held(payload))
        held.text += payload["text"]
        cut = self._safe_cut(held.text)
        if cut:
            safe, held.text = held.text[:cut], held.text[cut:]
            yield "text.delta", {**payload, "text": self.mask(safe)}

    def _safe_cut(self, text: str) -> int:
        """How much of a held text no later character can turn into a secret."""
        cut = max(len(text) - self.disclosure.hold, 0)
        assert self._pattern is not None
        for match in self._pattern.finditer(text):
            # A match at the very end may still grow; one across the cut must stay whole.
            if match.start() < cut and (match.end() > cut or match.end() == len(text)):
                return match.start()
        return cut

    def _release(self, key: tuple[str, str]) -> Iterator[Draft]:
        held = self._held.pop(key, None)
        if held is not None and held.text:
            yield "text.delta", {**held.payload, "text": self.mask(held.text)}
