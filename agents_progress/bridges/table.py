"""What each protocol shows of every event of ours: one table, of which the code takes its dispatch and the docs theirs.

``python -m agents_progress.bridges.table`` prints it for the docs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

NOTES: Final = "note.*"
"""Stands for every type under `note.`."""

AG_UI: Final[Mapping[str, str]] = {
    "run.accepted": "`ACTIVITY_SNAPSHOT` (our status)",
    "run.started": "`ACTIVITY_SNAPSHOT` (our status)",
    "agent.changed": "`ACTIVITY_SNAPSHOT` (our status)",
    "model.started": "",
    "model.completed": "",
    "model.incomplete": "",
    "model.failed": "",
    "text.delta": "`TEXT_MESSAGE_START`, `TEXT_MESSAGE_CONTENT`; of reasoning `REASONING_START`, "
    "`REASONING_MESSAGE_START`, `REASONING_MESSAGE_CONTENT`",
    "text.completed": "`TEXT_MESSAGE_END`; of reasoning `REASONING_MESSAGE_END`, `REASONING_END`; before it what "
    "the deltas lacked",
    "tool.requested": "`TOOL_CALL_START`; with arguments `TOOL_CALL_ARGS`, `TOOL_CALL_END`; in a nested run under its "
    "sub-agent, which `SUBAGENT_STARTED` opens; of a call that was approved with other arguments `MESSAGES_SNAPSHOT`",
    "tool.arguments.delta": "",
    "tool.arguments.completed": "`TOOL_CALL_ARGS`, `TOOL_CALL_END`",
    "tool.started": "`ACTIVITY_SNAPSHOT` (the call); of an agent `SUBAGENT_STARTED`",
    "tool.progress": "`ACTIVITY_SNAPSHOT` (the call)",
    "tool.finished": "`TOOL_CALL_RESULT`, `ACTIVITY_SNAPSHOT` (the call); of an agent `SUBAGENT_FINISHED`",
    "tool.failed": "`TOOL_CALL_RESULT`, `ACTIVITY_SNAPSHOT` (the call); of an agent `SUBAGENT_ERROR`",
    "tool.rejected": "`TOOL_CALL_RESULT`, `ACTIVITY_SNAPSHOT` (the call); of an agent `SUBAGENT_ERROR`",
    "tool.skipped": "`TOOL_CALL_RESULT`, `ACTIVITY_SNAPSHOT` (the call); of an agent `SUBAGENT_ERROR`",
    "handoff.requested": "",
    "handoff.completed": "`CUSTOM`",
    "approval.wait": "`ACTIVITY_SNAPSHOT` (our status); the question with the ending",
    "approval.resolved": "`CUSTOM`, `ACTIVITY_SNAPSHOT` (our status)",
    "guardrail.tripped": "`CUSTOM`",
    "stage.started": "`STEP_STARTED`",
    "stage.completed": "`STEP_FINISHED`",
    "source.cited": "`CUSTOM`",
    "artifact.created": "`CUSTOM`",
    "usage.updated": "with the ending, as its usage",
    "cancel.requested": "`ACTIVITY_SNAPSHOT` (our status)",
    "adapter.unsupported": "",
    "run.ended": "what is open is closed, an output that no text said follows as one, `ACTIVITY_SNAPSHOT` (our "
    "status); `RUN_FINISHED` of a pause (interrupt) and a cancel (cancelled), `RUN_ERROR` of everything else but "
    "success",
    "run.lost": "what is open is closed, `ACTIVITY_SNAPSHOT` (our status), `RUN_ERROR` (unknown)",
    "app.checked": "`ACTIVITY_SNAPSHOT` (our status), `RUN_FINISHED` (success) or `RUN_ERROR` (check_refused)",
    NOTES: "",
}
"""Type to what is sent in AG-UI 1.0, after the `RUN_STARTED` with which a stream begins."""

VERCEL: Final[Mapping[str, str]] = {
    "run.accepted": "`start`, `data-run`",
    "run.started": "`start`, `data-agent`, `data-run`",
    "agent.changed": "`data-agent`",
    "model.started": "`start-step`",
    "model.completed": "",
    "model.incomplete": "",
    "model.failed": "",
    "text.delta": "`text-start`, `text-delta` (`text-end`); for reasoning `reasoning-` in place of `text-`",
    "text.completed": "`text-end`; `text-start`, `text-delta` for what was not streamed; `error`",
    "tool.requested": "`tool-input-available`, `data-tool`",
    "tool.arguments.delta": "",
    "tool.arguments.completed": "`tool-input-available`",
    "tool.started": "`data-tool`",
    "tool.progress": "`data-tool`",
    "tool.finished": "`tool-output-available`, `data-tool`",
    "tool.failed": "`tool-output-error`, `data-tool`",
    "tool.rejected": "`tool-approval-request`, in 7 `tool-approval-response`, `tool-output-denied`, `data-tool`",
    "tool.skipped": "`tool-output-error`, `data-tool`",
    "handoff.requested": "`data-handoff`",
    "handoff.completed": "`data-handoff`",
    "approval.wait": "`data-question`, `data-run`",
    "approval.resolved": "`data-question`, `data-run`",
    "guardrail.tripped": "`data-guardrail`",
    "stage.started": "`data-stage`",
    "stage.completed": "`data-stage`",
    "source.cited": "`source-url`, `data-source`",
    "artifact.created": "`data-artifact`",
    "usage.updated": "`data-usage`",
    "cancel.requested": "`data-run`",
    "adapter.unsupported": "",
    "run.ended": "`text-end`; `text-start`, `text-delta` of an output that no text said; `data-run`; "
    "paused: `tool-input-available`, `tool-approval-request`, `finish` with the reason tool-calls; cancelled: `abort`, "
    "`error`; else `error`",
    "run.lost": "`text-end`, `data-run`, `error`",
    "app.checked": "`data-check`, `data-run`; accepted: `finish` with the reason stop; refused: `error`",
    NOTES: "",
}
"""Type to what is sent in the UI message stream of the AI SDK, majors 6 and 7."""

CANNOT: Final[Mapping[str, str]] = {
    "run.accepted": "Neither has a run that is reserved and not started: it is begun there, our status beside it",
    "run.started": "",
    "agent.changed": "Neither has the agent at work: it stands beside our status",
    "model.started": "Responses of the model are no events of AG-UI",
    "model.completed": "A response has ended, the run has not: nothing of it may look like an ending",
    "model.incomplete": "The reason stands in the ending of the run",
    "model.failed": "The code stands in the ending of the run",
    "text.delta": "",
    "text.completed": "A text that replaces its deltas: neither can take back what it showed. AG-UI gets it as "
    "metadata, and whoever comes in later in its place. What comes after it was complete is a text of its own",
    "tool.requested": "",
    "tool.arguments.delta": "They come whole: nobody who comes in between could join their pieces",
    "tool.arguments.completed": "",
    "tool.started": "Neither tells a call that runs from one that was asked for: our status of the call goes beside it",
    "tool.progress": "Neither has counts of a tool's own: they go beside it",
    "tool.finished": "",
    "tool.failed": "A result of AG-UI cannot say that it failed: its content and metadata do",
    "tool.rejected": "AG-UI has no refused call: its result says so",
    "tool.skipped": "Neither has a call that never ran: its result says so",
    "handoff.requested": "Neither has handoffs: what is shown is the one that happened",
    "handoff.completed": "Neither has handoffs: AG-UI gets a custom event, Vercel a data part",
    "approval.wait": "AG-UI asks only where a run ends, so the question comes with the pause. A question whose "
    "details are hidden can be rejected there, and approved nowhere but where it is shown. The yes of the AI SDK has "
    "no place for words: there they are the output of the call",
    "approval.resolved": "The answer stands in the client's own messages",
    "guardrail.tripped": "Neither has guardrails; the ending carries its code",
    "stage.started": "",
    "stage.completed": "",
    "source.cited": "AG-UI has no citations",
    "artifact.created": "Both carry files as content or links, ours are told by name, type and size",
    "usage.updated": "Neither tells unknown from none: a count that is not known is left out or null, never 0",
    "cancel.requested": "Neither knows a cancel that is asked for and not confirmed: our status says so",
    "adapter.unsupported": "Neither can say that something was not understood; no success is shown after it",
    "run.ended": "Success is held back until the check. An incomplete run is an error with a code in both: both "
    "read any other ending as success",
    "run.lost": "Neither has an ending that is unknown: it is an error whose code says so",
    "app.checked": "Neither has a check by the application: an accepted output is success, a refused one an error",
    NOTES: "Ours alone",
}
"""Type to what one of them, or both, have no word for, and what stands in for it."""


class Row(NamedTuple):
    """One type of event of ours, what is sent for it in each protocol, and what they cannot say."""

    type: str
    ag_ui: str
    vercel: str
    cannot: str


TABLE: Final[tuple[Row, ...]] = tuple(Row(type_, AG_UI[type_], VERCEL[type_], CANNOT[type_]) for type_ in CANNOT)
"""Every type of ours, in the order of the protocol."""


def markdown(rows: Iterable[Row] = TABLE) -> str:
    """The table as the docs have it."""
    lines = ["| our event | AG-UI | Vercel | what they cannot say |", "| --- | --- | --- | --- |"]
    lines += [f"| `{row.type}` | {row.ag_ui or '–'} | {row.vercel or '–'} | {row.cannot or '–'} |" for row in rows]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(markdown())
