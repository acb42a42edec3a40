"""Caps: over one, text is cut and marked, events are left out, and the run still ends as it ended."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from agents import Agent, function_tool
from hypothesis import given, settings
from hypothesis import strategies as st
from logs import logs
from staging import (
    Prebuilt,
    add,
    log_of,
    message_item,
    reach,
    response_completed,
    response_created,
    scripted,
    started,
    stored,
    text_delta,
)

from agents_progress import Disclosure, Envelope, RunView
from agents_progress.caps import FRAME, Caps, Quota, beginning, cut_free, pieces, weight
from agents_progress.disclosure import CUT, Draft
from agents_progress.errors import JournalUnavailable, UsageError
from agents_progress.journal import MemoryJournal
from agents_progress.testing import call, http_error, text, turn, wait
from agents_progress.verify import digest

KIB = 1024
SMALL = 32 * KIB
"""The smallest envelope there is."""


def passed(caps: Caps, *drafts: Draft) -> list[Draft]:
    quota = Quota(caps)
    return [draft for type_, payload in drafts for draft in quota.pass_on(type_, payload)]


def viewed(drafts: Iterable[Draft]) -> RunView:
    """What a strict reader makes of drafts, with the deltas numbered as the log numbers them."""
    view, indexes = RunView("r"), Counter[Any]()
    for seq, (type_, payload) in enumerate(drafts, 1):
        if type_.endswith(".delta"):
            item = type_, payload.get("item_id", payload.get("call_id")), payload.get("channel", "answer")
            payload = {**payload, "index": indexes[item]}
            indexes[item] += 1
        view.feed(Envelope(f"r:{seq}", "r", seq, type_, "2026-10-07T08:00:00Z", payload).to_json())
    return view


def said(item_id: str, words: str, **more: Any) -> Draft:
    return "text.delta", {"item_id": item_id, "text": words, **more}


# The caps themselves.


@pytest.mark.parametrize(
    "bad", [{"delta": 15}, {"envelope": 1000}, {"text": -1}, {"events": 0}, {"pending": 0}, {"delta": 20_000.0}]
)
def test_a_cap_that_holds_nothing_is_refused_with_the_least_that_does(bad: dict[str, Any]) -> None:
    with pytest.raises(
        UsageError, match=rf"the cap {next(iter(bad))}=.* is too small; give a whole number from \d+ on"
    ):
        Caps(**bad)


def test_an_envelope_that_no_reader_takes_is_refused() -> None:
    with pytest.raises(UsageError, match="no reader takes an envelope"):
        Caps(envelope=17 * KIB * KIB)
    with pytest.raises(UsageError, match="holds no two envelopes"):
        Caps(pending=KIB * KIB)


@given(st.text(max_size=200), st.integers(4, 40))
def test_pieces_lose_nothing_and_end_between_characters(words: str, limit: int) -> None:
    found = pieces(words, limit)
    assert "".join(found) == words and all(len(piece.encode()) <= limit for piece in found)
    assert all(piece.encode().decode() == piece for piece in found)


@given(st.text(max_size=100), st.integers(0, 100))
def test_a_beginning_is_as_long_as_it_can_be(words: str, limit: int) -> None:
    begun = beginning(words, limit)
    assert words.startswith(begun) and len(begun.encode()) <= limit
    assert begun == words or len(words[: len(begun) + 1].encode()) > limit


@given(st.recursive(st.none() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8))  # fmt: skip  # noqa: E501
def test_the_weight_of_a_value_is_a_bound_of_its_bytes(value: Any) -> None:
    from pydantic_core import to_json

    assert len(to_json(value, inf_nan_mode="null")) <= 6 * weight(value)


@given(st.lists(st.text(alphabet='a"\\\n\x00é漢😀', min_size=600, max_size=3000), min_size=1, max_size=3))
@settings(max_examples=40, deadline=None)
def test_free_texts_are_cut_to_the_room_there_is(words: list[str]) -> None:
    payload = {f"free_{place}": value for place, value in enumerate(words)} | {"name": "n" * 512, "count": 7}
    fitted = cut_free(payload, 4000)
    assert len(json.dumps(fitted, ensure_ascii=False, separators=(",", ":")).encode()) <= 4000
    assert (fitted["name"], fitted["count"]) == ("n" * 512, 7)
    for name, value in fitted.items():
        assert value == payload[name] or payload[name].startswith(value.removesuffix(CUT)) and value.endswith(CUT)


@given(logs(max_steps=40), st.integers(16, 40), st.integers(0, 60), st.integers(1, 40))
@settings(max_examples=100, deadline=None)
def test_whatever_the_caps_the_log_folds_and_ends_as_it_would_have(
    envelopes: list[Envelope], delta: int, words: int, events: int
) -> None:
    drafts = [(envelope.type, envelope.payload) for envelope in envelopes]
    before, after = viewed(drafts), viewed(passed(Caps(delta=delta, text=words, events=events), *drafts))
    assert before.issues == after.issues == []
    assert (after.status, after.terminal, after.verdict) == (before.status, before.terminal, before.verdict)
    for view in (before, after):
        for asked in view.interactions.values():
            asked.seq = 0  # what is left out moves the others up
    assert after.interactions == before.interactions
    assert after.usage == before.usage or before.terminal is None
    assert set(after.tools.items()) <= set(before.tools.items()), "a row that is shown is as far as it was"
    for message in after.messages:
        (whole,) = (other for other in before.messages if (other.item_id, other.channel) == (message.item_id, message.channel))  # fmt: skip  # noqa: E501
        assert message.text == whole.text or message.text.endswith(CUT)
    assert sum(len(message.text.removesuffix(CUT).encode()) for message in after.messages) <= max(words, 0)


# A long delta.


@pytest.mark.parametrize("options", [{}, {"coalesce": None}, {"disclosure": Disclosure(mask=["secret"])}])
@pytest.mark.parametrize("character", ["a", "é", "漢", "😀"])
async def test_a_long_delta_is_split_between_characters_and_nothing_is_lost(
    character: str, options: dict[str, Any]
) -> None:
    answer = character * 50_000
    log = await log_of(started(scripted(turn(text(answer, chunk=50_000))), **options))
    deltas = log.of("text.delta")
    assert [delta["index"] for delta in deltas] == list(range(len(deltas))) and len(deltas) > 3
    assert max(len(delta["text"].encode()) for delta in deltas) <= 16 * KIB
    assert "".join(delta["text"] for delta in deltas) == answer == log.view.text
    assert log.view.issues == [] and "note.capped" not in log.types


async def test_a_long_delta_among_short_ones_keeps_its_place_and_its_index() -> None:
    log = await log_of(started(scripted(turn(text("a ", "b" * 20_000, " c"))), coalesce=None))
    deltas = log.of("text.delta")
    assert [delta["index"] for delta in deltas] == list(range(len(deltas)))
    assert log.view.text == "a " + "b" * 20_000 + " c" and log.view.issues == []


def test_half_a_character_is_no_endless_text() -> None:
    assert pieces("\ud800" * 20, 16) == ["?" * 16, "?" * 4]


def test_long_arguments_are_split_too() -> None:
    log = passed(
        Caps(delta=16),
        ("tool.requested", {"call_id": "c", "name": "look", "kind": "function"}),
        ("tool.arguments.delta", {"call_id": "c", "text": "x" * 40}),
    )
    assert [payload["text"] for _, payload in log[1:]] == ["x" * 16, "x" * 16, "x" * 8]
    assert viewed(log).issues == []


# A long envelope.


@pytest.mark.parametrize("mask", [(), ["secret"]], ids=["open", "masked"])
async def test_a_long_output_is_cut_and_marked_and_the_verdict_is_bound_to_what_was_published(mask: Any) -> None:
    answer, seen = "secret " + "漢" * 50_000, []
    run = started(
        scripted(turn(text(answer))),
        verify=lambda output: seen.append(output) or True,  # type: ignore[func-returns-value]
        caps=Caps(envelope=SMALL),
        disclosure=Disclosure(mask=mask),
    )
    outcome = await run
    log = await log_of(run)
    published = log.ending["final_output"]
    assert outcome.final_output == published and published.endswith(CUT) and len(published) < len(answer)
    assert ("[masked] 漢" if mask else "secret 漢") in published
    assert seen == [answer] and outcome.output == answer, "the check sees the real output"
    assert log.of("app.checked")[0]["digest"] == digest(published)
    assert (log.view.status, log.view.issues) == ("done", []) and outcome.accepted
    assert max(len(envelope.to_json()) for envelope in log.envelopes) <= SMALL
    assert SMALL - len(published.encode()) < 2 * KIB, "no more is cut than has to be"


async def test_an_output_within_its_cap_is_published_whole() -> None:
    outcome = await started(scripted(turn(text("x" * 100_000))))
    assert outcome.final_output == "x" * 100_000


async def test_what_a_tool_gives_and_is_given_is_cut_to_its_envelope() -> None:
    @function_tool
    def look(what: str) -> str:
        return '"' * 100_000

    asked = {"what": "\x00" * 20_000}
    run = started(
        scripted(turn(call("look", asked)), turn(text("ok")), tools=[look]),
        caps=Caps(envelope=SMALL),
        disclosure=Disclosure(arguments="all", outputs="all", max_chars=1_000_000),
    )
    log = await log_of(run)
    assert log.view.status == "checking" and log.view.issues == []
    (row,) = log.view.activities
    assert row.output is not None and row.output.endswith(CUT)
    assert row.arguments is not None and row.arguments.endswith(CUT)
    assert max(len(envelope.to_json()) for envelope in log.envelopes) <= SMALL


def test_a_note_that_is_too_long_keeps_its_place_and_loses_its_content() -> None:
    log = passed(Caps(envelope=SMALL), ("note.big", {"rows": [{"n": "x" * 100}] * 1000}), ("note.small", {"n": 1}))
    assert log == [("note.big", {}), ("note.small", {"n": 1})]


# Too much text.


@pytest.mark.parametrize("options", [{}, {"coalesce": None}])
async def test_over_the_cap_of_text_the_answer_ends_in_the_mark_and_the_run_in_its_ending(
    options: dict[str, Any],
) -> None:
    answer = "é" * 5000
    log = await log_of(started(scripted(turn(text(answer, chunk=64))), caps=Caps(text=1001), **options))
    assert log.view.text == "é" * 500 + CUT
    assert log.of("text.delta")[-1]["text"] == CUT
    assert log.of("note.capped") == [{"cap": "text"}]
    assert log.ending["outcome"] == "succeeded" and log.ending["final_output"] == answer
    assert (log.view.status, log.view.issues) == ("checking", [])


async def test_each_text_that_is_cut_is_marked_once_and_an_empty_answer_is_never_shown_for_one() -> None:
    turns = [turn(text("one " * 10), call("add")), turn(text("two " * 10), call("add")), turn(text("three"))]
    log = await log_of(started(scripted(*turns, tools=[add]), caps=Caps(text=50)))
    assert log.texts == ["one " * 10, "two two tw" + CUT, CUT]
    assert len(log.of("note.capped")) == 1 and log.view.tools and log.view.issues == []


def test_a_text_that_replaces_its_deltas_may_take_their_room_and_no_more() -> None:
    replaced = ("text.completed", {"item_id": "m", "text": "x" * 30})
    assert passed(Caps(text=30), said("m", "y" * 30), replaced)[-1] == replaced
    log = passed(Caps(text=29), said("m", "y" * 20), replaced, said("n", "z"))
    assert log[1] == ("note.capped", {"cap": "text"})
    assert log[2] == ("text.completed", {"item_id": "m", "text": "x" * 29 + CUT})
    assert log[3:] == [said("n", CUT)]


def test_the_room_of_a_text_that_was_replaced_by_a_shorter_one_is_free_again() -> None:
    shorter = ("text.completed", {"item_id": "m", "text": "x"})
    assert passed(Caps(text=20), said("m", "y" * 20), shorter, said("n", "z" * 19))[-1] == said("n", "z" * 19)


def test_a_text_that_was_cut_is_not_taken_up_again() -> None:
    quota = Quota(Caps(text=20))
    for draft in (said("m", "y" * 20), said("n", "z")):
        list(quota.pass_on(*draft))
    list(quota.pass_on("text.completed", {"item_id": "m", "text": "x"}))
    assert not quota.take("n", ["z"]) and list(quota.pass_on(*said("n", "z"))) == []
    assert quota.take("o", ["z"])


# Too many events.


@pytest.mark.parametrize("most", range(1, 14))
async def test_over_the_cap_of_events_the_run_ends_as_it_ended_and_leaves_no_row_open(most: int) -> None:
    turns = [turn(call("add")), turn(call("add"), call("add")), turn(text("ok"))]
    run = started(scripted(*turns, tools=[add]), caps=Caps(events=most), verify=lambda output: True)
    outcome = await run
    log = await log_of(run)
    assert outcome.accepted and (log.view.status, log.view.issues) == ("done", [])
    assert set(log.view.tools.values()) <= {"returned"}
    assert log.of("note.capped") == [{"cap": "events"}]
    always = {
        "run.started",
        "note.capped",
        "usage.updated",
        "tool.finished",
        "tool.started",
        "run.ended",
        "app.checked",
    }
    assert set(log.types[most:]) <= always
    assert log.view.usage and log.view.usage["requests"] == 3, "what is cumulative is said at the end"


async def test_a_run_of_exactly_as_many_events_as_it_may_have_is_not_marked() -> None:
    turns = [turn(call("add")), turn(text("ok"))]
    whole = await log_of(started(scripted(*turns, tools=[add])))
    again = await log_of(started(scripted(*turns, tools=[add]), caps=Caps(events=len(whole.types))))
    assert again.types == whole.types


async def test_over_the_cap_of_events_a_failure_a_cancel_and_a_pause_are_told() -> None:
    caps = Caps(events=1)
    failed = await log_of(started(scripted(http_error(400)), caps=caps))
    assert failed.ending["outcome"] == "failed" and failed.view.status == "failed"
    run = started(scripted(turn(text("hel", wait(asyncio.Event())))), caps=caps)
    await reach(run, "note.capped")
    run.cancel(actor="ann")
    cancelled = await log_of(run)
    assert cancelled.of("cancel.requested") and cancelled.view.status == "cancelled"

    @function_tool(needs_approval=True)
    def refund() -> str:
        return "ok"

    run = started(scripted(turn(call("refund")), turn(text("ok")), tools=[refund]), caps=caps)
    await run
    assert (await log_of(run)).of("approval.wait") and run.view.status == "waiting"
    resumed = run.resume(approve="all")
    assert (await resumed).kind == "succeeded" and resumed.view.issues == []


def test_over_the_cap_of_events_what_blocks_success_is_said_once() -> None:
    unknown = ("adapter.unsupported", {"what": "run item", "name": "brand_new"})
    start = ("run.started", {"agent": "A", "task_id": "t", "parent": None, "resumed_from": None})
    end = ("run.ended", {"outcome": "succeeded", "final_output": "x"})
    log = passed(Caps(events=1), start, unknown, unknown, unknown, end)
    assert [type_ for type_, _ in log] == ["run.started", "adapter.unsupported", "note.capped", "run.ended"]
    assert viewed(log).status == "unknown"


def test_a_text_that_was_being_said_when_events_ran_out_ends_in_the_mark() -> None:
    more = [said("m", "b"), said("m", "c"), said("n", "d"), ("text.completed", {"item_id": "m"})]
    log = passed(Caps(events=1), said("m", "a"), *more, ("text.completed", {"item_id": "n"}))
    assert [type_ for type_, _ in log] == ["text.delta", "text.delta", "note.capped", "text.completed"]
    assert viewed(log).text == "a" + CUT


# Too much that waits for the journal.


class Stuck(MemoryJournal):
    """Takes one append; another is never answered, or refused for ever."""

    def __init__(self, answers: bool) -> None:
        super().__init__()
        self.answers, self.appends = answers, 0

    async def append(self, envelopes: Any, **more: Any) -> None:
        self.appends += 1
        if self.appends == 1:
            return await super().append(envelopes, **more)
        if self.answers:
            raise JournalUnavailable("no connection to db.internal:5432")
        await asyncio.Event().wait()
        return None


@pytest.mark.parametrize("answers", [True, False], ids=["away", "hung"])
async def test_too_much_that_waits_for_a_journal_breaks_the_log_at_once(answers: bool) -> None:
    gate, journal = asyncio.Event(), Stuck(answers)
    turns = [turn(text("hel", wait(gate), "x" * 200_000, chunk=1000))]
    run = started(scripted(*turns), journal=journal, caps=Caps(envelope=SMALL, pending=64 * KIB))
    await reach(run, "run.started")
    gate.set()
    async with asyncio.timeout(5):  # the patience is a minute
        outcome = await run
    assert outcome.kind == "unknown" and run.view.status == "unknown"
    assert isinstance(run.error, JournalUnavailable) and "MiB wait for the journal" in str(run.error)
    assert run.result.final_output == "hel" + "x" * 200_000, "the user's own run is whole"
    assert (await stored(journal, run.id)).endings == []
    log: Any = run._owner.log
    assert log._pending == [] and log.pending_bytes == 0, "nothing is kept for it"


async def test_what_waits_is_counted_until_it_is_stored() -> None:
    run = started(scripted(turn(text("x" * 100_000, chunk=100))), coalesce=None)
    await run
    log: Any = run._owner.log
    assert log.pending_bytes == 0 and log._stored_bytes >= 100_000 + FRAME * log.seq - FRAME


async def test_a_run_that_says_more_than_may_wait_goes_on_as_long_as_its_journal_does() -> None:
    turns_of_the_loop = [None] * 50
    deltas = [piece for _ in range(20) for piece in (text_delta("x" * 20_000), *turns_of_the_loop)]
    events = [response_created(), *turns_of_the_loop, *deltas, response_completed(message_item("x" * 400_000))]
    run = started(Agent(name="A", model=Prebuilt(events)), caps=Caps(envelope=SMALL, pending=64 * KIB))
    assert (await run).kind == "succeeded" and run.view.text == "x" * 400_000
