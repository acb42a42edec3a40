"""The timeline as pictures: one row a span, its name above its bar, so that it fits a phone and a sheet of paper.

All places are percentages of the width; a picture is as high as its rows, and a printer breaks between pictures.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from agents_progress.messages import Language
from agents_progress.plaintext import clean, cut
from agents_progress.report.markup import Markup, element, together
from agents_progress.report.words import Facts, duration, kind_and_name, state, word

_ROWS: Final = 8
"""Rows of one picture: with its axis a third of a sheet, so that little of one stays empty."""
_ROW: Final = 36
_AXIS: Final = 22
_INDENT: Final = 14
_DEEPEST: Final = 3
_NAME: Final = 34
_TICKS: Final = (1, 2, 5)
_PAUSE: Final = 0.12
"""How much of the width the time between two runs takes at most, all of it together."""
_LEAST: Final = 0.5
_MOST_TICKS: Final = 6
_APART: Final = 18
"""What the word of a tick takes of the width of a phone, in per cent."""


class Scale:
    """Where a moment lies, in per cent of the width. Time between runs is shortened where it would crush the rest."""

    def __init__(self, spans: Sequence[Facts], total_ms: int) -> None:
        gaps = [(span["start_ms"], span["end_ms"]) for span in spans if span["kind"] == "gap"]
        idle = sum(end - start for start, end in gaps)
        room = (total_ms - idle) * _PAUSE
        self.shortened = idle > room > 0
        factor = room / idle if self.shortened else 1.0
        self._edges, self._places = [0.0], [0.0]
        for start, end in gaps:
            self._edge(start, 1.0)
            self._edge(end, factor)
        self._edge(max(total_ms, 1), 1.0)
        self._gaps = gaps if self.shortened else []

    def _edge(self, ms: float, factor: float) -> None:
        self._places.append(self._places[-1] + max(ms - self._edges[-1], 0) * factor)
        self._edges.append(max(ms, self._edges[-1]))

    def place(self, ms: float) -> float:
        """Between 0 and 100."""
        after = min(bisect_right(self._edges, ms), len(self._edges) - 1)
        left, right = self._edges[after - 1], self._edges[after]
        part = 0.0 if right <= left else min(max(ms - left, 0) / (right - left), 1.0)
        place = self._places[after - 1] + part * (self._places[after] - self._places[after - 1])
        return 100 * place / (self._places[-1] or 1.0)

    def ticks(self) -> list[int]:
        """Round moments that are far enough from each other, none of them inside shortened time."""
        drawn, step = self._places[-1], 1
        while drawn / step > _MOST_TICKS:
            step = next(wider for power in range(20) for each in _TICKS if (wider := int(each * 10**power)) > step)
        found: list[int] = []
        for start, end in pairwise([0, *(edge for gap in self._gaps for edge in gap), int(self._edges[-1])]):
            if (start, end) in self._gaps:
                continue
            for tick in range(-(-start // step) * step, end + 1, step):
                if self.place(tick) <= 100 - _APART and (
                    not found or self.place(tick) - self.place(found[-1]) >= _APART
                ):
                    found.append(tick)
        return found


def pictures(spans: Sequence[Facts], scale: Scale, total_ms: int, language: Language) -> Iterator[Markup]:
    """The spans in groups of :data:`_ROWS`; those without times cannot be drawn and are left out."""
    for first in range(0, len(spans), _ROWS):
        rows = spans[first : first + _ROWS]
        yield _picture(rows, first, scale, total_ms, language)


def _picture(rows: Sequence[Facts], first: int, scale: Scale, total_ms: int, language: Language) -> Markup:
    height = _AXIS + _ROW * len(rows)
    name, about = f"timeline-{first}", f"timeline-{first}-about"
    title = f"{word('timeline', language)} {first + 1}–{first + len(rows)}"
    words = "; ".join(_in_words(span, language) for span in rows)
    return element(
        "svg",
        element("title", title, id=name),
        element("desc", words, id=about),
        [_tick(tick, scale, height) for tick in scale.ticks()],
        [_row(span, _AXIS + _ROW * number, scale, total_ms, language) for number, span in enumerate(rows)],
        role="img",
        aria_labelledby=name,
        aria_describedby=about,
        width="100%",
        height=height,
    )


def _in_words(span: Facts, language: Language) -> str:
    kind, name = kind_and_name(span, language)
    taken = "" if span["duration_ms"] is None else duration(span["duration_ms"])
    return ", ".join(part for part in (kind, name, state(span, language), taken) if part)


def _tick(ms: int, scale: Scale, height: int) -> Markup:
    x = f"{scale.place(ms):.2f}%"
    return together(
        element("line", class_="grid", x1=x, x2=x, y1=_AXIS - 6, y2=height),
        element("text", duration(ms) if ms else "0", class_="tick", x=x, y=10),
    )


def _row(span: Facts, top: int, scale: Scale, total_ms: int, language: Language) -> Markup:
    """The name and how long it took, and below them the bar; a thin line leads from the request to the start."""
    indent = _INDENT * min(span["depth"], _DEEPEST)
    kind, name = kind_and_name(span, language)
    shown = cut(clean(f"{kind} · {name}" if name else kind), _NAME - 2 * min(span["depth"], _DEEPEST))
    begun = span["start_ms"] if span["begun_ms"] is None else span["begun_ms"]
    until = total_ms if span["end_ms"] is None else span["end_ms"]
    kinds = f"bar {span['kind']} {span['state']}{' open' if span['open'] else ''}"
    bars = [_bar(scale, begun, until, top + 17, 8, kinds)]
    if begun > span["start_ms"]:
        bars.insert(0, _bar(scale, span["start_ms"], begun, top + 20, 2, f"queue {span['kind']}"))
    return together(
        element("text", _mark(span), shown, class_=f"name {span['state']}", x=indent, y=top + 12),
        element("text", _taken(span, language), class_="taken", x="100%", y=top + 12),
        element("rect", class_="track", x=0, width="100%", y=top + 17, height=8, rx=2),
        bars,
    )


def _mark(span: Facts) -> str:
    return {"failed": "! ", "rejected": "! ", "incomplete": "! ", "tripped": "! "}.get(span["state"], "")


def _taken(span: Facts, language: Language) -> str:
    if span["duration_ms"] is None:
        return ""
    taken = duration(span["duration_ms"])
    return f"{taken} …" if span["open"] else f"≈ {taken}" if span["approximate"] else taken


def _bar(scale: Scale, start: int, end: int, y: int, height: int, kinds: str) -> Markup:
    left, right = scale.place(start), scale.place(end)
    left = min(left, 100 - _LEAST)
    width = max(right - left, _LEAST)
    return element("rect", class_=kinds, x=f"{left:.2f}%", width=f"{width:.2f}%", y=y, height=height, rx=height // 3)
