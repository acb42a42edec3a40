"""Sealing what is stored for later, so that whoever reads the store learns nothing and can change nothing unseen.

:class:`Key` is AES-256 in GCM, of the package `cryptography` (the extra `sealed`). Anything else with the two methods
of :class:`Seal` serves as well: a key service, for example.
"""

from __future__ import annotations

import base64
import binascii
import os
from typing import Any, Final, Protocol, runtime_checkable

from agents_progress.errors import SealExtraMissing, UsageError

_MARK: Final = "sealed:"
_NONCE: Final = 12
_KEY: Final = 32


@runtime_checkable
class Seal(Protocol):
    """Seals bytes together with what they are about, and opens them about nothing else."""

    def seal(self, plain: bytes, about: bytes) -> bytes:
        """The sealed bytes."""

    def unseal(self, sealed: bytes, about: bytes) -> bytes:
        """The plain bytes. Raises whatever it likes when they were not sealed by this, or about something else."""


class Key:
    """The first of some keys seals, each of them opens, so that keys can be changed. A key is 32 bytes in base64.

    What was stored without a seal is refused, as whoever can write to the store could have put it there; ``unsealed``
    takes it too, while something from before there was a key still waits.

    Raises :exc:`UsageError` for what is no key, and :exc:`SealExtraMissing`.
    """

    def __init__(self, *keys: str, unsealed: bool = False) -> None:
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError as error:
            raise SealExtraMissing("sealing needs cryptography; install agents-progress[sealed]") from error
        if not keys:
            raise UsageError("give at least one key; Key.new() makes one")
        self.unsealed = unsealed
        self._ciphers: list[Any] = [AESGCM(_decoded(key)) for key in keys]

    def __repr__(self) -> str:
        return f"<Key {len(self._ciphers)}>"

    @staticmethod
    def new() -> str:
        """A new key. Keep it where the store's readers cannot read it; what is sealed is lost with it."""
        return base64.b64encode(os.urandom(_KEY)).decode()

    def seal(self, plain: bytes, about: bytes) -> bytes:
        nonce = os.urandom(_NONCE)
        sealed: bytes = self._ciphers[0].encrypt(nonce, plain, about)
        return nonce + sealed

    def unseal(self, sealed: bytes, about: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag

        for cipher in self._ciphers:
            try:
                plain: bytes = cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], about)
            except InvalidTag:
                continue
            return plain
        raise UsageError("none of these keys opens it")


def _decoded(key: str) -> bytes:
    try:
        decoded = base64.b64decode(key, validate=True)
    except (binascii.Error, ValueError):
        decoded = b""
    if len(decoded) != _KEY:
        raise UsageError("a key is 32 bytes in base64; Key.new() makes one")
    return decoded


def sealed_text(text: str, about: str, seal: object) -> str:
    """A text as it is stored: sealed when there is a seal."""
    if not isinstance(seal, Seal):
        return text
    return _MARK + base64.b64encode(seal.seal(text.encode(), about.encode())).decode()


def must_be_sealed(stored: str, seal: object) -> bool:
    """Whether a stored text is not sealed, where only a sealed one may be used."""
    takes = isinstance(seal, Key) and seal.unsealed
    return isinstance(seal, Seal) and not takes and not stored.startswith(_MARK)


def plain_text(stored: str, about: str, seal: object) -> str:
    """The text behind a stored one. Raises for a sealed one that this seal does not open."""
    if not stored.startswith(_MARK):
        return stored
    if not isinstance(seal, Seal):
        raise UsageError("it is sealed; configure the key")
    return seal.unseal(base64.b64decode(stored[len(_MARK) :]), about.encode()).decode()
