"""Text that is valid everywhere: one rule for lone surrogates, applied where text enters."""

from __future__ import annotations


def valid(text: str) -> str:
    """The text with every lone surrogate as U+FFFD; halves that meet become their character again."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
