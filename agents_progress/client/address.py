"""Where a server of runs is, and who asks: a URL that holds no secret, and a token that stands in a header only."""

from __future__ import annotations

import ipaddress
import logging
import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

from agents_progress.errors import UsageError

_log = logging.getLogger(__name__)
_is_word: Final = re.compile(r"[\x21-\x7e]+").fullmatch


def checked(url: str) -> str:
    """A URL without a slash at its end. Raises :exc:`UsageError`, which never quotes a secret, for one that is none."""
    try:
        parts = urlsplit(url)
        found = parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        found = False
    if not found or parts.scheme not in ("http", "https") or not url.isascii() or not url.isprintable():
        raise UsageError("this is no address of a server; give one like https://host/prefix")
    if "@" in parts.netloc or "?" in url or "#" in url:
        raise UsageError("an address holds no user, password, query or fragment; a token goes into a header of its own")
    return url.rstrip("/")


def authorization(url: str, token: str | None) -> dict[str, str]:
    """The header that carries a token; a token that others could read on its way is logged as such."""
    if token is None:
        return {}
    parts = urlsplit(url)
    if parts.scheme == "http" and not _is_here(parts):
        _log.warning("the token for %s travels unencrypted; give the address with https", parts.hostname)
    return {"Authorization": f"Bearer {header_word(token)}"}


def header_word(text: str) -> str:
    """A token or key that a header can carry. Raises :exc:`UsageError`, without quoting it, for any other."""
    if not _is_word(text):
        raise UsageError("a token or key is one word of visible ASCII characters; was it cut, or is it empty?")
    return text


def _is_here(parts: SplitResult) -> bool:
    host = parts.hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
