"""HTML that cannot be wrong about foreign text: whatever is not markup of ours is cleaned and escaped."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from html import escape
from typing import Final, TypeAlias

from agents_progress.plaintext import clean, clean_lines

_VOID: Final = frozenset({"br", "meta"})


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Inside: TypeAlias = "str | Iterable[Inside] | None"
"""What may stand in an element: markup, plain text, several of both, or nothing."""


def element(name: str, /, *inside: Inside, **attributes: str | float | bool | None) -> Markup:
    """One element. Attributes lose a trailing underscore and have hyphens for the others; None and False leave one
    out.
    """
    shown = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(clean("" if value is True else value))}"'
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _VOID:
        return Markup(f"<{name}{shown}>")
    return Markup(f"<{name}{shown}>{together(*inside)}</{name}>")


def together(*inside: Inside) -> Markup:
    """Several things one after the other."""
    parts: list[str] = []
    for each in inside:
        if isinstance(each, str):
            parts.append(each if isinstance(each, Markup) else escape(clean(each)))
        elif each is not None:
            parts.append(together(*each))
    return Markup("".join(parts))


def foreign(text: str) -> Markup:
    """Foreign text within a row, which keeps its own direction to itself."""
    return element("bdi", text)


def written(text: str) -> Markup:
    """Foreign text of many rows, whose line ends and tabs stay."""
    return Markup(escape(clean_lines(text)))


def document(language: str, title: str, style: str, *body: Inside) -> str:
    """A page that fetches nothing and runs nothing: its policy allows exactly this style sheet. ASCII throughout, so
    that no encoding on its way can garble it.
    """
    digest = b64encode(sha256(style.encode("ascii")).digest()).decode("ascii")
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", title),
        element("style", Markup(style)),
    )
    html = element("html", head, element("body", element("main", *body)), lang=language)
    return f"<!doctype html>\n{html}\n".encode("ascii", "xmlcharrefreplace").decode("ascii")
