"""``reactions``: each is listed without what it is made of, and a person's word counts as it does everywhere."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from reacting import World

from agents_progress.effects.reactions import Entry, Grant
from agents_progress.effects.reactions.entry import State, entry_of
from agents_progress.effects.reactions.grant import Held
from agents_progress.effects.reactions.sqlite import SQLiteReactionStore
from agents_progress.effects.reactions.store import Line, ReactionStore
from agents_progress.journal import open_journal
from agents_progress.testing.reactions_contract import put
from tests.commands import Command, refused
from tests.test_postgres_journal import Store, server, store  # noqa: F401 - fixtures

HERE = ("--journal", "sqlite:///r.db")
GRANT = Grant("reviews", "ada", {"doc/*"}, {"mend"}, 4e9, owner="ada", tenant="shop")


def entry(number: int, state: State, **fields: Any) -> Entry:
    whose = {"owner": "ada", "tenant": "shop"}
    about = "review", GRANT.name, 1, "ada", f"doc/{number}", "v1", "mend", "secret label"
    made = Entry(f"{number}" * 32, *about, 1e9 + number, "secret text", **whose, state=state, result='"secret"')
    made = replace(made, asked=made.bound(made.result), **fields)
    approved = state in ("approved", "uncertain", "done")
    return replace(made, approved=made.asked, decided="approved", actor="ann") if approved else made


READY = entry(1, "ready")
OPEN = entry(2, "uncertain", submits=1, submitted_at=1e9, reason="receipt_differs")
OVER = entry(3, "done", reference="change 1")


def fill(kept: ReactionStore) -> None:
    lines = tuple(
        Line(1e9 + n, what, "review", READY.task_id, owner="ada") for n, what in enumerate(["received", "prepare"])
    )
    put(kept, Held(GRANT).document(0.0), *(each.document() for each in (READY, OPEN, OVER)), lines=lines)


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[SQLiteReactionStore]:
    kept = SQLiteReactionStore(tmp_path / "r.db")
    fill(kept)
    yield kept
    kept.close()


def now_of(kept: ReactionStore, before: Entry) -> Entry:
    found = entry_of(kept.look(before.task_id)[0])
    assert found is not None
    return found


# Looking.


def test_reactions_are_listed_with_what_tells_them_apart_and_nothing_they_are_made_of(
    command: Command, kept: ReactionStore
) -> None:
    printed = command("reactions", *HERE)
    assert (printed.code, printed.err) == (0, "")
    heading, *rows = [re.split(r"  +", row) for row in printed.rows]
    assert heading == ["task_id", "age", "state", "reaction", "grant", "record", "version", "reason"]
    assert [row[:1] + row[2:] for row in rows] == [
        ["3" * 32, "done", "review", "reviews", "doc/3", "v1", "-"],
        ["2" * 32, "uncertain", "review", "reviews", "doc/2", "v1", "receipt_differs"],
        ["1" * 32, "ready", "review", "reviews", "doc/1", "v1", "-"],
    ]
    assert all(re.fullmatch(r"\d+ d", row[1]) for row in rows)
    assert "secret" not in printed.out


def test_reactions_are_listed_by_state_and_number_and_as_json(command: Command, kept: ReactionStore) -> None:
    def listed(*more: str) -> list[str]:
        return [row["record"] for row in json.loads(command("reactions", *HERE, "--json", *more).out)]

    assert listed() == ["doc/3", "doc/2", "doc/1"]
    assert listed("--state", "ready") == ["doc/1"]
    assert listed("--limit", "1") == ["doc/3"]
    assert command("reactions", *HERE, "--state", "stopped").out == "no such reactions are kept in sqlite:///r.db\n"
    assert command("reactions", "--state", "gone").code == 2
    (ready,) = json.loads(command("reactions", *HERE, "--json", "--state", "ready").out)
    assert ready == {
        "task_id": "1" * 32,
        "state": "ready",
        "reason": None,
        "reaction": "review",
        "grant": "reviews",
        "revision": 1,
        "who": "ada",
        "record": "doc/1",
        "version": "v1",
        "action": "mend",
        "received_at": "2001-09-09T01:46:41.000Z",
        "asked": READY.asked,
        "decided": None,
        "actor": None,
        "submits": 0,
        "submitted_at": None,
        "reference": None,
    }


def test_one_is_shown_with_its_audit_log_and_its_bodies_only_where_they_are_asked_for(
    command: Command, kept: ReactionStore
) -> None:
    printed = command("reactions", "show", READY.task_id, *HERE)
    assert (printed.code, printed.err) == (0, "")
    facts, lines = printed.out.split("\n\n")
    assert f"asked         {READY.asked}" in facts.splitlines()
    assert [line.split() for line in lines.splitlines()] == [
        ["at", "what", "reason", "actor"],
        ["2001-09-09T01:46:40.000Z", "received", "-", "-"],
        ["2001-09-09T01:46:41.000Z", "prepare", "-", "-"],
    ]
    assert "secret" not in printed.out + command("reactions", *HERE, "show", READY.task_id, "--json").out
    told = json.loads(command("reactions", "show", READY.task_id, "--bodies", "--json", *HERE).out)
    assert [told[name] for name in ("label", "text", "result")] == ["secret label", "secret text", '"secret"']
    assert [line["what"] for line in told["audit"]] == ["received", "prepare"]
    assert 'result        "secret"' in command("reactions", "show", READY.task_id, "--bodies", *HERE).rows


def test_what_others_wrote_is_shown_as_text(command: Command, kept: ReactionStore) -> None:
    bad = replace(READY, resource="\x1b[2J\u202e" + "元" * 90, version="a\nb", reaction="\ud800", label="\x1b[0m")
    put(kept, bad.document())
    for printed in (command("reactions", *HERE), command("reactions", "show", bad.task_id, "--bodies", *HERE)):
        assert not set("\x1b\u202e\ud800") & set(printed.out)
    assert len(command("reactions", *HERE).rows) == 4


def test_an_erased_reaction_is_told_as_such(command: Command, kept: ReactionStore) -> None:
    put(kept, Entry(READY.task_id, "review", "", 0, "", "", "", "", "", 1e9, state="stopped", erased=True).document())
    (row,) = json.loads(command("reactions", *HERE, "--state", "stopped", "--json").out)
    assert (row["reason"], row["grant"], row["record"]) == ("erased", None, "")
    refused(command("reactions", "approve", READY.task_id, "--digest", "ab", *HERE), "not_waiting")


def test_a_place_without_reactions_is_left_as_it_is(command: Command, tmp_path: Path) -> None:
    assert command("reactions", *HERE) == (0, "no reactions are kept in sqlite:///r.db\n", "")
    assert command("reactions", *HERE, "--json").out == "[]\n"
    for verb in (["show"], ["approve", "--digest", "ab"], ["reject"], ["cancel"], ["resolve", "--look"]):
        refused(command("reactions", verb[0], "t1", *verb[1:], *HERE), "there is no reaction 't1'")
    assert list(tmp_path.iterdir()) == []
    refused(command("reactions", "--journal", "redis://127.0.0.1:1/0"), "cannot be kept in a RedisJournal")


def test_reactions_of_a_database_are_listed_and_answered(command: Command, store: Store) -> None:  # noqa: F811
    from agents_progress.effects.reactions.postgres import PostgresReactionStore

    there = ("--journal", store.url)
    assert command("reactions", *there).out.startswith("no reactions are kept in postgresql://")
    kept = PostgresReactionStore(store.url)
    assert not kept.exists()
    fill(kept)
    assert "uncertain" in command("reactions", *there).rows[2]
    assert command("reactions", *there, "reject", READY.task_id).code == 0
    assert now_of(kept, READY).state == "stopped"
    kept.close()


# A person's word.

SAID = {
    "approve": (
        READY,
        ["--digest", READY.asked],
        "approved",
        "approved; a worker reads its record again, and submits it",
    ),
    "reject": (READY, [], "stopped", "rejected; it stops"),
    "cancel": (READY, [], "stopped", "cancelled; it stops"),
    "look": (OPEN, ["--look"], "uncertain", "a worker reads its receipt now"),
    "not submitted": (OPEN, ["--not-submitted"], "approved", "it is submitted again, unless it was cancelled"),
    "give up": (OPEN, ["--give-up"], "stopped", "it stops; whether it happened is not known"),
}


@pytest.mark.parametrize("verb", SAID)
def test_a_word_moves_a_reaction_on_and_is_in_the_audit_log_with_its_actor(
    command: Command, kept: ReactionStore, verb: str
) -> None:
    about, more, state, words = SAID[verb]
    name = verb if about is READY else "resolve"
    printed = command("reactions", name, about.task_id, *map(str, more), "--actor", "mei", *HERE)
    assert (printed.code, printed.err) == (0, "")
    assert printed.out == f"{about.task_id} review {about.resource} v1: {printed.out.partition(': ')[2]}"
    assert printed.out.endswith(f"{words}\n")
    assert (now_of(kept, about).state, kept.audit(task_id=about.task_id)[-1].actor) == (state, "mei")
    assert now_of(kept, about).due_at is not None, "a worker goes on with it"


REFUSED = {
    "another digest": (["approve", READY.task_id, "--digest", "ab"], "digest_differs"),
    "no digest": (["approve", READY.task_id], "required: --digest"),
    "nobody": (["reject", READY.task_id, "--actor", " "], "say who decides"),
    "an end": (["approve", OVER.task_id, "--digest", str(OVER.asked)], "not_waiting"),
    "an end to be rejected": (["reject", OVER.task_id], "not_waiting"),
    "an end to be cancelled": (["cancel", OVER.task_id], "already_ended"),
    "nothing uncertain": (["resolve", READY.task_id, "--look"], "not_uncertain"),
    "nothing found": (["resolve", OPEN.task_id], "is required"),
    "two findings": (["resolve", OPEN.task_id, "--look", "--give-up"], "not allowed with"),
    "another one": (["reject", "4" * 32], "there is no reaction '4444"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused_and_changes_nothing(command: Command, kept: ReactionStore, case: str) -> None:
    arguments, words = REFUSED[case]
    printed = command("reactions", *arguments, *HERE)
    assert (printed.code, printed.out) == (2, "")
    assert words in printed.err
    assert [now_of(kept, each) for each in (READY, OPEN, OVER)] == [READY, OPEN, OVER]


def test_what_may_have_happened_is_not_stopped_and_not_submitted_again(command: Command, kept: ReactionStore) -> None:
    refused(command("reactions", "cancel", OPEN.task_id, *HERE), "it is not submitted again, and its receipt")
    assert (now_of(kept, OPEN).state, now_of(kept, OPEN).decided) == ("uncertain", "cancelled")


def test_an_approval_under_a_grant_that_ended_stops_it_instead(command: Command, kept: ReactionStore) -> None:
    put(kept, Held(replace(GRANT, until=1.0)).document(0.0))
    refused(command("reactions", "approve", READY.task_id, "--digest", str(READY.asked), *HERE), "grant_expired")
    assert now_of(kept, READY).state == "stopped"


async def test_a_word_at_a_terminal_brings_a_reaction_to_its_receipt(command: Command, tmp_path: Path) -> None:
    journal = open_journal(f"sqlite:///{tmp_path}/r.db")
    world = World(journal, SQLiteReactionStore(tmp_path / "r.db"))
    ready = await world.ready()
    asked = json.loads((await asyncio.to_thread(command, "reactions", "show", ready.task_id, "--json", *HERE)).out)[
        "asked"
    ]
    printed = await asyncio.to_thread(
        command, "reactions", "approve", ready.task_id, "--digest", asked, "--actor", "mei", *HERE
    )
    assert printed.code == 0
    assert (await world.moved(ready.task_id)).state == "done"
    assert [row.status for row in await journal.runs()] == ["done", "waiting"]
    world.store.close()
    await journal.close()
