"""Text that is valid everywhere: one rule for lone surrogates and one for names, applied where text enters."""

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


def name_of(value: object) -> str:
    """Whatever is used as a name, as valid text of at most 512 characters: the most that a name may have in the
    protocol.
    """
    return valid(str(value))[:512]
