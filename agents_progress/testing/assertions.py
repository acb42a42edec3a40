"""What a test says of a run, and what it is told when that is not so: the differences first, then the evidence."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from agents_progress.messages import Status
from agents_progress.outcome import Kind
from agents_progress.plaintext import clean
from agents_progress.render import render
from agents_progress.view import RunView
from agents_progress.why import explain, table

from .played import NotOver, Played

if TYPE_CHECKING:
    from agents_progress.run import Run

Text: TypeAlias = str | re.Pattern[str]
"""A text itself, or a pattern that the whole of it matches."""

_ANY: Final = object()


def assert_ending(
    found: Played | Run,
    kind: Kind,
    /,
    *,
    code: str | None = None,
    reason: str | None = None,
    output: object = _ANY,
    accepted: bool | None = None,
) -> None:
    """Say how a run ended: its outcome, the code of its failure, the reason of its limit, its output, the verdict.

    What is left out may be anything. `output` is compared with the real object, or with the text it was published as;
    a pattern has to match the whole of that. `accepted` says whether the application's check took the output: the only
    "done" there is. Raises `AssertionError` with the evidence behind the ending, `NotOver` for a run that has none
    yet, and `ScriptNotPlayed` when the ending is right but the script was not played as it stands.
    """
    __tracebackhide__ = True  # pytest shows the line of the test, and this function's words
    outcome = found.outcome
    if outcome is None:
        raise NotOver(f"run {found.view.run_id} is {found.view.status} and has no ending yet; await it first")
    failure = None if outcome.error is None else outcome.error["code"]
    stated: list[tuple[str, Any, Any]] = [("outcome", kind, outcome.kind)]
    stated += [("code", code, failure)] if code is not None else []
    stated += [("reason", reason, outcome.reason)] if reason is not None else []
    stated += [("accepted", accepted, outcome.accepted)] if accepted is not None else []
    wrong = [row for name, expected, seen in stated if expected != seen for row in _difference(name, expected, seen)]
    if output is not _ANY and output != outcome.output and not _same(output, outcome.final_output):
        wrong += _difference("output", output, outcome.output)
    if wrong:
        raise AssertionError(_told("the run ended differently", wrong, found, table(explain(found.view, None))))
    if isinstance(found, Played):
        found.assert_played()


def assert_view(
    found: Played | Run | RunView,
    /,
    *,
    status: Status | None = None,
    message: Text | None = None,
    text: Text | None = None,
    agent: str | None = None,
    tools: Mapping[str, str | Sequence[str]] | None = None,
    asks: Sequence[str] | None = None,
) -> None:
    """Say what a person sees of a run: status, sentence, the newest answer, the agent, rows of tools, open questions.

    What is left out may be anything. `tools` names every row there is, by the name of its tool or by its call id, with
    its state; several rows of one tool as a list, in their order. `asks` names the tools of the questions that wait.
    Raises `AssertionError` with the differences and the display.
    """
    __tracebackhide__ = True
    run, view = (None, found) if isinstance(found, RunView) else (found, found.view)
    waiting = [row.tool for row in view.interactions.values() if row.decision is None]
    wrong = [
        *(_difference("status", status, view.status) if status not in (None, view.status) else ()),
        *(_text_difference("message", message, view.message)),
        *(_difference("agent", agent, view.agent) if agent not in (None, view.agent) else ()),
        *(_tool_differences(tools, view) if tools is not None else ()),
        *(_difference("asks", list(asks), waiting) if asks is not None and list(asks) != waiting else ()),
        *(_text_difference("text", text, view.text)),
    ]
    if wrong:
        shown = [f"| {row}" for row in render(view).splitlines()]
        shown += [f"issues: {', '.join(view.issues)}"] if view.issues else []
        raise AssertionError(_told("the run looks different", wrong, run, shown))


def _same(expected: object, text: str | None) -> bool:
    if text is None or not isinstance(expected, str | re.Pattern):
        return False
    return expected == text if isinstance(expected, str) else expected.fullmatch(text) is not None


def _text_difference(name: str, expected: Text | None, seen: str) -> Iterator[str]:
    if expected is None or _same(expected, seen):
        return
    if isinstance(expected, str) and ("\n" in expected or "\n" in seen):
        yield f"  {name}:"
        rows = difflib.ndiff(expected.splitlines(), seen.splitlines())
        yield from (f"    {clean(row.rstrip())}" for row in rows)
        return
    yield from _difference(name, expected, seen)


def _tool_differences(expected: Mapping[str, str | Sequence[str]], view: RunView) -> Iterator[str]:
    seen: dict[str, list[str]] = {}
    for row in view.activities:
        if row.activity_id in view.tools:
            seen.setdefault(row.activity_id if row.activity_id in expected else row.name, []).append(row.state)
    for name in dict.fromkeys([*expected, *seen]):
        stated = expected.get(name, ())
        states = [stated] if isinstance(stated, str) else list(stated)
        if states != seen.get(name, []):
            yield from _difference(f"tool {name}", states or None, seen.get(name))


def _difference(name: str, expected: object, seen: object) -> Iterator[str]:
    yield f"  {clean(name)}: expected {_worded(expected)}, found {_worded(seen)}"


def _worded(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, re.Pattern):
        return f"a match of {clean(value.pattern)!r}"
    if isinstance(value, list):
        return clean(", ".join(map(str, value))) or "none"
    if isinstance(value, str):
        return clean(json.dumps(value, ensure_ascii=False))
    return clean(f"{value!r:.500}")


def _told(what: str, wrong: Sequence[str], found: Played | Run | None, evidence: Sequence[str]) -> str:
    error = None if found is None else found.error
    unplayed = found.unplayed if isinstance(found, Played) else None
    return "\n".join(
        [
            f"{what}:",
            *wrong,
            *([f"script: {unplayed}"] if unplayed is not None else []),
            *([f"raised: {type(error).__name__}: {clean(error)}"] if error is not None else []),
            *evidence,
        ]
    )
