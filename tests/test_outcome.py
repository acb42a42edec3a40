"""The ending table, whole: every combination of the evidence has a value, kept in ``golden/endings.txt``, and each rule
of the design is asserted over all of them without reading the code's own table.

``python -m tests.test_outcome --write`` writes the golden file anew; look at the difference before it is committed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import fields
from itertools import product
from pathlib import Path
from typing import Any, Final, get_args, get_type_hints

import pytest

from agents_progress import outcome as module
from agents_progress.errors import OutputTypeDiffers
from agents_progress.outcome import Evidence, Kind, Outcome, owner_finished
from agents_progress.verify import Verdict

GOLDEN: Final = Path(__file__).parent / "golden" / "endings.txt"
ENUMS: Final = {
    "raised": ("nothing", "max_turns", "other"),
    "last_response_event": ("none", "completed", "incomplete", "failed"),
    "response": ("ok", "incomplete", "failed", "refused"),
}
BOOLEANS: Final = (
    "guardrail_tripped",
    "over_turn_limit",
    "drained",
    "settled",
    "is_complete",
    "interrupted",
    "cancel_requested",
    "task_cancelled",
    "has_output",
)
HEAD: Final = BOOLEANS[:4]
TAIL: Final = BOOLEANS[4:]
LETTERS: Final[dict[Kind, str]] = {
    "succeeded": "s",
    "paused": "p",
    "cancelled": "c",
    "failed": "f",
    "incomplete": "i",
    "unknown": "u",
}


def combinations() -> Iterator[Evidence]:
    for words in product(*ENUMS.values()):
        for flags in product((False, True), repeat=len(BOOLEANS)):
            known: dict[str, Any] = {**dict(zip(ENUMS, words, strict=True)), **dict(zip(BOOLEANS, flags, strict=True))}
            yield Evidence(**known)


WHOLE: Final = [(evidence, owner_finished(evidence)) for evidence in combinations()]


def letter(outcome: Outcome) -> str:
    return "C" if outcome.completed_anyway else LETTERS[outcome.kind]


def table() -> str:
    """A line for each combination of the enumerations and first four booleans, a letter for each of the other five."""
    lines = [
        "# s succeeded, p paused, c cancelled, C cancelled though an output exists, f failed, i incomplete, u unknown",
        f"# {' '.join(ENUMS)} {' '.join(HEAD)} | all combinations of: {' '.join(TAIL)} (the last one varies fastest)",
    ]
    size = 2 ** len(TAIL)
    for start in range(0, len(WHOLE), size):
        evidence = WHOLE[start][0]
        words = " ".join(f"{getattr(evidence, name):<10}" for name in ENUMS)
        flags = "".join("1" if getattr(evidence, name) else "0" for name in HEAD)
        lines.append(f"{words} {flags} {''.join(letter(outcome) for _, outcome in WHOLE[start : start + size])}")
    return "\n".join(lines) + "\n"


def test_the_combinations_cover_every_field_and_every_word() -> None:
    assert {item.name for item in fields(Evidence)} == {*ENUMS, *BOOLEANS, "reason"}
    hints = get_type_hints(Evidence, vars(module))
    assert {name: get_args(hints[name]) for name in ENUMS} == ENUMS
    assert all(hints[name] is bool for name in BOOLEANS)
    assert len(WHOLE) == len({evidence for evidence, _ in WHOLE}) == 3 * 4 * 4 * 2**9


def test_the_whole_table_is_the_golden_one() -> None:
    assert table() == GOLDEN.read_text(encoding="utf-8")


def test_every_kind_of_ending_is_reached() -> None:
    assert {outcome.kind for _, outcome in WHOLE} == set(LETTERS)
    assert {letter(outcome) for _, outcome in WHOLE} == {*"spcfiuC"}


# The design's rules, in their order.


def test_an_exceeded_turn_limit_is_incomplete_whatever_else_is_known() -> None:
    for evidence, outcome in WHOLE:
        if evidence.raised == "max_turns":
            assert (outcome.kind, outcome.reason, outcome.rule) == ("incomplete", "max_turns", 1)


def test_any_other_exception_fails_unless_the_response_was_cut_off() -> None:
    for evidence, outcome in WHOLE:
        if evidence.raised == "other":
            assert outcome.kind == ("incomplete" if evidence.last_response_event == "incomplete" else "failed")


def test_a_tripped_guardrail_fails_a_run_that_raised_nothing() -> None:
    for evidence, outcome in WHOLE:
        if evidence.raised == "nothing" and evidence.guardrail_tripped:
            assert outcome.kind == "failed"


def test_a_turn_limit_that_was_only_counted_is_incomplete() -> None:
    for evidence, outcome in WHOLE:
        if evidence.raised == "nothing" and evidence.over_turn_limit and not evidence.guardrail_tripped:
            assert (outcome.kind, outcome.reason) == ("incomplete", "max_turns")


def quiet(evidence: Evidence) -> bool:
    """Nothing was raised and no limit or guardrail spoke without raising."""
    return evidence.raised == "nothing" and not evidence.guardrail_tripped and not evidence.over_turn_limit


def test_an_iterator_not_read_to_its_end_or_a_task_still_running_proves_nothing() -> None:
    for evidence, outcome in WHOLE:
        if quiet(evidence) and not (evidence.drained and evidence.settled):
            assert (outcome.kind, outcome.rule) == ("unknown", 5)


def test_a_result_that_is_not_complete_proves_nothing() -> None:
    for evidence, outcome in WHOLE:
        if quiet(evidence) and evidence.drained and evidence.settled and not evidence.is_complete:
            assert (outcome.kind, outcome.rule) == ("unknown", 6)


def ended(evidence: Evidence) -> bool:
    return quiet(evidence) and evidence.drained and evidence.settled and evidence.is_complete


def test_interruptions_pause_even_when_a_cancel_was_asked() -> None:
    for evidence, outcome in WHOLE:
        assert (outcome.kind == "paused") is (ended(evidence) and evidence.interrupted)


def test_a_cancel_cancels_and_says_whether_an_output_existed() -> None:
    for evidence, outcome in WHOLE:
        asked = evidence.cancel_requested or evidence.task_cancelled
        assert (outcome.kind == "cancelled") is (ended(evidence) and not evidence.interrupted and asked)
        if outcome.kind == "cancelled":
            assert outcome.completed_anyway is (evidence.has_output and not evidence.task_cancelled)
        else:
            assert outcome.completed_anyway is False
        assert outcome.requested_by is None


def test_an_output_of_a_response_that_was_cut_failed_or_refused_is_no_success() -> None:
    expected = {"incomplete": "incomplete", "failed": "failed", "refused": "failed"}
    for evidence, outcome in WHOLE:
        free = not (evidence.interrupted or evidence.cancel_requested or evidence.task_cancelled)
        if ended(evidence) and free and evidence.has_output and evidence.response != "ok":
            assert outcome.kind == expected[evidence.response]


def test_success_needs_every_fact_at_once() -> None:
    for evidence, outcome in WHOLE:
        proven = (
            evidence.raised == "nothing"
            and evidence.drained
            and evidence.settled
            and evidence.is_complete
            and evidence.has_output
            and evidence.response == "ok"
            and not evidence.guardrail_tripped
            and not evidence.over_turn_limit
            and not evidence.interrupted
            and not evidence.cancel_requested
            and not evidence.task_cancelled
        )
        assert (outcome.kind == "succeeded") is proven


def test_not_drained_not_complete_no_candidate_is_no_success() -> None:
    for change in ({"drained": False}, {"is_complete": False}, {"has_output": False}, {"settled": False}):
        evidence = Evidence(**{"has_output": True, **change})  # type: ignore[arg-type]
        assert owner_finished(evidence).kind == "unknown", change
    assert owner_finished(Evidence(drained=False, is_complete=False)).kind == "unknown"


def test_no_output_is_unknown_when_nothing_else_was_seen() -> None:
    outcome = owner_finished(Evidence())
    assert (outcome.kind, outcome.rule, outcome.reason) == ("unknown", 11, "no_output")


def test_no_single_field_decides_success() -> None:
    """Whatever one field says, there is evidence with which the run succeeded not."""
    for name in (*BOOLEANS, *ENUMS):
        for value in {getattr(evidence, name) for evidence, _ in WHOLE}:
            kinds = {outcome.kind for evidence, outcome in WHOLE if getattr(evidence, name) == value}
            assert kinds != {"succeeded"}


def test_the_raw_terminal_event_alone_never_decides() -> None:
    for evidence, outcome in WHOLE:
        if evidence.raised == "nothing" and evidence.last_response_event == "none":
            for event in ENUMS["last_response_event"]:
                other = Evidence(**{**evidence.to_dict(), "last_response_event": event})
                assert owner_finished(other).kind == outcome.kind


def test_the_reason_is_for_people_and_never_decides() -> None:
    cut = Evidence(raised="other", last_response_event="incomplete", reason="max_output_tokens")
    assert owner_finished(cut).reason == "max_output_tokens"
    assert owner_finished(Evidence(raised="other", last_response_event="incomplete")).reason == "response_incomplete"
    for evidence, outcome in WHOLE[::7]:
        again = owner_finished(Evidence(**{**evidence.to_dict(), "reason": "content_filter"}))
        assert (again.kind, again.rule) == (outcome.kind, outcome.rule)


def test_the_same_evidence_gives_the_same_outcome() -> None:
    for evidence, outcome in WHOLE[::11]:
        assert owner_finished(evidence) == outcome
        assert outcome.evidence is evidence


# The value.


def test_only_an_accepted_success_is_accepted() -> None:
    def outcome(kind: Kind, verdict: Verdict | None) -> Outcome:
        return Outcome(kind, 10, Evidence(), verdict=verdict)

    assert outcome("succeeded", Verdict(True)).accepted
    assert not outcome("succeeded", None).accepted
    assert not outcome("succeeded", Verdict(False)).accepted
    assert not any(outcome(kind, Verdict(True)).accepted for kind in LETTERS if kind != "succeeded")


def test_the_output_is_given_only_as_the_type_it_has() -> None:
    outcome = Outcome("succeeded", 10, Evidence(), output={"total": 5})
    assert outcome.output_as(dict) == {"total": 5}
    with pytest.raises(OutputTypeDiffers, match="dict, not str"):
        outcome.output_as(str)


def test_an_outcome_never_shows_its_output_by_accident() -> None:
    outcome = Outcome("succeeded", 10, Evidence(), output="4111 1111", final_output="4111 1111")
    assert "4111" not in repr(outcome)


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    GOLDEN.write_text(table(), encoding="utf-8")
