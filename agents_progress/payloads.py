"""The one table of what an event may say: type -> payload shape.

Every other module reads this table: the parser for validation, the schema command for JSON Schema, disclosure for the
fields that stay closed, the tests for completeness. A field under ``NotRequired`` is absent when it is not known; ``|
None`` is written only where null means something. ``Private`` fields are absent unless the application opened them.

Source of the shapes: section "The protocol" of the design; names and types are frozen once released.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, NotRequired, TypeAlias

from pydantic import AfterValidator, ConfigDict, Field, JsonValue, StringConstraints, with_config
from typing_extensions import TypedDict

Name: TypeAlias = Annotated[str, StringConstraints(max_length=512)]
Id: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=256)]
CallId: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._#/-]{1,256}$")]
Count: TypeAlias = Annotated[int, Field(ge=0)]
Digest: TypeAlias = Annotated[str, StringConstraints(pattern="^[0-9a-f]+$", min_length=64, max_length=64)]
Amount: TypeAlias = int | float

STRICT: Final = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
"""No extra field, no conversion, no NaN."""

PRIVATE: Final = "private"
"""Marks a field that leaves the process only after the application opened it."""

Private: TypeAlias = Annotated[str, PRIVATE]

OutcomeKind: TypeAlias = Literal["succeeded", "paused", "cancelled", "failed", "incomplete"]
CancelMode: TypeAlias = Literal["immediate", "after_turn"]
CancelAnswer: TypeAlias = Literal["accepted", "already_cancelling", "already_ended"]
Channel: TypeAlias = Literal["answer", "refusal", "transcript", "reasoning"]
ToolKind: TypeAlias = Literal["function", "hosted", "mcp", "agent", "computer", "shell", "patch", "custom"]
Decision: TypeAlias = Literal["approved", "rejected", "expired", "cancelled"]
UsageStatus: TypeAlias = Literal["reported", "partial", "unavailable"]


def is_finite(value: object) -> bool:
    """Whether every float in a JSON value is one that JSON can say; ``1e400`` is read as an infinite one."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(map(is_finite, value.values()))
    return not isinstance(value, list) or all(map(is_finite, value))


