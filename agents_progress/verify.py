"""Acceptance: the application's own check of one output, bound to that output's digest.

A verifier takes the real output object and returns ``True``, ``False`` or a :class:`Verdict`, at once or awaited.
Nothing else is a pass: a verifier that raises, times out or returns anything else gives no verdict, and the run stays
`checking`.

The ready-made verifiers look at form. None of them knows whether an answer is true; :func:`has_output` is for
demonstrations, since "Sorry, I cannot" passes it.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import math
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from agents_progress.errors import NotPublishable, NoVerdict, UsageError
from agents_progress.unicode import valid


@dataclass(frozen=True, slots=True)
class Verdict:
    """The application accepted (``ok``) or refused one output. ``check`` names the check; ``reason`` stays private."""

    ok: bool
    check: str | None = None
    reason: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if type(self.ok) is not bool:
            raise NoVerdict(
                f"a Verdict's ok is True or False, not {type(self.ok).__name__}; a truthy value is no acceptance"
            )


Verifier: TypeAlias = Callable[[Any], "bool | Verdict | Awaitable[bool | Verdict]"]


def digest(final_output: str) -> str:
    """SHA-256 of a published output, as 64 hex digits: what a verdict is bound to."""
    return hashlib.sha256(final_output.encode()).hexdigest()


def publish(output: object) -> str:
    """The text under which an output is published, and which a verdict is bound to.

    A text stays as it is. Anything else is the JSON of its pydantic serialisation: sorted keys, compact, not
    ASCII-escaped, NaN as null, so that ``None`` is ``null``. Raises :exc:`NotPublishable` for what pydantic cannot
    serialise.
    """
    if isinstance(output, str):
        return valid(output)
    try:
        plain = _plain(to_jsonable_python(_plain(output)))
        return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError, RecursionError) as error:
        raise NotPublishable(f"an output of type {type(output).__name__} has no JSON form") from error


def _plain(value: Any) -> Any:
    """Texts made valid and NaN made null, in plain containers; everything else is left to pydantic."""
    if type(value) is str:
        return valid(value)
    if type(value) is float and not math.isfinite(value):
        return None
    if type(value) is dict:
        return {_plain(name): _plain(part) for name, part in value.items()}
    if type(value) in (list, tuple):
        return [_plain(part) for part in value]
    return value


def check_name(verifier: Verifier) -> str:
    """How a verdict names its check: the callable's own name, at most 128 characters."""
    return str(getattr(verifier, "__name__", type(verifier).__name__))[:128]


async def judge(verifier: Verifier, output: object, timeout: float | None = None) -> Verdict:
    """Ask a verifier once. A synchronous one runs in a thread, in a copy of the caller's context.

    ``timeout`` is in seconds, None for no limit. Raises whatever the verifier raises, :exc:`TimeoutError`, or
    :exc:`NoVerdict`; an exception is never a verdict.
    """
    async with asyncio.timeout(timeout):
        if inspect.iscoroutinefunction(verifier) or inspect.iscoroutinefunction(type(verifier).__call__):
            answer: Any = verifier(output)
        else:
            answer = await asyncio.to_thread(verifier, output)
        if inspect.isawaitable(answer):
            answer = await answer
    if isinstance(answer, Verdict):
        return answer if answer.check else Verdict(answer.ok, check_name(verifier), answer.reason)
    if isinstance(answer, bool):
        return Verdict(answer, check_name(verifier))
    raise NoVerdict(
        f"the verifier {check_name(verifier)} returned {type(answer).__name__}; return True, False or a Verdict"
    )


def _ready(name: str, check: Callable[[Any], Verdict]) -> Verifier:
    check.__name__ = check.__qualname__ = name
    return check


def has_output() -> Verifier:
    """Accept every output that is not empty. For demonstrations: a refusal in words passes it."""

    def check(output: Any) -> Verdict:
        there = output is not None and not (isinstance(output, str) and not output.strip())
        return Verdict(there, "has_output", None if there else "the output is empty")

    return _ready("has_output", check)


def equals(expected: object) -> Verifier:
    """Accept exactly this output."""

    def check(output: Any) -> Verdict:
        same = type(output) is type(expected) and output == expected
        return Verdict(same, "equals", None if same else "the output differs from the expected one")

    return _ready("equals", check)


def matches(pattern: str | re.Pattern[str]) -> Verifier:
    """Accept a text that a regular expression matches from its first to its last character.

    Surrounding words do not pass: put ``.*`` there when they may.
    """
    compiled: Final = re.compile(pattern)

    def check(output: Any) -> Verdict:
        whole = isinstance(output, str) and compiled.fullmatch(output) is not None
        return Verdict(whole, "matches", None if whole else "the output does not match the pattern as a whole")

    return _ready("matches", check)


def schema(model: Any) -> Verifier:
    """Accept an output that fits a pydantic model or any type pydantic knows.

    A text is read as JSON, any other output is validated as it is, strictly.
    """
    adapter: Final[TypeAdapter[Any]] = TypeAdapter(model)

    def check(output: Any) -> Verdict:
        try:
            if isinstance(output, str) and model is not str:
                adapter.validate_json(output, strict=True)
            else:
                adapter.validate_python(output, strict=True)
        except ValidationError as error:
            place = ".".join(str(part) for part in error.errors(include_input=False)[0]["loc"]) or "the output"
            return Verdict(False, "schema", f"{place} does not fit {getattr(model, '__name__', model)}")
        return Verdict(True, "schema")

    return _ready("schema", check)


def all_of(*verifiers: Verifier) -> Verifier:
    """Accept when every check accepts, asked in order; the first refusal is the verdict."""
    if not verifiers:
        raise UsageError("all_of() without checks would accept everything; give it at least one")

    async def check(output: Any) -> Verdict:
        for verifier in verifiers:
            verdict = await judge(verifier, output)
            if not verdict.ok:
                return verdict
        return Verdict(True, "all_of")

    check.__name__ = check.__qualname__ = "all_of"
    return check
