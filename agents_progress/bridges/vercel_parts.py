"""The parts of the UI message stream that are sent, for each major of the AI SDK's `ai` package.

A client fails for a part or a field that it does not know, and the first releases of a major know the least: these are
the fields of `uiMessageChunkSchema` in `ai` 6.0.0 and in 7.0.0. The tests hold every stream to the schemas themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NotRequired, TypeAlias, get_args, get_type_hints

from typing_extensions import TypedDict

from agents_progress.answers import Wanted
from agents_progress.bridges.base import Cut
from agents_progress.messages import Language, Status
from agents_progress.payloads import UsageStatus
from agents_progress.rows import ActivityKind, ToolState

Major: TypeAlias = Literal[6, 7]

IN_WORDS: Final = ("required", "option")
"""What the approval of a question does with a text, where its answer is the output of its call: a client-side tool."""


class Start(TypedDict):
    type: Literal["start"]
    messageId: NotRequired[str]


class StartStep(TypedDict):
    type: Literal["start-step"]


class TextStart(TypedDict):
    type: Literal["text-start", "reasoning-start"]
    id: str


class TextDelta(TypedDict):
    type: Literal["text-delta", "reasoning-delta"]
    id: str
    delta: str


class TextEnd(TypedDict):
    type: Literal["text-end", "reasoning-end"]
    id: str


class ToolInput(TypedDict):
    """``dynamic`` says that the client has no type for the tool, and is not asked to execute it."""

    type: Literal["tool-input-available"]
    toolCallId: str
    toolName: str
    input: Any
    dynamic: bool
    title: str
    providerExecuted: NotRequired[bool]


class ToolOutput(TypedDict):
    type: Literal["tool-output-available"]
    toolCallId: str
    output: Any
    dynamic: bool
    providerExecuted: NotRequired[bool]


class ToolError(TypedDict):
    type: Literal["tool-output-error"]
    toolCallId: str
    errorText: str
    dynamic: bool
    providerExecuted: NotRequired[bool]


class ToolDenied(TypedDict):
    type: Literal["tool-output-denied"]
    toolCallId: str


class ApprovalRequest(TypedDict):
    type: Literal["tool-approval-request"]
    approvalId: str
    toolCallId: str


class ApprovalResponse(TypedDict):
    """Only `ai` 7 knows it."""

    type: Literal["tool-approval-response"]
    approvalId: str
    approved: bool


class SourceUrl(TypedDict):
    type: Literal["source-url"]
    sourceId: str
    url: str
    title: NotRequired[str]


class Finish(TypedDict):
    type: Literal["finish"]
    finishReason: Literal["stop", "tool-calls"]


class Abort(TypedDict):
    type: Literal["abort"]


class ErrorPart(TypedDict):
    type: Literal["error"]
    errorText: str


# What no part of the protocol says, as data parts. The same type and id again replaces what was there.


class RunFacts(TypedDict):
    """How the run stands: our status with its sentence in each language, and why it ended so. ``cut`` is why the stream
    stops before that is known.
    """

    run_id: str
    task_id: str | None
    status: Status
    sentence: dict[Language, str]
    cut: NotRequired[Cut]
    reason: NotRequired[str]
    error: NotRequired[dict[str, Any]]


class RunPart(TypedDict):
    type: Literal["data-run"]
    id: str
    data: RunFacts


class AgentFacts(TypedDict):
    agent: str


class AgentPart(TypedDict):
    type: Literal["data-agent"]
    id: str
    data: AgentFacts


class MovedFacts(TypedDict):
    """One handoff or one stage; ``title`` names both agents of a handoff."""

    title: str
    state: ToolState


class MovedPart(TypedDict):
    type: Literal["data-handoff", "data-stage"]
    id: str
    data: MovedFacts


class ToolFacts(TypedDict):
    """What a tool part cannot say: that the tool runs, what it reports, inside which call. ``current`` and ``total``
    are the tool's own counts.
    """

    title: str
    kind: ActivityKind
    state: ToolState
    inside: str | None
    message: str | None
    current: float | None
    total: float | None
    duration_ms: int | None
    code: str | None
    reused: bool


class ToolPart(TypedDict):
    type: Literal["data-tool"]
    id: str
    data: ToolFacts


class QuestionFacts(TypedDict):
    """A question to a person. One that is not ``approvable`` hides what it asks: it is answered where that is shown.
    ``question_id`` is what an answer repeats, ``text`` what an approval does with a text, ``options`` are those of a
    choice. As long as ``decision`` is null, an output of the call is a person's, which a client put there.
    """

    question_id: str
    title: str
    tool: str
    kind: str
    call_id: str | None
    details: str | None
    expires_at: str | None
    approvable: bool
    text: Wanted
    options: list[str]
    decision: str | None


class QuestionPart(TypedDict):
    type: Literal["data-question"]
    id: str
    data: QuestionFacts


class SourceFacts(TypedDict):
    kind: str
    title: NotRequired[str]


class SourcePart(TypedDict):
    type: Literal["data-source"]
    id: str
    data: SourceFacts


class ArtifactFacts(TypedDict):
    name: str
    media_type: str
    bytes: int
    call_id: NotRequired[str]
    sha256: NotRequired[str]
    ref: NotRequired[str]


class ArtifactPart(TypedDict):
    type: Literal["data-artifact"]
    id: str
    data: ArtifactFacts


class GuardrailFacts(TypedDict):
    stage: str
    name: str


class GuardrailPart(TypedDict):
    type: Literal["data-guardrail"]
    id: str
    data: GuardrailFacts


class UsageFacts(TypedDict):
    """Tokens so far; null is a number that did not arrive, and never nought."""

    requests: int | None
    input_tokens: int | None
    output_tokens: int | None
    total_tokens: int | None
    cached_tokens: int | None
    reasoning_tokens: int | None
    status: UsageStatus


class UsagePart(TypedDict):
    type: Literal["data-usage"]
    id: str
    data: UsageFacts


class CheckFacts(TypedDict):
    """The verdict of the application's check on exactly this output."""

    ok: bool
    check: NotRequired[str]
    reason: NotRequired[str]


class CheckPart(TypedDict):
    type: Literal["data-check"]
    id: str
    data: CheckFacts


Part6: TypeAlias = (
    Start
    | StartStep
    | TextStart
    | TextDelta
    | TextEnd
    | ToolInput
    | ToolOutput
    | ToolError
    | ToolDenied
    | ApprovalRequest
    | SourceUrl
    | Finish
    | Abort
    | ErrorPart
    | RunPart
    | AgentPart
    | MovedPart
    | ToolPart
    | QuestionPart
    | SourcePart
    | ArtifactPart
    | GuardrailPart
    | UsagePart
    | CheckPart
)
Part7: TypeAlias = Part6 | ApprovalResponse
Part: TypeAlias = Part7


def _names(parts: Any) -> frozenset[str]:
    return frozenset(name for part in get_args(parts) for name in get_args(get_type_hints(part)["type"]))


PARTS: Final[Mapping[Major, frozenset[str]]] = {6: _names(Part6), 7: _names(Part7)}
"""The types of part that a client of each major is sent."""
