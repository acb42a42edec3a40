"""Runs that a tool of an owned run starts: an agent's own tool, or `Runner` in a tool's body. Their doings are shown
under the tool's call; the run itself, its events and its exceptions stay the tool's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from agents_progress.sdk import compat
from agents_progress.sdk.base import refused
from agents_progress.sdk.failures import code_of
from agents_progress.sdk.hooks import RecordingHooks
from agents_progress.sdk.part import Part
from agents_progress.sdk.pump import record
from agents_progress.sdk.slots import Slot, call_here, logger_here, slot_here, within
from agents_progress.sdk.states import editable
from agents_progress.sdk.unstreamed import Unstreamed
from agents_progress.unicode import name_of


async def run(inner: Any, agent: Any, input: Any, kwargs: dict[str, Any]) -> Any:
    """`Runner.run`, read when a tool of an owned run calls it."""
    part = _part(agent, kwargs)
    if part is None:
        return await inner.run(agent, input, **kwargs)
    told, hooks = Unstreamed(part), RecordingHooks(kwargs.get("hooks"))
    hooks.attach(lambda name, args: part.say("observe", told.observe(name, args)))
    try:
        with within(_slot(part)):
            result = await inner.run(agent, input, **{**kwargs, "hooks": hooks})
    except BaseException as error:
        part.observer.run_failed(error, code_of(error))
        _end(part, "raised", told.items(_items(getattr(error, "run_data", None))))
        raise
    finally:
        hooks.detach()
    part.translator.calls.refused = partial(refused, result)
    _end(part, "paused" if result.interruptions else "returned", told.items(_items(result)))
    return result


def run_streamed(inner: Any, agent: Any, input: Any, kwargs: dict[str, Any]) -> Any:
    """`Runner.run_streamed`, read when a tool of an owned run calls it; whoever called it drains it."""
    part = _part(agent, kwargs)
    if part is None:
        return inner.run_streamed(agent, input, **kwargs)
    hooks = RecordingHooks(kwargs.get("hooks"))
    with within(_slot(part)):
        result = inner.run_streamed(agent, input, **{**kwargs, "hooks": hooks})
    part.translator.calls.refused = partial(refused, result)
    hooks.attach(lambda name, args: part.say("observe", part.observe(name, args)))
    record(result, lambda event: part.say("translate", part.translator.translate(iter((event,)))))
    task = compat.run_task(result)
    if task is not None:
        task.add_done_callback(lambda task: _streamed_end(part, result, task.cancelled() or task.exception()))
    return result


def call_inside(kwargs: Mapping[str, Any]) -> str | None:
    """The call, as events name it, of the tool of an owned run that makes an SDK call; None outside of one.

    A tool that goes on after an approval inside it gets no start of its own (0.24), but an agent's tool hands its
    context on, which names the call.
    """
    slot, found = slot_here(), call_here()
    if found is not None or slot is None or slot.part is None:
        return found
    raw_id = getattr(kwargs.get("context"), "tool_call_id", None)
    call = None if raw_id is None else slot.part.translator.calls.by_raw_id(raw_id)
    return None if call is None else slot.part.named(call.call_id)


def _part(agent: Any, kwargs: Mapping[str, Any]) -> Part | None:
    """A part for a run that is started here, None outside a tool of an owned run."""
    slot, call_id = slot_here(), call_inside(kwargs)
    if slot is None or slot.part is None or call_id is None:
        return None
    try:
        part = slot.part.inside(call_id, name_of(agent.name))
    except Exception as error:  # noqa: BLE001 - a fault of ours must not change the tool
        logger_here().error("a run inside %s is not shown: %s", call_id, type(error).__name__)
        return None
    part.editable = editable(kwargs)
    part.say("translate", part.begun())
    return part


def _slot(part: Part) -> Slot:
    outer = slot_here()
    return Slot(None if outer is None else outer.run, part)


def _streamed_end(part: Part, result: Any, failed: object) -> None:
    _end(part, "raised" if failed else "paused" if result.interruptions else "returned", ())


def _items(over: Any) -> Iterable[Any]:
    return getattr(over, "new_items", None) or ()


def _end(part: Part, how: str, more: Iterable[Any]) -> None:
    part.say("translate", more)
    part.say("translate", part.ended(how))
