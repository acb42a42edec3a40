"""What a view holds as parts of the UI message stream: one function for each kind of row.

Ids that a run counts for itself carry the id of the run: one message of a client may hold several runs of a task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias, cast

from agents_progress.answers import TEXTS, Wanted, options_of
from agents_progress.bridges.base import CallNames, Cut, is_on_the_web, json_of, question_id, told_of
from agents_progress.bridges.vercel_parts import (
    AgentPart,
    ArtifactFacts,
    ArtifactPart,
    CheckFacts,
    CheckPart,
    GuardrailFacts,
    GuardrailPart,
    MovedPart,
    Part,
    QuestionPart,
    RunFacts,
    RunPart,
    SourceFacts,
    SourcePart,
    SourceUrl,
    TextDelta,
    TextEnd,
    TextStart,
    ToolError,
    ToolInput,
    ToolOutput,
    ToolPart,
    UsageFacts,
    UsagePart,
)
from agents_progress.messages import MESSAGES, Language, Status
from agents_progress.rows import Activity, Interaction, Message
from agents_progress.view import RunView

_ELSEWHERE: Final = frozenset({"hosted", "mcp"})
"""Kinds of tool that the provider of the model executes."""

Payload: TypeAlias = Mapping[str, Any]
Item: TypeAlias = tuple[str, str]
"""A text: its item and its channel."""


# Texts. A text is open from its first delta until the view has it complete; what comes after that is a part of its own,
# so that what is open can be told from the view.


def text_start(item: Item) -> Part:
    """A text begins."""
    return TextStart(type="reasoning-start" if item[1] == "reasoning" else "text-start", id=_name(item))


def text_delta(item: Item, text: str) -> Part:
    """A text goes on: most of what is sent, hence made as the dictionary that it is."""
    item_id, channel = item
    if channel == "answer":
        answer: TextDelta = {"type": "text-delta", "id": item_id, "delta": text}
        return answer
    part: TextDelta = {
        "type": "reasoning-delta" if channel == "reasoning" else "text-delta",
        "id": _name(item),
        "delta": text,
    }
    return part


def text_end(item: Item) -> Part:
    """A text is whole."""
    return TextEnd(type="reasoning-end" if item[1] == "reasoning" else "text-end", id=_name(item))


def text(message: Message) -> Iterator[Part]:
    """All of a text, as far as it came."""
    item = message.item_id, message.channel
    if message.begun:
        yield text_start(item)
        yield text_delta(item, message.text)
        if message.complete:
            yield text_end(item)


def _name(item: Item) -> str:
    return item[0] if item[1] == "answer" else f"{item[0]}/{item[1]}"


def run(view: RunView, status: Status, cut: Cut | None = None) -> Part:
    """How the run stands, and why its stream is cut where it is."""
    terminal = view.terminal or {}
    facts = RunFacts(run_id=view.run_id, task_id=view.task_id, status=status, sentence=MESSAGES[status])
    if cut is not None:
        facts["cut"] = cut
    if "reason" in terminal:
        facts["reason"] = terminal["reason"]
    if "error" in terminal:
        facts["error"] = terminal["error"]
    return RunPart(type="data-run", id="run", data=facts)


def agent(name: str) -> Part:
    """Who works."""
    return AgentPart(type="data-agent", id="agent", data={"agent": name})


def tool_input(names: CallNames, row: Activity, asked: str | None) -> Part:
    """A call of a run, with what it was asked as JSON text."""
    part = ToolInput(
        type="tool-input-available",
        toolCallId=names(row.activity_id),
        toolName=row.name,
        input=json_of(asked),
        dynamic=True,
        title=row.title,
    )
    if row.kind in _ELSEWHERE:
        part["providerExecuted"] = True
    return part


def tool_result(names: CallNames, row: Activity, language: Language) -> Iterator[Part]:
    """What came of a call that was executed, or never will be. A refused one is not told here."""
    part: ToolOutput | ToolError
    name = names(row.activity_id)
    if row.state == "returned":
        output = row.summary if row.output is None else row.output
        part = ToolOutput(type="tool-output-available", toolCallId=name, output=output, dynamic=True)
    elif row.state in ("failed", "skipped"):
        why = told_of(row, language)
        part = ToolError(type="tool-output-error", toolCallId=name, errorText=why, dynamic=True)
    else:
        return
    if row.kind in _ELSEWHERE:
        part["providerExecuted"] = True
    yield part


def tool(names: CallNames, row: Activity) -> Part:
    """What the tool parts cannot say of a call."""
    outer = row.activity_id.rpartition("/")[0]
    return ToolPart(
        type="data-tool",
        id=names(row.activity_id),
        data={
            "title": row.title,
            "kind": row.kind,
            "state": row.state,
            "inside": names(outer) if outer else None,
            "message": row.message,
            "current": row.current,
            "total": row.total,
            "duration_ms": row.duration_ms,
            "code": row.note,
            "reused": row.reused,
        },
    )


def moved(view: RunView, row: Activity) -> Part:
    """A handoff or a stage."""
    return MovedPart(
        type="data-handoff" if row.kind == "handoff" else "data-stage",
        id=f"{view.run_id}/{row.activity_id}",
        data={"title": row.title, "state": row.state},
    )


def question(names: CallNames, asked: Interaction) -> Part:
    """A question of a run to a person, and what became of it."""
    return QuestionPart(
        type="data-question",
        id=asked.interaction_id,
        data={
            "question_id": question_id(names.run_id, asked),
            "title": asked.title,
            "tool": asked.tool,
            "kind": asked.kind,
            "call_id": None if asked.call_id is None else names(asked.call_id),
            "details": asked.details,
            "expires_at": asked.expires_at,
            "approvable": asked.approvable,
            "text": wanted_of(asked),
            "options": list(options_of(asked.details, asked.options_in)),
            "decision": asked.decision,
        },
    )


def wanted_of(asked: Interaction) -> Wanted:
    """What an approval of a question does with a text."""
    return TEXTS.get(asked.kind, "refused")


def guardrail(view: RunView, number: int, payload: Payload) -> Part:
    """A guardrail that tripped; ``number`` counts those of the run from 1."""
    data = GuardrailFacts(stage=payload["stage"], name=payload["name"])
    return GuardrailPart(type="data-guardrail", id=f"{view.run_id}/guardrail-{number}", data=data)


def source(view: RunView, number: int, payload: Payload) -> Part:
    """A citation; ``number`` counts those of the run from 1. Only what is on the web is given as a link."""
    name, url = f"{view.run_id}/source-{number}", payload.get("url", "")
    if is_on_the_web(url):
        link = SourceUrl(type="source-url", sourceId=name, url=url)
        if "title" in payload:
            link["title"] = payload["title"]
        return link
    data = SourceFacts(kind=payload["kind"])
    if "title" in payload:
        data["title"] = payload["title"]
    return SourcePart(type="data-source", id=name, data=data)


def artifact(names: CallNames, payload: Payload) -> Part:
    """A file by its name: its content is not in the journal."""
    data = cast("ArtifactFacts", _only(ArtifactFacts, payload))
    if "call_id" in data:
        data["call_id"] = names(data["call_id"])
    return ArtifactPart(type="data-artifact", id=f"{names.run_id}/{payload['artifact_id']}", data=data)


def usage(payload: Payload) -> Part:
    """The tokens of the run so far."""
    return UsagePart(type="data-usage", id="usage", data=cast("UsageFacts", _only(UsageFacts, payload)))


def check(payload: Payload) -> Part:
    """The verdict of the application's check."""
    return CheckPart(type="data-check", id="check", data=cast("CheckFacts", _only(CheckFacts, payload)))


def found(names: CallNames, view: RunView) -> Iterator[Part]:
    """What a view holds without its place among the rest."""
    for number, payload in enumerate(view.sources, 1):
        yield source(view, number, payload)
    for payload in view.artifacts:
        yield artifact(names, payload)
    for number, payload in enumerate(view.guardrails, 1):
        yield guardrail(view, number, payload)


def _only(shape: Any, payload: Payload) -> dict[str, Any]:
    return {name: payload[name] for name in shape.__annotations__ if name in payload}
