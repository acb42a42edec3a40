"""Which side effect ran, under which key, with which result. :mod:`.base` is the contract; each store has a module."""

from agents_progress.effects.ledger.base import Ledger

__all__ = ["Ledger"]
