"""A function under ``@once``: what its application decided, and what follows from that for one call of it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from string import Formatter
from typing import Any, Final, TypeAlias, get_type_hints

from pydantic import TypeAdapter

from agents_progress.effects.entry import Effect, Finding
from agents_progress.effects.flow import Once
from agents_progress.effects.keys import canonical, digest, shown
from agents_progress.effects.ledger import Ledger
from agents_progress.effects.outputs import adapter_of, restored, stored
from agents_progress.effects.places import ledger_beside, open_ledger
from agents_progress.effects.words import TOLD
from agents_progress.errors import EffectUnscoped, NotDecoratable, UsageError
from agents_progress.journal import DEFAULT_URL
from agents_progress.journal.base import Origin
from agents_progress.messages import Language
from agents_progress.run import Run
from agents_progress.sdk import compat
from agents_progress.sdk.intercept import run_here
from agents_progress.sdk.slots import call_here

Arguments: TypeAlias = Mapping[str, Any]
Key: TypeAlias = str | Callable[[Arguments], str | int]
Whose: TypeAlias = str | Callable[[Any], str]
Reconcile: TypeAlias = Callable[[str, Arguments], Finding | Awaitable[Finding]]

_KIND: Final = "effect/1"
"""Part of every digest: another way to make them would need another one."""

key_here: ContextVar[str | None] = ContextVar("agents_progress_effect_key", default=None)
"""The key of the effect whose body the code is in."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The options of :func:`agents_progress.effects.once.once`, as they are described there."""

    key: Key | None
    scope: Whose | None
    reconcile: Reconcile | None
    no_effect: tuple[type[Exception], ...]
    ledger: Ledger | str | None
    name: str | None
    wait: float


class Tool:
    """A function and its terms. Terms that do not fit it are refused where they are written."""

    def __init__(self, function: Callable[..., Any], terms: Terms) -> None:
        self.function = function
        self.terms = terms
        self.name = terms.name or function.__name__
        self.awaits = inspect.iscoroutinefunction(function)
        self._signature = inspect.signature(function)
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise NotDecoratable(f"{self.name} is a generator, which returns nothing to store; make it a function")
        if inspect.iscoroutinefunction(terms.reconcile) and not self.awaits:
            raise UsageError(f"{self.name} is sync, so its reconcile must be too")
        if isinstance(terms.key, str):
            self._check_template(terms.key)

    def _check_template(self, key: str) -> None:
        used = {part[1] for part in Formatter().parse(key) if part[1] is not None}
        known = self._signature.parameters
        if not used or not used <= known.keys():
            braced = ", ".join(f"{{{name}}}" for name in known)
            raise UsageError(f"the key {key!r:.80} of {self.name} must name arguments; there are {braced or 'none'}")

    @functools.cached_property
    def adapter(self) -> TypeAdapter[Any]:
        """How its outputs are stored. Made at the first call, when the names in its annotations are known."""
        try:
            return adapter_of(get_type_hints(self.function).get("return", Any))
        except NameError:
            return adapter_of(Any)

    def call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Once:
        """One call, ready to go through its steps."""
        run: Run | None = run_here()
        context, arguments = self._bound(args, kwargs)
        effect = self._effect(run, context, arguments)
        key = digest(effect.entry, effect.arguments)
        ledger, reconcile = self._ledger(run), self.terms.reconcile
        language: Language = "en" if run is None else run.plan.language
        return Once(
            ledger=ledger,
            effect=effect,
            body=self._body(key, args, kwargs),
            reconcile=None if reconcile is None else lambda: reconcile(key, arguments),
            no_effect=self.terms.no_effect,
            wait=self.terms.wait,
            stored=lambda output: stored(output, self.adapter),
            restored=lambda text: restored(text, self.adapter),
            resolve=lambda attempt, found: ledger.resolve(effect.entry, attempt, found, "reconcile", self.adapter),
            told=lambda code: TOLD[code][language],
            threaded=not inspect.iscoroutinefunction(reconcile),
        )

    def _body(self, key: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Callable[[], Any]:
        async def awaiting() -> Any:
            with _within(key):
                return await self.function(*args, **kwargs)

        def plain() -> Any:
            with _within(key):
                return self.function(*args, **kwargs)

        return awaiting if self.awaits else plain

    def _bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The tool's context, if it takes one, and its other arguments by name, defaults included."""
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        context, arguments = None, dict(bound.arguments)
        for name, value in bound.arguments.items():
            if compat.is_context(value):
                context = arguments.pop(name)
        return context, arguments

    def _effect(self, run: Run | None, context: Any, arguments: Arguments) -> Effect:
        origin = Origin() if run is None else run.plan.origin
        compared = canonical(arguments)
        key, (how, whose) = self._key(arguments, compared), self._scope(context, origin)
        return Effect(
            entry=digest(_KIND, origin.tenant, how, whose, self.name, key),
            arguments=digest(compared),
            name=shown(self.name),
            key="" if self.terms.key is None else shown(key),  # else it would be the arguments, for all to read
            scope=shown(whose or ""),
            owner=origin.owner,
            tenant=origin.tenant,
            run_id=None if run is None else run.id,
            task_id=None if run is None else run.task_id,
            call_id=None if run is None else call_here(),
        )

    def _key(self, arguments: Arguments, compared: str) -> str:
        key = self.terms.key
        if key is None:
            return compared
        made = self._filled(key, arguments) if isinstance(key, str) else key(arguments)
        if not isinstance(made, str | int) or made == "":
            raise UsageError(f"the key of {self.name} is a text or a number, and not {type(made).__name__} or empty")
        return str(made)

    def _filled(self, template: str, arguments: Arguments) -> str:
        try:
            return template.format_map(arguments)
        except KeyError:  # all other names were checked
            raise UsageError(
                f"the key {template!r:.80} of {self.name} names its context, which is no argument"
            ) from None

    def _scope(self, context: Any, origin: Origin) -> tuple[str, str | None]:
        """Whose effect it is: who said so, and the text."""
        scope = self.terms.scope
        if scope is not None:
            said = scope if isinstance(scope, str) else scope(context)
            if not isinstance(said, str) or not said:
                raise EffectUnscoped(f"the scope of {self.name} is a text, and not {type(said).__name__} or empty")
            return "tool", said
        if origin.owner is None and origin.tenant is None:
            raise EffectUnscoped(
                f"whose effect is {self.name}? Give @once(scope=...), or the run its owner or tenant with .using(...)"
            )
        return "run", origin.owner

    def _ledger(self, run: Run | None) -> Ledger:
        ledger = self.terms.ledger
        if ledger is not None:
            return open_ledger(ledger) if isinstance(ledger, str) else ledger
        return ledger_beside(run.plan.journal) if run is not None and run.plan.shared else open_ledger(DEFAULT_URL)


@contextmanager
def _within(key: str) -> Iterator[None]:
    """Put back by value, as a context may be left in another one."""
    before = key_here.get()
    key_here.set(key)
    try:
        yield
    finally:
        key_here.set(before)
