"""The same script with its streams cut at every frame: whether a run ever says done with less than the whole."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, ParamSpec, Unpack, overload

from .answers import Answer
from .played import Played, run_script_async
from .steps import Cut, HangUp, cut, hang_up
from .turns import Turn, stopped

if TYPE_CHECKING:
    from agents import Agent, TResponseInputItem

    from agents_progress.decorate import Decorated
    from agents_progress.options import Given

P = ParamSpec("P")

WAYS: Final[tuple[tuple[str, Cut | HangUp], ...]] = (
    ("the connection breaks", cut()),
    ("the body just ends", hang_up()),
)
"""How a stream stops too early: as an error, and as if all had been said."""


class DoneTooEarly(AssertionError):
    """A run whose stream was cut said done, with less than the whole."""


class _Seen(NamedTuple):
    """What has to be there when a run says done: the published output, and what became of its tools."""

    output: str | None
    tools: dict[str, str]


@overload
def never_done_early(
    function: Decorated[P], script: Iterable[Turn | Answer], /, *args: P.args, **kwargs: P.kwargs
) -> int: ...
@overload
def never_done_early(
    agent: Agent[Any],
    script: Iterable[Turn | Answer],
    /,
    input: str | list[TResponseInputItem],
    **options: Unpack[Given],
) -> int: ...
def never_done_early(target: Any, script: Iterable[Turn | Answer], /, *args: Any, **kwargs: Any) -> int:
    """Cut every stream of a script at every frame, and let no run say done that has less than the whole.

    The script is played once as it is, and has to end done: with an output that the application's check accepts. It is
    then played again for every frame that was sent, cut in front of it: once as a broken connection, once as a body
    that ends as if all had been said. A run that says done all the same must have the output and the rows of tools of
    the whole script. Gives the number of cuts. Raises `DoneTooEarly`. Tools run each time: let them have no effects.
    Within a loop, await `never_done_early_async`.
    """
    __tracebackhide__ = True
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(never_done_early_async(target, script, *args, **kwargs))
    raise RuntimeError("an event loop is running here; write `await never_done_early_async(...)`")


@overload
async def never_done_early_async(
    function: Decorated[P], script: Iterable[Turn | Answer], /, *args: P.args, **kwargs: P.kwargs
) -> int: ...
@overload
async def never_done_early_async(
    agent: Agent[Any],
    script: Iterable[Turn | Answer],
    /,
    input: str | list[TResponseInputItem],
    **options: Unpack[Given],
) -> int: ...
async def never_done_early_async(target: Any, script: Iterable[Turn | Answer], /, *args: Any, **kwargs: Any) -> int:
    """What `never_done_early` does, within the running loop."""
    __tracebackhide__ = True
    parts = list(script)
    played = await run_script_async(target, parts, *args, **kwargs)
    played.assert_played()
    if played.view.status != "done":
        raise AssertionError(
            f"the whole script ends {played.view.status}, so that nothing can be said of its parts; it has to end "
            "done: give the function a verify= that accepts its output"
        )
    whole, cuts = _seen(played), 0
    for number, frames in enumerate(played.frames, 1):
        for at in range(frames):
            for way, step in WAYS:
                part = await run_script_async(target, _cut(parts, number, at, step), *args, **kwargs)
                _refuse_less(part, whole, f"turn {number} cut after {at} of {frames} frames ({way})")
                cuts += 1
    if not cuts:
        raise AssertionError("no answer of the script was streamed, so that there is nothing to cut")
    return cuts


def _cut(parts: Sequence[Turn | Answer], number: int, at: int, step: Cut | HangUp) -> list[Turn | Answer]:
    """The script with the stream of its n-th turn stopped."""
    turns = [place for place, part in enumerate(parts) if isinstance(part, Turn)]
    chosen = turns[number - 1]
    return [
        stopped(part, at, step) if place == chosen and isinstance(part, Turn) else part
        for place, part in enumerate(parts)
    ]


def _seen(played: Played) -> _Seen:
    return _Seen(played.outcome.final_output, played.view.tools)


def _refuse_less(part: Played, whole: _Seen, where: str) -> None:
    __tracebackhide__ = True
    seen = _seen(part)
    if part.view.status != "done" or seen == whole:
        return
    raise DoneTooEarly(
        f"{where}: the run says done with {seen.output!r} and the tools {seen.tools}; the whole script gives "
        f"{whole.output!r} and {whole.tools}. Its check accepts what was cut short: let verify= ask for more"
    )