def _finite(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    if not is_finite(value):
        raise ValueError("not a finite number")
    return value


Free: TypeAlias = Annotated[dict[str, JsonValue], AfterValidator(_finite)]
"""Any JSON object. That its numbers are finite is checked here: pydantic does not hold what is free to `STRICT`."""


@with_config(STRICT)
class Payload(TypedDict, total=False):
    """What every payload may carry: ``x`` holds additive detail that readers ignore."""

    x: Free


@with_config(STRICT)
class Parent(TypedDict):
    """The tool call of another run inside which this run was started."""

    run_id: Id
    call_id: CallId


@with_config(STRICT)
class Failure(TypedDict):
    """Why a run failed: a code of the closed list and a safe sentence, never an exception's own text."""

    code: Name
    message: Name
    retryable: bool
    phase: Name


class RunAccepted(Payload):
    task_id: Id
    title: NotRequired[Name]


class RunStarted(Payload):
    agent: Name
    task_id: Id
    parent: Parent | None
    resumed_from: Id | None
    title: NotRequired[Name]
    attempt: NotRequired[Annotated[int, Field(ge=1)]]


class AgentChanged(Payload):
    agent: Name


class ModelEvent(Payload):
    response_id: Id
    reason: NotRequired[Name]
    code: NotRequired[Name]


class TextDelta(Payload):
    item_id: Id
    index: Count
    text: str
    channel: NotRequired[Channel]


class TextCompleted(Payload):
    item_id: Id
    text: NotRequired[str]
    channel: NotRequired[Channel]


class ToolRequested(Payload):
    call_id: CallId
    name: Name
    kind: ToolKind
    title: NotRequired[Name]
    arguments: NotRequired[Private]


class ToolArgumentsDelta(Payload):
    call_id: CallId
    index: Count
    text: Private


class ToolArgumentsCompleted(Payload):
    call_id: CallId
    arguments: Private


class ToolStarted(Payload):
    call_id: CallId


class ToolProgress(Payload):
    call_id: CallId
    message: str
    current: Amount | None
    total: Amount | None


class ToolFinished(Payload):
    call_id: CallId
    duration_ms: NotRequired[Count]
    summary: NotRequired[str]
    output: NotRequired[Private]
    reused: NotRequired[bool]


class ToolFailed(Payload):
    call_id: CallId
    code: NotRequired[Name]
    message: NotRequired[str]
    retryable: NotRequired[bool]


class ToolClosed(Payload):
    call_id: CallId
    reason: Name


class Handoff(Payload):
    from_agent: Name
    to_agent: Name


class ApprovalWait(Payload):
    interaction_id: Id
    call_id: CallId | None
    tool: Name
    title: Name
    digest: NotRequired[Digest]
    details: NotRequired[Private]
    kind: NotRequired[Name]
    expires_at: NotRequired[Name]


class ApprovalResolved(Payload):
    interaction_id: Id
    decision: Decision
    actor: NotRequired[Name]


class GuardrailTripped(Payload):
    stage: Name
    name: Name


class Stage(Payload):
    stage_id: Id
    title: Name


class SourceCited(Payload):
    item_id: Id
    kind: Name
    title: NotRequired[Name]
    url: NotRequired[str]


class ArtifactCreated(Payload):
    artifact_id: Id
    name: Name
    media_type: Name
    bytes: Count
    call_id: NotRequired[CallId]
    sha256: NotRequired[Digest]
    ref: NotRequired[Private]


class UsageUpdated(Payload):
    requests: Count | None
    input_tokens: Count | None
    output_tokens: Count | None
    total_tokens: Count | None
    cached_tokens: Count | None
    reasoning_tokens: Count | None
    status: UsageStatus


class CancelRequested(Payload):
    mode: NotRequired[CancelMode]
    actor: NotRequired[Name]


class AdapterUnsupported(Payload):
    what: Name
    name: Name


class RunEnded(Payload):
    outcome: OutcomeKind
    final_output: str | None
    reason: NotRequired[Name]
    error: NotRequired[Failure]
    partial: NotRequired[bool]
    completed_anyway: NotRequired[bool]
    requested_by: NotRequired[Name | None]
    evidence: NotRequired[Free]


class RunLost(Payload):
    reason: Name


class AppChecked(Payload):
    digest: Digest
    ok: bool
    check: NotRequired[Name]
    reason: NotRequired[Private]


PAYLOADS: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "run.accepted": RunAccepted,
        "run.started": RunStarted,
        "agent.changed": AgentChanged,
        "model.started": ModelEvent,
        "model.completed": ModelEvent,
        "model.incomplete": ModelEvent,
        "model.failed": ModelEvent,
        "text.delta": TextDelta,
        "text.completed": TextCompleted,
        "tool.requested": ToolRequested,
        "tool.arguments.delta": ToolArgumentsDelta,
        "tool.arguments.completed": ToolArgumentsCompleted,
        "tool.started": ToolStarted,
        "tool.progress": ToolProgress,
        "tool.finished": ToolFinished,
        "tool.failed": ToolFailed,
        "tool.rejected": ToolClosed,
        "tool.skipped": ToolClosed,
        "handoff.requested": Handoff,
        "handoff.completed": Handoff,
        "approval.wait": ApprovalWait,
        "approval.resolved": ApprovalResolved,
        "guardrail.tripped": GuardrailTripped,
        "stage.started": Stage,
        "stage.completed": Stage,
        "source.cited": SourceCited,
        "artifact.created": ArtifactCreated,
        "usage.updated": UsageUpdated,
        "cancel.requested": CancelRequested,
        "adapter.unsupported": AdapterUnsupported,
        "run.ended": RunEnded,
        "run.lost": RunLost,
        "app.checked": AppChecked,
    }
)

NOTE_PREFIX: Final = "note."
"""Types under this prefix carry any object; a reader may ignore each of them."""

ENDINGS: Final = frozenset({"run.ended", "run.lost"})
"""The two types that close a run."""
