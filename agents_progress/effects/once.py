"""``@once``: a tool that has its effect once, whatever calls it again.

It goes under ``@function_tool``:

```python
@function_tool(failure_error_function=worded)
@once(key="{order}", scope="shop", reconcile=ask_bank)
async def refund(order: int, eur: int) -> str: ...
```

The wrapped function keeps its name, signature and docstring, so the SDK makes the same schema of it, with or without a
`RunContextWrapper` before its arguments; a sync one stays sync, for the SDK's thread. Of the context nothing counts: it
is no argument. The rules stand in :mod:`.entry`, the steps in :mod:`.flow`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from agents_progress.effects.flow import FAILED, Ended, drive, drive_awaiting
from agents_progress.effects.ledger import Ledger
from agents_progress.effects.tool import Key, Reconcile, Terms, Tool, Whose, key_here
from agents_progress.effects.words import TOLD
from agents_progress.errors import EffectError, EffectUncertain, UsageError
from agents_progress.sdk import compat
from agents_progress.sdk.slots import mark_effect

F = TypeVar("F", bound=Callable[..., Any])

WAIT_S: Final = 60.0
"""How long a call waits for another one that has the same effect, in seconds."""


def once(
    *,
    key: Key | None = None,
    scope: Whose | None = None,
    reconcile: Reconcile | None = None,
    no_effect: type[Exception] | tuple[type[Exception], ...] = (),
    ledger: Ledger | str | None = None,
    name: str | None = None,
    wait: float = WAIT_S,
) -> Callable[[F], F]:
    """Let a tool have its effect once for each key; further calls get what the first one returned.

    ``key`` is a template over the arguments (``"{order}"``) or takes them as a mapping; without it all of them are the
    key. ``scope`` says whose effect it is: a text, or a callable of the tool's context (None for a tool that takes
    none). Without it, it is the owner's of the run. Either way tenants never share an entry.

    ``reconcile(key, arguments)`` is asked about an attempt of which nobody knows what became; ``key`` is the one that
    :func:`effect_key` gave the body. It returns :class:`Happened` with the tool's output, :class:`DidNotHappen`, which
    lets the body run again, or :class:`StillUnknown`. It may be async where the tool is. ``no_effect`` are exceptions
    of the body that prove that nothing happened; any other one leaves it uncertain.

    ``ledger`` is one, or its URL; without it, the ledger beside the run's journal, and without a journal that of the
    default file. ``name`` stands for the function's in the entry, so that it can be renamed. ``wait`` is for another
    call that has the same effect just now, in seconds.

    A call raises :exc:`EffectUncertain`, :exc:`EffectBusy`, :exc:`EffectConflict` or :exc:`EffectErased` instead of
    running the body, :exc:`EffectUnscoped` and :exc:`UsageError` for what the application has to mend, and what the
    ledger raises. ``AGENTS_PROGRESS=off`` does not switch it off.
    """
    harmless = no_effect if isinstance(no_effect, tuple) else (no_effect,)
    terms = Terms(key, scope, reconcile, harmless, ledger, name, wait)
    return lambda function: _wrapped(function, Tool(function, terms))


def _wrapped(function: F, tool: Tool) -> F:
    @functools.wraps(function)
    async def awaiting(*args: Any, **kwargs: Any) -> Any:
        with _failures_marked():
            ended = await drive_awaiting(tool.call(args, kwargs).flow())
        return _given(ended)

    @functools.wraps(function)
    def plain(*args: Any, **kwargs: Any) -> Any:
        with _failures_marked():
            ended = drive(tool.call(args, kwargs).flow())
        return _given(ended)

    return awaiting if tool.awaits else plain  # type: ignore[return-value]


def effect_key() -> str:
    """The key of the effect whose body asks, as 64 hex digits: hand it downstream as the idempotency key.

    It is the same in every attempt, whoever makes it. Raises :exc:`UsageError` outside the body of a once-only tool.
    """
    found = key_here.get()
    if found is None:
        raise UsageError("there is no effect here; call effect_key() in the body of a function under @once(...)")
    return found


def worded(context: Any, error: Exception) -> str:
    """A failure function for ``@function_tool``: tells the model that an effect may have happened, or why it was not
    had, where the SDK's own would say that it should try again. Other exceptions get the SDK's words.
    """
    if isinstance(error, EffectError):
        return str(error)
    uncertain = TOLD[EffectUncertain.code].values()
    noted = (note for note in getattr(error, "__notes__", ()) if note in uncertain)
    return next(noted, None) or compat.error_text(context, error)


@contextmanager
def _failures_marked() -> Iterator[None]:
    """Let the tool's row say why the body was not run."""
    try:
        yield
    except Exception as error:
        mark_effect(error.code if isinstance(error, EffectError) else FAILED)
        raise


def _given(ended: Ended) -> Any:
    """What a call gives, or raises; its row says how that came."""
    if ended.word is not None:
        mark_effect(ended.word)
    return ended.get()
