"""The SDK's own stream events as plain JSON, so that translation is checked against releases that are not installed.

`streams/<release>.jsonl` has three kinds of lines for each scenario in `RECORDED`: `[name, agent, outcome]`, then
`[name, "event", event]` for each stream event of its last run on the bare SDK, then `[name, "draft", type, payload]`
for each draft that the translator makes of them without hooks. An object is written as its fields and its class under
`@`; a plain dict has no `@`. As with the golden envelopes, a release has only what differs from the newest one.

`python -m compat.streams` prints the lines of the installed SDK. `python -m compat.streams --write` reads no SDK: it
translates the events in every file anew and keeps the drafts, which shows a change of the translator as a diff.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sys
import warnings
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pydantic import BaseModel

from agents_progress.sdk.translate import Translator
from agents_progress.testing import no_network

from . import scenarios as _all_scenarios  # noqa: F401  (importing them fills the table)
from .registry import SCENARIOS
from .stage import Stage

FOLDER = Path(__file__).parent / "streams"

RECORDED = (
    "approval_pause",
    "approval_resume_reject",
    "as_tool",
    "chat_plain_stop",
    "chat_tool",
    "chat_zero_chunks",
    "completed_twice",
    "error_event",
    "failed",
    "handoff",
    "handoff_filter",
    "hosted_apply_patch",
    "hosted_code_interpreter",
    "hosted_computer",
    "hosted_custom_tool",
    "hosted_image_generation",
    "hosted_mcp_approval_no_callback",
    "hosted_mcp_call_failed",
    "hosted_mcp_list_and_call",
    "hosted_shell",
    "hosted_shell_raises",
    "hosted_tool_search",
    "hosted_unknown_item_type",
    "hosted_web_search",
    "incomplete_max_tokens",
    "max_turns_handler",
    "no_completed",
    "parallel_tools",
    "plain",
    "reasoning",
    "refusal",
    "structured_valid",
    "text_and_tool_same_turn",
    "text_delta_no_item_done_completed_empty",
    "text_plus_refusal",
    "tool",
    "tool_input_guardrail_reject",
    "two_handoffs_same_turn",
    "unknown_raw_event_type",
)
"""Scenarios that between them have every kind of event. None in which a tool fails: without hooks that is told by the
words of the installed SDK.
"""

OF_A_RESPONSE = ("id", "object", "status", "output", "usage", "error", "incomplete_details")
"""The fields of a response that are kept: the others repeat the request, in every one of its events."""

Draft = tuple[str, Any]


@dataclasses.dataclass(frozen=True)
class Recording:
    """The stream of one run, and what the translator makes of it."""

    scenario: str
    agent: str
    outcome: str
    events: list[Any]
    """As JSON values."""
    drafts: list[Draft]


def plain(value: Any) -> Any:
    """A part of a stream event as JSON values."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return {"@": type(value).__name__, **{name: plain(part) for name, part in _fields(value)}}


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    """What is written of an object: of agents and handoffs their names, of what is not known only the class."""
    if isinstance(value, BaseModel):
        is_response = getattr(value, "object", None) == "response"
        yield from ((name, part) for name, part in value if not is_response or name in OF_A_RESPONSE)
    elif hasattr(value, "handoffs"):
        yield from (("name", value.name), ("handoffs", [_handoff(target) for target in value.handoffs]))
    elif dataclasses.is_dataclass(value):
        names = (field.name for field in dataclasses.fields(value))
        yield from ((name, getattr(value, name)) for name in names if not name.startswith("_"))


def _handoff(target: Any) -> dict[str, Any]:
    """A handoff or the agent itself, which does for one; not its own handoffs, which may lead back."""
    names = ("agent_name", "tool_name") if hasattr(target, "agent_name") else ("name",)
    return {"@": type(target).__name__, **{name: getattr(target, name) for name in names}}


class _Fields(SimpleNamespace):
    """Stands for the object that was written."""

    def model_dump(self, **_: Any) -> dict[str, Any]:
        """Its fields as plain values, as a pydantic model gives them."""
        return {name: _dumped(part) for name, part in vars(self).items() if part is not None}


def _dumped(part: Any) -> Any:
    if isinstance(part, list):
        return [_dumped(each) for each in part]
    return part.model_dump() if isinstance(part, _Fields) else part


