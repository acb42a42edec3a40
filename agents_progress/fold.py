"""One step of the fold per event type: what an envelope changes in a view, and which steps contradict what was said
before.

:data:`FOLDS` is the whole of it. A step raises :exc:`Contradiction` before it changes anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from agents_progress.events import Envelope
from agents_progress.rows import OPEN_STATES, Activity, Interaction, Message, ToolState
from agents_progress.standing import UPDATES
from agents_progress.verify import digest

if TYPE_CHECKING:
    from agents_progress.view import RunView

Fold: TypeAlias = "Callable[[RunView, Envelope], None]"


class Contradiction(Exception):
    """The envelope contradicts what the run said before."""


def _nothing(view: RunView, envelope: Envelope) -> None:
    """Facts of the standing, or facts nobody shows."""


def _require(holds: bool) -> None:
    if not holds:
        raise Contradiction


# Runs and agents.


def _run_started(view: RunView, envelope: Envelope) -> None:
    payload = envelope.payload
    _require(view.agent is None)
    view.agent = payload["agent"]
    _name_run(view, payload)


def _run_accepted(view: RunView, envelope: Envelope) -> None:
    _require(not view.standing.moved and not view.standing.accepted)
    _name_run(view, envelope.payload)


def _name_run(view: RunView, payload: Mapping[str, Any]) -> None:
    view.task_id = payload["task_id"]
    view.title = payload.get("title", view.title)


def _agent_changed(view: RunView, envelope: Envelope) -> None:
    view.agent = envelope.payload["agent"]


def _run_ended(view: RunView, envelope: Envelope) -> None:
    payload = envelope.payload
    if payload["outcome"] == "succeeded":
        _require(not view.standing.cancel_requested)
        _require(not view.standing.open_interactions)
        _require(not any(row.open for row in view.rows.values() if row.kind not in ("handoff", "stage")))
    view.terminal = payload


def _run_lost(view: RunView, envelope: Envelope) -> None:
    view.terminal = envelope.payload


def _app_checked(view: RunView, envelope: Envelope) -> None:
    _require(view.standing.outcome == "succeeded" and view.terminal is not None)
    output = view.terminal["final_output"] if view.terminal else None
    _require(output is not None and digest(output) == envelope.payload["digest"])
    view.verdict = envelope.payload


def _usage_updated(view: RunView, envelope: Envelope) -> None:
    view.usage = envelope.payload


def _append_to(name: str) -> Fold:
    def fold(view: RunView, envelope: Envelope) -> None:
        getattr(view, name).append(envelope.payload)

    return fold


# Responses of the model, and their text.


def _model_started(view: RunView, envelope: Envelope) -> None:
    view.responses.append(envelope.seq)


def _message(view: RunView, payload: Mapping[str, Any]) -> Message:
    item_id, channel = payload["item_id"], payload.get("channel", "answer")
    message = view.texts.get((item_id, channel))
    if message is None:
        message = view.texts[item_id, channel] = Message(item_id, channel)
    return message


def _text_delta(view: RunView, envelope: Envelope) -> None:
    payload = envelope.payload
    message = view.texts.get((payload["item_id"], payload.get("channel", "answer"))) or _message(view, payload)
    if not message.deltas:
        message.begin(envelope.seq)
    if payload["index"] == message.deltas:
        message.append(payload["text"])
        return
    message.missing_start = message.missing_start or message.deltas == 0
    message.deltas = payload["index"]
    message.append(payload["text"])
    raise Contradiction


def _text_completed(view: RunView, envelope: Envelope) -> None:
    payload = envelope.payload
    message = _message(view, payload)
    if payload.get("text"):
        message.begin(envelope.seq)
    if "text" in payload:
        message.replace(payload["text"])
    message.complete = True


# Tools.


def _row(view: RunView, envelope: Envelope, states: frozenset[str] = OPEN_STATES) -> Activity:
    """The tool row an envelope speaks of, which must be in one of these states."""
    row = view.rows.get(envelope.payload["call_id"])
    if row is None or row.state not in states or row.kind in ("handoff", "stage"):
        raise Contradiction
    return row


def _tool_requested(view: RunView, envelope: Envelope) -> None:
    payload = envelope.payload
    call_id = payload["call_id"]
    _require(call_id not in view.rows and ":" not in call_id)
    view.rows[call_id] = Activity(
        call_id,
        payload["kind"],
        payload["name"],
        payload.get("title", payload["name"]),
        seq=envelope.seq,
        since=envelope.occurred_at,
        arguments=payload.get("arguments"),
    )


def _tool_started(view: RunView, envelope: Envelope) -> None:
    row = _row(view, envelope, frozenset({"requested"}))
    row.state, row.since = "running", envelope.occurred_at


def _tool_arguments_delta(view: RunView, envelope: Envelope) -> None:
    row = _row(view, envelope)
    _require(envelope.payload["index"] == row.argument_deltas)
    row.argument_deltas += 1


def _tool_arguments_completed(view: RunView, envelope: Envelope) -> None:
    _row(view, envelope).arguments = envelope.payload["arguments"]


def _tool_progress(view: RunView, envelope: Envelope) -> None:
    row, payload = _row(view, envelope), envelope.payload
    row.message, row.current, row.total = payload["message"], payload["current"], payload["total"]


def _tool_settled(state: ToolState) -> Fold:
    def fold(view: RunView, envelope: Envelope) -> None:
        row, payload = _row(view, envelope), envelope.payload
        row.state = state
        row.note = payload.get("reason", payload.get("code"))
        row.summary = payload.get("summary", payload.get("message"))
        row.duration_ms = payload.get("duration_ms")
        row.output = payload.get("output")
        row.reused = payload.get("reused", False)

    return fold


# Handoffs, stages, interactions.


def _handoff_requested(view: RunView, envelope: Envelope) -> None:
    payload = envelope.payload
    activity_id = f"handoff:{len(view.handoffs) + 1}"  # no call id holds a colon
    view.handoffs.append(activity_id)
    view.rows[activity_id] = Activity(
        activity_id,
        "handoff",
        payload["to_agent"],
        f"{payload['from_agent']} → {payload['to_agent']}",
        state="running",
        seq=envelope.seq,
        since=envelope.occurred_at,
    )


def _handoff_completed(view: RunView, envelope: Envelope) -> None:
    waiting = [view.rows[name] for name in view.handoffs if view.rows[name].open]
    if not waiting:
        _handoff_requested(view, envelope)
        waiting = [view.rows[view.handoffs[-1]]]
    target = envelope.payload["to_agent"]
    row = next((row for row in waiting if row.name == target), waiting[-1])
    row.state, row.name = "returned", target
    row.title = f"{envelope.payload['from_agent']} → {target}"


def _stage_started(view: RunView, envelope: Envelope) -> None:
    payload = envelope.payload
    activity_id = f"stage:{payload['stage_id']}"
    _require(activity_id not in view.rows)
    view.rows[activity_id] = Activity(
        activity_id,
        "stage",
        payload["title"],
        payload["title"],
        state="running",
        seq=envelope.seq,
        since=envelope.occurred_at,
    )


def _stage_completed(view: RunView, envelope: Envelope) -> None:
    row = view.rows.get(f"stage:{envelope.payload['stage_id']}")
    if row is None or not row.open:
        raise Contradiction
    row.state = "returned"


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _names(value: Any) -> dict[str, bool] | None:
    """The arguments that a call may be approved with; None for what is no such list."""
    fits = isinstance(value, dict) and all(isinstance(needed, bool) for needed in value.values())
    return dict(value) if fits else None


_MORE: Final[Mapping[str, Callable[[Any], Any]]] = {
    "approve_blind": lambda value: value is True,
    "takes": _names,
    "options_in": _text,
    "edited_from": _text,
}
"""What a question may say in its ``x``, and how each is read: what does not fit is as good as absent."""


def _approval_wait(view: RunView, envelope: Envelope) -> None:
    payload = {name: value for name, value in envelope.payload.items() if name != "x"}
    _require(payload["interaction_id"] not in view.interactions)
    more = {name: _MORE[name](value) for name, value in envelope.payload.get("x", {}).items() if name in _MORE}
    view.interactions[payload["interaction_id"]] = Interaction(**payload, **more, seq=envelope.seq)


def _approval_resolved(view: RunView, envelope: Envelope) -> None:
    payload = envelope.payload
    row = view.interactions.get(payload["interaction_id"])
    if row is None or row.decision is not None:
        raise Contradiction
    row.decision, row.actor = payload["decision"], payload.get("actor")
    row.edited_from = _text(payload.get("x", {}).get("edited_from")) or row.edited_from


FOLDS: Final[Mapping[str, Fold]] = {
    "run.accepted": _run_accepted,
    "run.started": _run_started,
    "agent.changed": _agent_changed,
    "model.started": _model_started,
    "model.completed": _nothing,
    "model.incomplete": _nothing,
    "model.failed": _nothing,
    "text.delta": _text_delta,
    "text.completed": _text_completed,
    "tool.requested": _tool_requested,
    "tool.arguments.delta": _tool_arguments_delta,
    "tool.arguments.completed": _tool_arguments_completed,
    "tool.started": _tool_started,
    "tool.progress": _tool_progress,
    "tool.finished": _tool_settled("returned"),
    "tool.failed": _tool_settled("failed"),
    "tool.rejected": _tool_settled("rejected"),
    "tool.skipped": _tool_settled("skipped"),
    "handoff.requested": _handoff_requested,
    "handoff.completed": _handoff_completed,
    "approval.wait": _approval_wait,
    "approval.resolved": _approval_resolved,
    "guardrail.tripped": _append_to("guardrails"),
    "stage.started": _stage_started,
    "stage.completed": _stage_completed,
    "source.cited": _append_to("sources"),
    "artifact.created": _append_to("artifacts"),
    "usage.updated": _usage_updated,
    "cancel.requested": _nothing,
    "adapter.unsupported": _nothing,
    "run.ended": _run_ended,
    "run.lost": _run_lost,
    "app.checked": _app_checked,
}

STEADY: Final[Mapping[str, Fold]] = {type_: fold for type_, fold in FOLDS.items() if type_ not in UPDATES}
"""The steps that leave the standing of a moving run as it is."""
