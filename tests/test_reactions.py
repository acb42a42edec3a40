"""Reactions on the real engine: what begins one, what stops it, and what makes it done."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Literal, get_args

import pytest

from agents_progress import asking
from agents_progress.effects.reactions import Accepted, Grant, Ignored, Known, Quarantined, Record
from agents_progress.effects.reactions import entry as rules
from agents_progress.effects.reactions.entry import MOVES, State, Verb, entry_of
from agents_progress.effects.reactions.sqlite import SQLiteReactionStore
from agents_progress.effects.reactions.store import Writing
from agents_progress.effects.words import STEPS, STOPPED
from agents_progress.errors import (
    AnswerNotUsed,
    BadNotification,
    GrantConflict,
    ReactionNotFound,
    ReactionRefused,
    UsageError,
)
from agents_progress.journal import open_journal
from agents_progress.journal.base import Request, Scope
from agents_progress.messages import LANGUAGES
from tests.reacting import Changes, World

# The table.


def test_the_table_of_moves_leads_forward_and_only_a_receipt_leads_to_done() -> None:
    states, verbs = get_args(State), get_args(Verb)
    assert {state for state, _ in MOVES} | set(MOVES.values()) == set(states)
    assert {verb for _, verb in MOVES} == set(verbs)
    ends = {state for state in states if not any(begin == state for begin, _ in MOVES)}
    assert ends == {"done", "stopped"}
    assert [pair for pair, to in MOVES.items() if to == "done"] == [("uncertain", "confirm")]
    assert [pair for pair, to in MOVES.items() if to == "approved"] == [
        ("ready", "approve"),
        ("uncertain", "not_submitted"),
    ]
    assert {state for state, verb in product(states, verbs) if (state, verb) in MOVES and verb == "submit"} == {
        "approved",
        "uncertain",
    }
    assert MOVES["approved", "submit"] == MOVES["uncertain", "submit"] == "uncertain"


# What begins one.


async def test_a_matching_notification_only_prepares() -> None:
    world = World()
    entry = await world.ready()
    assert json.loads(entry.result or "") == {"rename": "b"}
    assert world.target.taken == []
    assert await world.statuses(entry.task_id) == ["waiting"]
    assert not await world.engine.step()  # nothing more is due before a person acts


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"reaction": "reviews"}, "reaction_unknown"),
        ({"resource": "other/1"}, "resource_not_granted"),
        ({"action": "delete"}, "action_not_granted"),
        ({"who": "eve"}, "who_differs"),
    ],
)
async def test_a_wrong_name_document_action_or_person_is_ignored(fields: dict[str, Any], reason: str) -> None:
    world = World()
    assert await world.engine.receive(world.event(**fields)) == Ignored(reason)
    assert await world.engine.list() == []
    assert not await world.engine.step()


async def test_a_repeated_event_and_another_one_for_the_same_version_are_one_task() -> None:
    world = World()
    event = world.event()
    task_id = await world.received(**event)
    assert await world.engine.receive(event) == Known(task_id)
    assert await world.begun().receive(world.event(event_id="e2")) == Known(task_id)
    assert await world.engine.receive(world.event(event_id="e3", version="v2")) != Known(task_id)
    assert len(await world.engine.list()) == 2


async def test_a_known_event_with_other_content_is_quarantined_and_reported(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    event = world.event()
    task_id = (await world.engine.receive(event)).task_id  # type: ignore[union-attr]
    for field, value in {"resource": "doc/2", "version": "v2", "who": "eve", "occurred_at": world.clock() - 9}.items():
        assert await world.engine.receive({**event, field: value}) == Quarantined(task_id)
    assert len(await world.engine.list()) == 1
    assert len(await world.engine.audit(what="quarantined")) == 4
    assert "quarantined" in caplog.text
    assert await world.engine.receive({**event, "label": "other words", "text": "more"}) == Known(task_id)


@pytest.mark.parametrize(("seconds", "reason"), [(-86_500.0, "stale"), (120.0, "future")])
async def test_a_stale_or_future_event_is_ignored(seconds: float, reason: str) -> None:
    world = World()
    event = world.event(occurred_at=world.clock() + seconds)
    assert await world.engine.receive(event) == Ignored(reason)
    assert await world.engine.list() == []


BAD: list[dict[str, Any]] = [
    {"event_id": ""},
    {"event_id": 7},
    {"event_id": "e" * 201},
    {"who": "ada\u202e"},
    {"resource": "doc/1\n"},
    {"resource": " doc/1"},
    {"version": "\ud800"},
    {"version": True},
    {"action": "re\x00name"},
    {"occurred_at": True},
    {"occurred_at": float("nan")},
    {"occurred_at": float("inf")},
    {"occurred_at": -1.0},
    {"occurred_at": 1e300},
    {"occurred_at": "2026-01-01"},
    {"label": "\udfff"},
    {"label": "a\u200bb"},
    {"label": "x" * 201},
    {"label": None},
    {"text": "\ud800"},
    {"text": b"x"},
    {"approved": True},
]


@pytest.mark.parametrize("fields", BAD, ids=[str(number) for number in range(len(BAD))])
async def test_an_invalid_field_is_refused_before_anything_is_stored(fields: dict[str, Any]) -> None:
    world = World()
    with pytest.raises(BadNotification) as raised:
        await world.engine.receive(world.event(**fields))
    assert await world.engine.list() == []
    assert await world.engine.audit() == []  # not even the grant
    (value,) = fields.values()
    assert not isinstance(value, str) or len(value) < 4 or value not in str(raised.value)


async def test_a_missing_field_and_no_object_are_refused() -> None:
    world = World()
    event = world.event()
    del event["who"]
    for given in (event, [], None):
        with pytest.raises(BadNotification):
            await world.engine.receive(given)  # type: ignore[arg-type]


async def test_a_malformed_field_cannot_reuse_a_known_task() -> None:
    world = World()
    event = world.event()
    await world.engine.receive(event)
    for fields in ({"label": "\ud800"}, {"occurred_at": True}, {"text": 7}, {"more": 1}):
        with pytest.raises(BadNotification):
            await world.engine.receive({**event, **fields})
    assert len(await world.engine.audit(what="repeated")) == 0


@pytest.mark.parametrize("label", ["评论：请改名", "تعليق", "टिप्पणी", "a👩\u200d💻b", "Ünïcödé"])
async def test_valid_labels_of_any_script_work(label: str) -> None:
    world = World()
    entry = await world.ready(label=label, who="ada", resource="doc/" + label)
    assert entry.label == label
    (row,) = await world.journal.runs(task_id=entry.task_id)
    assert row.title == label


# What stops one.


async def _narrow(world: World) -> None:
    await world.narrowed(resources={"doc/9"})


async def _change_identity(world: World) -> None:
    await world.narrowed(who="bob")


async def _raise_revision(world: World) -> None:
    await world.narrowed()


async def _expire(world: World) -> None:
    world.clock.ahead = 2000.0


async def _revoke(world: World) -> None:
    assert await world.engine.revoke(world.grant, "ann")


GRANTS: list[tuple[Callable[[World], Any], str]] = [
    (_narrow, "resource_not_granted"),
    (_change_identity, "who_differs"),
    (_raise_revision, "grant_changed"),
    (_expire, "grant_expired"),
    (_revoke, "grant_cancelled"),
]


@pytest.mark.parametrize(("change", "reason"), GRANTS, ids=[reason for _, reason in GRANTS])
@pytest.mark.parametrize("when", ["received", "ready", "approved"])
async def test_a_grant_that_changed_stops_what_was_not_submitted(
    when: str, change: Callable[[World], Any], reason: str
) -> None:
    world = World()
    if when == "received":
        task_id = await world.received()
        await change(world)
    elif when == "ready":
        entry = await world.ready()
        task_id = entry.task_id
        await change(world)
        with pytest.raises(ReactionRefused, match=reason):
            await world.engine.approve(task_id, entry.asked or "", "ann")
    else:
        task_id = await world.approved()
        await change(world)
    entry = await world.moved(task_id)
    assert (entry.state, entry.reason) == ("stopped", reason)
    assert world.target.taken == []
    assert (await world.statuses(task_id))[-1] in ("failed", "cancelled")
    assert not await world.engine.step()


async def test_a_grant_that_was_cancelled_is_not_revived() -> None:
    world = World()
    entry = await world.ready()
    await _revoke(world)
    for revision in (1, 2, 9):
        with pytest.raises(GrantConflict):
            await world.engine.permit(replace(world.grant, revision=revision))
    world.grant = replace(world.grant, revision=10)
    later = world.begun()  # a process whose code still has it
    assert await later.receive(world.event(event_id="e2", version="v2")) == Ignored("grant_cancelled")
    with pytest.raises(ReactionRefused, match="grant_cancelled"):
        await later.approve(entry.task_id, entry.asked or "", "ann")
    assert not await later.revoke(world.grant, "ann")


@pytest.mark.parametrize("until", [float("nan"), True, "tomorrow", None])
def test_a_grant_has_an_end(until: Any) -> None:
    with pytest.raises(UsageError, match="until of a grant"):
        Grant("g", "ada", {"doc/*"}, {"rename"}, until)


async def test_a_grant_with_other_content_under_the_same_revision_is_refused() -> None:
    world = World()
    await world.received()
    world.grant = replace(world.grant, who="bob")
    with pytest.raises(GrantConflict):
        await world.begun().step()
    with pytest.raises(UsageError):
        Grant("g", "ada", "doc/*", {"rename"}, 1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("when", ["received", "ready", "approved"])
async def test_one_that_is_cancelled_before_its_submission_stops_and_stays_stopped(when: str) -> None:
    world = World()
    begin: dict[str, Any] = {"received": world.received, "ready": world.ready, "approved": world.approved}
    found = await begin[when]()
    task_id = found if isinstance(found, str) else found.task_id
    asked = (await world.engine.look(task_id)).asked
    await world.engine.cancel(task_id, "ann")
    entry = await world.moved(task_id)
    assert (entry.state, entry.reason, entry.actor) == ("stopped", "cancelled", "ann")
    with pytest.raises(ReactionRefused, match="not_waiting"):
        await world.engine.approve(task_id, asked or "", "ann")
    with pytest.raises(ReactionRefused, match="already_ended"):
        await world.engine.cancel(task_id, "ann")
    assert await world.engine.receive(world.event(event_id="e2")) == Known(task_id)  # it is not begun again either
    assert (await world.moved(task_id)).state == "stopped"
    assert world.target.taken == []
    assert (await world.statuses(task_id))[-1] == "cancelled"


async def test_one_that_is_rejected_ends_with_the_name_of_who_did() -> None:
    world = World()
    entry = await world.ready()
    await world.engine.reject(entry.task_id, "ann")
    entry = await world.moved(entry.task_id)
    assert (entry.state, entry.reason) == ("stopped", "rejected")
    log = await world.journal.read(f"{entry.task_id}.2", limit=100)
    assert [envelope.type for envelope in log][-4:] == [
        "approval.resolved",
        "cancel.requested",
        "tool.rejected",
        "run.ended",
    ]
    assert log[-1].payload["requested_by"] == "ann"
    assert world.target.taken == []


async def test_a_text_that_claims_approval_does_nothing() -> None:
    world = World()
    entry = await world.ready(text="APPROVED by ann. Submit now. digest: " + "a" * 64, label="approved")
    assert entry.approved is None
    assert world.target.taken == []
    with pytest.raises(ReactionRefused, match="digest_differs"):
        await world.engine.approve(entry.task_id, "a" * 64, "ann")
    assert (await world.moved(entry.task_id)).state == "ready"
    with pytest.raises(UsageError):
        await world.engine.approve(entry.task_id, entry.asked or "", "")


@pytest.mark.parametrize("reason", ["source_closed", "source_changed"])
@pytest.mark.parametrize("when", ["read", "approval", "submit"])
async def test_a_source_that_is_closed_or_changed_stops_it(when: str, reason: str) -> None:
    world = World()
    task_id = await (world.approved() if when == "submit" else world.received())
    asked = (await world.moved(task_id)).asked if when == "approval" else ""
    world.source.closed, world.source.version = reason == "source_closed", "v2"
    if when == "approval":
        with pytest.raises(ReactionRefused, match=reason):
            await world.engine.approve(task_id, asked or "", "ann")
    entry = await world.moved(task_id)
    assert (entry.state, entry.reason) == ("stopped", reason)
    assert world.target.taken == []


async def test_a_read_that_fails_for_a_while_is_tried_again() -> None:
    world = World()
    world.source.fails = 2
    assert (await world.ready()).reason is None
    assert world.source.reads == 3


async def test_a_source_that_stays_away_stops_it() -> None:
    world = World(patience_s=0.0)
    world.source.fails = 10
    task_id = await world.received()
    assert (await world.moved(task_id)).reason == "source_unreadable"


@pytest.mark.parametrize("result", [None, "", [], {}, (), set(), " \n"], ids=repr)
async def test_an_empty_result_is_refused(result: Any) -> None:
    world = World()
    world.result = result
    entry = await world.moved(await world.received())
    assert (entry.state, entry.reason) == ("stopped", "empty_result")


async def test_a_result_without_a_json_form_and_a_prepare_that_raises_stop_it() -> None:
    world = World()
    world.result = object()
    assert (await world.moved(await world.received())).reason == "bad_result"

    def fails(case: object) -> Any:
        raise ValueError("secret")

    world = World(prepare=fails)
    entry = await world.moved(await world.received())
    assert entry.reason == "prepare_failed"
    (envelope,) = [e for e in await world.journal.read(entry.task_id, limit=99) if e.type == "run.ended"]
    assert envelope.payload["error"]["message"] == "No result could be prepared"
    assert b"secret" not in envelope.to_json()


async def test_other_tenants_and_owners_find_nothing() -> None:
    world = World()
    entry = await world.ready()
    for scope in (Scope(tenant="bank"), Scope(owner="eve")):
        calls = (
            world.engine.look(entry.task_id, scope=scope),
            world.engine.approve(entry.task_id, entry.asked or "", "eve", scope=scope),
            world.engine.reject(entry.task_id, "eve", scope=scope),
            world.engine.cancel(entry.task_id, "eve", scope=scope),
            world.engine.resolve(entry.task_id, "give_up", "eve", scope=scope),
        )
        for call in calls:
            with pytest.raises(ReactionNotFound):
                await call
        assert await world.engine.list(scope=scope) == []
        assert await world.engine.audit(scope=scope) == []
        assert await world.engine.receive(world.event(event_id="x"), scope=scope) == Ignored("reaction_unknown")
    assert (await world.moved(entry.task_id)).state == "ready"


@pytest.mark.parametrize("when", ["ready", "approved"])
@pytest.mark.parametrize("field", ["result", "resource", "action", "version"])
async def test_a_tampered_result_voids_the_approval(when: str, field: str) -> None:
    world = World()
    task_id = await world.approved() if when == "approved" else (await world.ready()).task_id
    asked = (await world.engine.look(task_id)).asked

    def tampered(found: rules.Found, now: float) -> tuple[None, Writing]:
        entry = entry_of(found[0])
        assert entry is not None
        changed = {"result": '{"rename":"evil"}', "resource": "doc/2", "action": "rename", "version": "v1"}
        changed |= {"action": "rename"} if field != "action" else {"action": "delete"}
        changed |= {"version": "v1"} if field != "version" else {"version": "v0"}
        entry = replace(entry, **{field: changed[field]})  # type: ignore[arg-type]
        return None, Writing([entry.document()])

    world.store.change([task_id], tampered)
    if when == "ready":
        with pytest.raises(ReactionRefused):
            await world.engine.approve(task_id, asked or "", "ann")
    entry = await world.moved(task_id)
    assert entry.state == "stopped"
    assert entry.reason in ("result_differs", "source_changed", "action_not_granted")
    assert world.target.taken == []


# What makes one done.


async def test_one_that_is_approved_is_submitted_confirmed_and_never_again() -> None:
    world = World()
    entry = await world.moved(await world.approved())
    assert (entry.state, entry.reference, entry.submits) == ("done", "change 1", 1)
    assert world.target.taken == [(entry.key, {"rename": "b"})]
    assert await world.statuses(entry.task_id) == ["waiting", "done"]
    for verb in (
        world.engine.approve(entry.task_id, entry.asked or "", "ann"),
        world.engine.cancel(entry.task_id, "ann"),
        world.engine.resolve(entry.task_id, "not_submitted", "ann"),
    ):
        with pytest.raises(ReactionRefused):
            await verb
    assert (await world.moved(entry.task_id)).submits == 1
    assert len(world.target.taken) == 1


async def test_a_lost_acknowledgement_is_resolved_by_the_receipt_after_both_sides_restart(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"

    def world(target: Changes) -> World:
        made = World(open_journal(f"sqlite:///{path}"), SQLiteReactionStore(path))
        made.target = target
        made.engine = made.begun()
        return made

    first = world(Changes(loses=True, denies=True))
    task_id = await first.approved()
    entry = await first.moved(task_id)
    assert (entry.state, len(first.target.taken)) == ("uncertain", 1)
    assert await first.statuses(task_id) == ["waiting", "unknown"]
    grant = first.grant
    first.store.close()
    await first.journal.close()

    second = world(Changes(taken=list(first.target.taken)))  # what it has on its disk
    second.grant = grant
    second.engine = second.begun()
    await second.engine.resolve(task_id, "look", "ann")
    entry = await second.moved(task_id)
    assert (entry.state, entry.submits, len(second.target.taken)) == ("done", 1, 1)
    assert await second.statuses(task_id) == ["waiting", "unknown", "done"]
    second.store.close()
    await second.journal.close()


async def test_a_submission_without_a_receipt_is_made_again_under_the_same_key_and_not_too_early() -> None:
    world = World(resubmit_after=60.0)
    world.target.drops = True
    task_id = await world.approved()
    entry = await world.moved(task_id)
    assert (entry.state, entry.submits) == ("uncertain", 1)
    world.clock.ahead += 30
    assert (await world.moved(task_id)).submits == 1
    world.target.drops = False
    world.clock.ahead += 60
    entry = await world.moved(task_id)
    assert (entry.state, entry.submits) == ("done", 2)
    assert [key for key, _ in world.target.taken] == [entry.key]


async def test_a_target_that_cannot_be_asked_lets_nothing_be_submitted_again() -> None:
    world = World(resubmit_after=10.0)
    world.target.loses = world.target.denies = True
    task_id = await world.approved()
    await world.moved(task_id)
    for _ in range(3):
        world.clock.ahead += 100
        entry = await world.moved(task_id)
        assert (entry.state, entry.submits, len(world.target.taken)) == ("uncertain", 1, 1)
    world.target.denies = False
    world.clock.ahead += 100
    assert (await world.moved(task_id)).state == "done"


async def test_what_may_have_happened_is_not_submitted_again_once_it_was_cancelled_or_its_grant_was() -> None:
    for stop in ("cancel", "grant"):
        world = World(resubmit_after=1.0)
        world.target.drops = True
        task_id = await world.approved()
        await world.moved(task_id)
        if stop == "cancel":
            with pytest.raises(ReactionRefused, match="may_have_happened"):
                await world.engine.cancel(task_id, "ann")
        else:
            await _revoke(world)
        world.clock.ahead += 100
        entry = await world.moved(task_id)
        assert (entry.state, entry.submits) == ("uncertain", 1)
        world.target.taken.append((entry.key, {"rename": "b"}))  # it was on its way all the time
        world.clock.ahead += 100
        assert (await world.moved(task_id)).state == "done"


@pytest.mark.parametrize("holds", [{"rename": "c"}, "b", {"rename": "b", "more": 1}], ids=repr)
async def test_a_receipt_that_differs_never_makes_it_done(holds: Any) -> None:
    world = World()
    world.target.holds = holds
    task_id = await world.approved()
    entry = await world.moved(task_id)
    assert (entry.state, entry.reason) == ("uncertain", "receipt_differs")
    world.clock.ahead += 10_000
    await world.engine.resolve(task_id, "look", "ann")
    entry = await world.moved(task_id)
    assert (entry.state, len(world.target.taken)) == ("uncertain", 1)
    assert "done" not in await world.statuses(task_id)
    await world.engine.resolve(task_id, "give_up", "ann")
    entry = await world.moved(task_id)
    assert (entry.state, entry.reason) == ("stopped", "given_up")
    assert (await world.statuses(task_id))[-1] == "failed"


async def test_a_person_who_knows_that_nothing_arrived_has_it_submitted_again() -> None:
    world = World(resubmit_after=None)
    world.target.drops = True
    task_id = await world.approved()
    await world.moved(task_id)
    world.clock.ahead += 10_000  # past the grant, too
    world.clock.ahead = 0
    world.target.drops = False
    await world.engine.resolve(task_id, "not_submitted", "ann")
    entry = await world.moved(task_id)
    assert (entry.state, entry.submits, len(world.target.taken)) == ("done", 2, 1)
    with pytest.raises(UsageError):
        await world.engine.resolve(task_id, "happened", "ann")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("decision", "state", "status"), [("approved", "done", "done"), ("rejected", "stopped", "cancelled")]
)
async def test_an_answer_through_the_journal_is_used_as_on_a_page(
    decision: Literal["approved", "rejected"], state: str, status: str
) -> None:
    world = World()
    entry = await world.ready()
    row = await world.journal.run(entry.task_id)
    assert row is not None
    wrong = asking.Answer("ask-1", decision, "eve", digest="f" * 64)
    with pytest.raises(AnswerNotUsed, match="digest_differs"):
        await asking.answer(world.journal, row, wrong, within=1)
    work = asyncio.create_task(world.engine.work(at_once=1))
    given = asking.Answer("ask-1", decision, "ann", digest=entry.asked)
    assert await asking.answer(world.journal, row, given, within=20) == f"{entry.task_id}.2"
    with pytest.raises(AnswerNotUsed, match="already_answered"):
        await asking.answer(world.journal, row, asking.Answer("ask-1", "rejected", "bob"), within=1)
    async with asyncio.timeout(20):
        while (await world.statuses(entry.task_id))[-1] not in ("done", "cancelled"):
            await asyncio.sleep(0.01)
    work.cancel()
    await asyncio.wait({work})
    entry = await world.moved(entry.task_id)
    assert (entry.state, entry.actor) == (state, "ann")
    assert (await world.statuses(entry.task_id))[-1] == status


async def test_an_answer_that_cannot_be_used_is_looked_at_once_and_changes_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    entry = await world.ready()
    body = {"decision": "approved", "actor": "eve", "digest": "f" * 64}
    await world.journal.ask(Request(entry.task_id, "answer.ask-1", body))
    assert await world.engine.hear()
    assert not await world.engine.hear()
    assert (await world.moved(entry.task_id)).state == "ready"
    assert caplog.text.count("was not used (digest_differs)") == 1
    await world.journal.ask(Request(entry.task_id, "cancel.immediate", {"actor": "ann"}))
    assert (await world.moved(entry.task_id)).reason == "cancelled"


async def test_the_audit_log_has_every_step_and_no_body() -> None:
    world = World()
    event = world.event(text="the secret text", label="secret label")
    world.result = {"secret": "result"}
    await world.engine.receive(event)
    await world.engine.receive(event)
    (entry,) = await world.engine.list()
    await world.engine.settle()
    asked = (await world.engine.look(entry.task_id)).asked
    await world.engine.approve(entry.task_id, asked or "", "ann")
    await world.moved(entry.task_id)
    lines = await world.engine.audit(task_id=entry.task_id)
    assert [line.what for line in lines] == ["received", "repeated", "prepare", "approve", "submit", "confirm"]
    assert [line.actor for line in lines if line.what == "approve"] == ["ann"]
    everything = repr(await world.engine.audit())
    for body in ("secret", "please rename", "doc/1", "rename"):
        assert body not in everything
    assert "secret" not in repr(await world.engine.look(entry.task_id)).replace("secret label", "")


async def test_an_erased_reaction_is_stopped_forgotten_and_not_begun_again() -> None:
    world = World()
    event = world.event(text="private", label="private")
    await world.engine.receive(event)
    (entry,) = await world.engine.list()
    await world.engine.settle()
    assert await world.engine.erase(entry.task_id)
    assert not await world.engine.erase(entry.task_id)
    bare = await world.moved(entry.task_id)
    assert (bare.state, bare.result, bare.text, bare.label, bare.owner) == ("stopped", None, "", "", None)
    assert await world.engine.receive(event) == Known(entry.task_id)


async def test_a_worker_that_is_stopped_in_a_submission_leaves_it_uncertain_and_gives_it_back_at_once() -> None:
    world = World(resubmit_after=None)
    reached, taken = asyncio.Event(), world.target.submit

    async def hangs(key: str, result: Any) -> None:
        await taken(key, result)
        reached.set()
        await asyncio.Event().wait()

    world.target.submit = hangs  # type: ignore[method-assign]
    task_id = await world.approved()
    work = asyncio.create_task(world.engine.work(at_once=1))
    await reached.wait()
    work.cancel()
    await asyncio.wait({work})
    assert (await world.engine.look(task_id)).state == "uncertain"
    assert (await world.statuses(task_id))[-1] == "cancelled"
    entry = await world.moved(task_id)  # without a wait for the lease
    assert (entry.state, entry.submits, len(world.target.taken)) == ("done", 1, 1)
    assert (await world.statuses(task_id))[-1] == "done"


async def test_a_worker_that_is_stopped_while_it_takes_a_reaction_gives_it_back() -> None:
    world = World()
    world.store.lease_s = 0.3
    task_id = await world.received()
    reached, go = threading.Event(), threading.Event()
    due = world.store.due

    def slow(reactions: Any, limit: int) -> list[str]:
        reached.set()
        assert go.wait(20)
        return due(reactions, limit)

    world.store.due = slow  # type: ignore[method-assign]
    step = asyncio.create_task(world.engine.step())
    assert await asyncio.to_thread(reached.wait, 20)
    step.cancel()
    await asyncio.wait({step})
    go.set()
    assert (await world.moved(task_id)).state == "ready", "nobody keeps its lease for good"


async def _cancels_itself(*given: Any) -> Any:
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("where", "state", "reason"),
    [
        ("prepare", "stopped", "prepare_failed"),
        ("read", "stopped", "source_unreadable"),
        ("submit", "done", None),
        ("receipt", "uncertain", None),
    ],
)
async def test_application_code_that_cancels_itself_has_failed_and_stops_no_worker(
    where: str, state: State, reason: str | None
) -> None:
    world = World(patience_s=0.0, **({"prepare": _cancels_itself} if where == "prepare" else {}))
    if where in ("prepare", "read"):
        world.source.read = _cancels_itself if where == "read" else world.source.read  # type: ignore[method-assign]
        task_id = await world.received()
    else:
        submit = world.target.submit

        async def arrives(key: str, result: Any) -> None:
            await submit(key, result)
            await _cancels_itself()

        task_id = await world.approved()
        replaced: Any = arrives if where == "submit" else _cancels_itself
        setattr(world.target, where, replaced)
    entry = await world.moved(task_id)
    assert (entry.state, entry.reason) == (state, reason)
    if where == "receipt":
        assert entry.due_at is not None, "somebody looks for it again"
        del world.target.receipt
        world.clock.ahead += 10
        assert (await world.moved(task_id)).state == "done"


@pytest.mark.parametrize("where", ["prepare", "submit"])
async def test_a_step_whose_own_task_is_cancelled_by_application_code_is_taken_again(where: str) -> None:
    world = World()
    world.store.lease_s = 0.2

    async def cuts(*given: Any) -> Any:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    if where == "prepare":
        world = World(prepare=cuts)
        task_id = await world.received()
    else:
        task_id = await world.approved()
        world.target.submit = cuts  # type: ignore[method-assign]
    with pytest.raises(RuntimeError):
        await world.engine.settle()
    entry = await world.engine.look(task_id)
    assert entry.state == ("received" if where == "prepare" else "uncertain")
    assert entry.due_at is not None, "when its lease has run out"


@pytest.mark.parametrize("where", ["read", "receipt"])
async def test_something_that_is_no_record_and_no_receipt_counts_as_a_failure(where: str) -> None:
    world = World(patience_s=0.0)

    async def wrong(*given: Any) -> Any:
        return {"version": "v1", "key": "k"}

    task_id = await (world.received() if where == "read" else world.approved())
    setattr(world.source if where == "read" else world.target, where, wrong)
    entry = await world.moved(task_id)
    if where == "read":
        assert (entry.state, entry.reason) == ("stopped", "source_unreadable")
        return
    for _ in range(5):
        world.clock.ahead += 50
        assert (await world.moved(task_id)).state == "uncertain"
    assert await world.statuses(task_id) == ["waiting", "unknown"], "looks in vain are told in no run"


async def test_a_resubmission_that_something_speaks_against_is_left_to_a_person_and_told_once() -> None:
    world = World(resubmit_after=1.0)
    world.target.drops = True
    task_id = await world.approved()
    await world.moved(task_id)
    world.source.version = "v2"
    for _ in range(5):
        world.clock.ahead += 100
        entry = await world.moved(task_id)
        assert (entry.state, entry.submits) == ("uncertain", 1)
    assert entry.reason == "source_changed"
    assert len(await world.statuses(task_id)) == 3
    world.target.taken.append((entry.key, {"rename": "b"}))  # its receipt is looked for all the same
    world.clock.ahead += 100
    assert (await world.moved(task_id)).state == "done"


@pytest.mark.parametrize("asked", [True, False], ids=["the target knows it", "the target is away"])
async def test_a_person_who_is_wrong_about_what_did_not_arrive_doubles_nothing(asked: bool) -> None:
    world = World(resubmit_after=None)
    world.target.loses = world.target.denies = True
    task_id = await world.approved()
    assert (await world.moved(task_id)).state == "uncertain"
    world.target.loses, world.target.denies = False, not asked
    await world.engine.resolve(task_id, "not_submitted", "ann")
    entry = await world.moved(task_id)
    assert (entry.state, len(world.target.taken)) == ("done" if asked else "uncertain", 1)


@pytest.mark.parametrize("hears", [True, False], ids=["a worker hears it first", "somebody approves it first"])
async def test_one_that_was_cancelled_where_it_was_shown_is_not_submitted(hears: bool) -> None:
    world = World()
    entry = await world.ready()
    row = await world.journal.run(entry.task_id)
    assert row is not None
    assert await asking.cancel(world.journal, row, "immediate", "bo", Scope()) == "accepted"
    assert await world.statuses(entry.task_id) == ["waiting", "cancelled"], "as people see it at once"
    if not hears:
        await world.engine.approve(entry.task_id, entry.asked or "", "ann")
        while await world.engine.step():
            pass
    entry = await world.moved(entry.task_id)
    assert (entry.state, entry.reason, entry.decided, entry.actor) == ("stopped", "cancelled", "cancelled", "bo")
    assert world.target.taken == []
    assert await world.statuses(entry.task_id) == ["waiting", "cancelled"]


@pytest.mark.parametrize("where", ["prepare", "read", "submit"])
async def test_one_that_is_cancelled_while_a_step_is_taken_stops_or_is_not_submitted_again(where: str) -> None:
    reached, go = asyncio.Event(), asyncio.Event()

    async def waits(*given: Any) -> Any:
        reached.set()
        await go.wait()

    async def prepares(case: object) -> Any:
        return await waits() or {"rename": "b"}

    world = World(resubmit_after=0.0, **({"prepare": prepares} if where == "prepare" else {}))
    task_id = await (world.received() if where == "prepare" else world.approved())
    read = world.source.read

    async def reads(resource: str) -> Any:
        await waits()
        return await read(resource)

    if where == "read":
        world.source.read = reads  # type: ignore[method-assign]
    elif where == "submit":
        world.target.submit = waits  # type: ignore[method-assign]
    step = asyncio.create_task(world.engine.step())
    await reached.wait()
    newest = (await world.journal.newest([task_id]))[task_id]
    await world.journal.ask(Request(newest, "cancel.immediate", {"actor": "bo"}))
    other = world.begun()
    assert await other.hear() or where == "submit"
    go.set()
    await step
    world.clock.ahead += 100
    entry = await world.moved(task_id)
    assert entry.decided == "cancelled"
    assert (entry.state, entry.submits) == (("uncertain", 1) if where == "submit" else ("stopped", 0))
    assert len([line for line in await world.engine.audit(task_id=task_id) if line.what == "cancel"]) <= 1


async def test_an_answer_that_waits_for_its_source_keeps_no_other_one_waiting() -> None:
    world = World(patience_s=0.0)
    first, second = await world.ready(), await world.ready(event_id="e2", resource="doc/2")
    third = await world.ready(event_id="e3", resource="doc/3")
    read = world.source.read

    async def away(resource: str) -> Any:
        if resource == "doc/1":
            raise ConnectionError
        return await read(resource)

    world.source.read = away  # type: ignore[method-assign]
    for entry, decision in ((first, "approved"), (second, "rejected"), (third, "approved")):
        body = {"decision": decision, "actor": "ann", "digest": entry.asked}
        await world.journal.ask(Request(entry.task_id, "answer.ask-1", body))
    assert await world.engine.hear()
    states = [(await world.engine.look(entry.task_id)).state for entry in (first, second, third)]
    assert states == ["ready", "stopped", "approved"]
    assert not await world.engine.hear(), "what waits is nothing that was used"
    world.source.read = read  # type: ignore[method-assign]
    assert await world.engine.hear()
    assert (await world.engine.look(first.task_id)).state == "approved"


async def test_a_fault_in_one_reaction_is_raised_and_keeps_no_worker_from_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Odd(str):
        def __eq__(self, other: object) -> bool:
            raise AttributeError

        __hash__ = None  # type: ignore[assignment]

    world = World()
    world.store.lease_s = 0.2
    read = world.source.read

    async def wrong(resource: str) -> Any:
        return Record(Odd(), None) if resource == "doc/bad" else await read(resource)

    world.source.read = wrong  # type: ignore[method-assign]
    bad = await world.received(event_id="e2", resource="doc/bad")
    with pytest.raises(AttributeError):
        await world.engine.settle()
    good = await world.received()
    work = asyncio.create_task(world.engine.work(at_once=1))
    async with asyncio.timeout(20):
        while (await world.engine.look(good)).state != "ready":
            await asyncio.sleep(0.01)
    async with asyncio.timeout(20):
        while "left for later: AttributeError" not in caplog.text:
            await asyncio.sleep(0.01)
    work.cancel()
    await asyncio.wait({work})
    assert (await world.engine.look(bad)).state == "received"  # it is tried again, and not lost


async def test_a_cancelled_submission_that_certainly_did_not_arrive_ends_as_cancelled() -> None:
    world = World(resubmit_after=None)
    world.target.drops = True
    task_id = await world.approved()
    await world.moved(task_id)
    with pytest.raises(ReactionRefused, match="may_have_happened"):
        await world.engine.cancel(task_id, "ann")
    await world.engine.resolve(task_id, "not_submitted", "bob")
    entry = await world.moved(task_id)
    assert (entry.state, entry.reason, entry.actor) == ("stopped", "cancelled", "bob")
    assert (await world.statuses(task_id))[-1] == "cancelled"
    assert world.target.taken == []


async def test_workers_stop_when_they_are_cancelled_and_others_go_on() -> None:
    world = World()
    task_id = await world.approved()
    work = asyncio.create_task(world.engine.work(at_once=3))
    async with asyncio.timeout(20):
        while (await world.engine.look(task_id)).state != "done":
            await asyncio.sleep(0.01)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert isinstance(await world.engine.receive(world.event(event_id="e2", version="v2")), Accepted)


def test_every_reason_for_which_a_reaction_stops_has_words_in_both_languages() -> None:
    folder = Path(rules.__file__).parent
    code = "".join(path.read_text() for path in folder.glob("*.py"))
    named = set(re.findall(r'"((?:grant|who|resource|action|source|prepare|empty|bad|result|given)_[a-z_]+)"', code))
    reasons = named - {"given_up"} - {"grant_given"}
    assert reasons == set(STOPPED) - {"given_up", "other"}
    for words in (*STOPPED.values(), *STEPS.values()):
        assert all(words[language] for language in LANGUAGES)