def restored(value: Any) -> Any:
    """What `plain` wrote, read by attributes where it was an object."""
    if isinstance(value, list):
        return [restored(part) for part in value]
    if not isinstance(value, dict):
        return value
    parts = {name: restored(part) for name, part in value.items() if name != "@"}
    return _Fields(**parts) if "@" in value else parts


def translated(agent: str, outcome: str, events: Iterable[Any]) -> list[Draft]:
    """The drafts of a stream, as plain JSON values."""
    translator = Translator(agent, monotonic=lambda: 0.0, hooked=False)
    drafts = [*translator.translate(iter(events)), *translator.run_ended(outcome)]
    return [(type_, json.loads(json.dumps(payload))) for type_, payload in drafts]


def again(recording: Recording) -> list[Draft]:
    """The drafts of a recorded stream."""
    return translated(recording.agent, recording.outcome, restored(recording.events))


async def record(name: str) -> Recording:
    """Play one scenario on the bare SDK and record its last run."""
    events: list[Any] = []

    def watch(result: Any) -> None:
        original = result.stream_events
        events.clear()

        async def recorded() -> AsyncIterator[Any]:
            async for event in original():
                events.append(event)
                yield event

        result.stream_events = recorded

    stage = Stage(watch)
    await asyncio.wait({asyncio.ensure_future(_play(name, stage))}, timeout=10)
    agent, outcome = stage.results[0].current_agent.name, SCENARIOS[name].outcome
    if events and events[0].type == "agent_updated_stream_event":
        agent = events[0].new_agent.name
    return Recording(name, agent, outcome, [plain(event) for event in events], translated(agent, outcome, events))


async def _play(name: str, stage: Stage) -> None:
    try:
        await SCENARIOS[name].play(stage)
    except Exception as error:  # noqa: BLE001  (how it ends is measured elsewhere)
        print(f"{name}: {type(error).__name__}", file=sys.stderr)


# The files.


def path(release: str) -> Path:
    """Where the streams of a release are kept."""
    return FOLDER / f"{release}.jsonl"


def lines(recording: Recording) -> Iterator[str]:
    """One recording as it is kept."""
    name = recording.scenario
    yield _json([name, recording.agent, recording.outcome])
    yield from (_json([name, "event", event]) for event in recording.events)
    yield from (_json([name, "draft", type_, payload]) for type_, payload in recording.drafts)


def read(text: str) -> dict[str, Recording]:
    """The recordings in lines."""
    found: dict[str, Recording] = {}
    for line in text.splitlines():
        name, first, *rest = json.loads(line)
        if first == "event":
            found[name].events.append(rest[0])
        elif first == "draft":
            found[name].drafts.append((rest[0], rest[1]))
        else:
            found[name] = Recording(name, first, rest[0], [], [])
    return found


def recordings(release: str, newest: str) -> dict[str, Recording]:
    """Every stream as a release makes it."""
    return {
        **read(path(newest).read_text(encoding="utf-8")),
        **read(path(release).read_text(encoding="utf-8")),
    }


def write(release: str, recordings: Iterable[Recording], newest: Mapping[str, Recording] | None) -> None:
    """Keep the streams of a release, without what is the same on the newest; None for the newest itself."""
    FOLDER.mkdir(exist_ok=True)
    kept = [each for each in recordings if newest is None or each != newest.get(each.scenario)]
    path(release).write_text("".join(f"{line}\n" for each in kept for line in lines(each)), encoding="utf-8")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


async def _print_all() -> None:
    for name in RECORDED:
        for line in lines(await record(name)):
            print(line)


def main(arguments: list[str]) -> int:
    if arguments == ["--write"]:
        for file in sorted(FOLDER.glob("*.jsonl")):
            recordings = read(file.read_text(encoding="utf-8")).values()
            write(file.stem, [dataclasses.replace(each, drafts=again(each)) for each in recordings], None)
        return 0
    from agents import set_tracing_disabled

    set_tracing_disabled(True)  # the SDK's default exporter would try to reach the network
    warnings.simplefilter("ignore")
    with no_network(loopback=True):
        asyncio.run(_print_all())
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
