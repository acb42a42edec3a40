"""The contract of :class:`Ledger` as one class of tests, for the authors of backends.

```python
class TestMyLedger(LedgerContract):
    @pytest.fixture
    def ledger(self):      # an empty store
        ...

    @pytest.fixture
    def reopened(self):     # a second ledger on that store, as another node has it
        ...
```

Needs pytest.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from agents_progress.effects.entry import (
    AT_ONCE,
    Begun,
    Busy,
    Conflict,
    DidNotHappen,
    Effect,
    Happened,
    Hold,
    StillUnknown,
    Stored,
    Uncertain,
)
from agents_progress.effects.keys import digest
from agents_progress.effects.ledger import Ledger
from agents_progress.errors import JournalClosed, UsageError
from agents_progress.journal.base import Scope

ODD = "a\x00b\\0\ud800 \"'{}%s;--元"
"""A text that many a column cannot hold."""


def effect(key: str = "k", arguments: str = "a", **about: Any) -> Effect:
    """An effect whose entry follows from its tenant and key."""
    entry = digest(about.get("tenant"), key)
    return Effect(**{"entry": entry, "arguments": digest(arguments), "name": "pay", "key": key, "scope": "s", **about})


def begun(ledger: Ledger, what: Effect) -> Hold:
    """An effect that must be free, taken."""
    answer = ledger.begin(what)
    assert isinstance(answer, Begun), answer
    assert answer.hold.entry == what.entry
    return answer.hold


def lapsed(ledger: Ledger, what: Effect) -> Hold:
    """An effect whose owner died: its lease ran out."""
    hold = begun(ledger, what)
    _until(lambda: isinstance(ledger.begin(what), Uncertain))
    return hold


def _until(holds: Callable[[], bool]) -> None:
    give_up = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < give_up, "it did not happen in time"
        threading.Event().wait(0.01)


class LedgerContract:
    """Everything a ledger promises. Subclasses give the fixtures ``ledger`` and ``reopened``; none may leave a test
    out.

    ``tick`` is a lease that tests wait for, in seconds: as short as the clock of the store allows.
    """

    tick = 0.15

    # One effect.

    def test_an_effect_is_begun_by_one_and_its_output_is_given_to_all_that_follow(
        self, ledger: Ledger, reopened: Ledger
    ) -> None:
        hold = begun(ledger, effect())
        assert hold.generation == 1
        for node in (ledger, reopened):
            busy = node.begin(effect())
            assert isinstance(busy, Busy)
            assert 0 < busy.left_s <= ledger.lease_s
        assert ledger.succeed(hold, '{"is":1}')
        for node in (ledger, reopened):
            assert node.begin(effect()) == Stored('{"is":1}')

    def test_other_arguments_under_the_same_key_are_refused_while_it_may_have_happened(
        self, ledger: Ledger, reopened: Ledger
    ) -> None:
        other = effect(arguments="b")
        hold = begun(ledger, effect())
        assert reopened.begin(other) == Conflict()
        ledger.give_up(hold)
        assert reopened.begin(other) == Conflict()
        ledger.succeed(hold, "1")
        assert reopened.begin(other) == Conflict()

    def test_what_certainly_did_not_happen_is_begun_again_with_any_arguments(
        self, ledger: Ledger, reopened: Ledger
    ) -> None:
        hold = begun(ledger, effect())
        assert ledger.fail(hold)
        again = begun(reopened, effect(arguments="b"))
        assert again.generation == hold.generation + 1
        assert reopened.begin(effect()) == Conflict()

    def test_different_entries_know_nothing_of_each_other(self, ledger: Ledger) -> None:
        holds = {begun(ledger, effect(key)) for key in ("a", "b", "")}
        holds |= {begun(ledger, effect("a", tenant=tenant)) for tenant in ("t", "u")}
        assert len(holds) == 5

    def test_of_many_threads_and_nodes_one_begins(self, ledger: Ledger, reopened: Ledger) -> None:
        with ThreadPoolExecutor(16) as threads:
            answers = list(threads.map(lambda node: node.begin(effect()), (ledger, reopened) * 25))
        assert [type(answer) for answer in answers].count(Begun) == 1
        assert {type(answer) for answer in answers} == {Begun, Busy}

    # Owners that die.

    def test_an_effect_whose_owner_is_silent_is_uncertain_and_stays_so(self, ledger: Ledger, reopened: Ledger) -> None:
        ledger.lease_s = self.tick
        hold = lapsed(ledger, effect())
        for node in (ledger, reopened, ledger):
            assert node.begin(effect()) == Uncertain(hold.generation)
        assert ledger.renew([hold], 60.0) == [hold]
        assert reopened.begin(effect()) == Uncertain(hold.generation)

    def test_a_lease_that_is_renewed_does_not_run_out(self, ledger: Ledger, reopened: Ledger) -> None:
        ledger.lease_s = 4 * self.tick
        hold = begun(ledger, effect())
        for _ in range(8):
            threading.Event().wait(self.tick)
            assert ledger.renew([hold], 4 * self.tick) == []
        assert isinstance(reopened.begin(effect()), Busy)

    def test_renewing_gives_back_what_is_not_held(self, ledger: Ledger) -> None:
        held, settled, failed, left = (begun(ledger, effect(key)) for key in "abcd")
        ledger.succeed(settled, "1")
        ledger.fail(failed)
        ledger.give_up(left)
        older, unknown = replace(held, generation=held.generation - 1), replace(held, entry="none")
        asked = [settled, held, failed, left, older, unknown]
        assert [hold for hold in asked if hold in ledger.renew(asked, 60.0)] == [h for h in asked if h is not held]
        assert ledger.renew([], 60.0) == []

    def test_whoever_gives_up_leaves_an_uncertain_effect_at_once(self, ledger: Ledger, reopened: Ledger) -> None:
        hold = begun(ledger, effect())
        assert ledger.give_up(hold)
        assert reopened.begin(effect()) == Uncertain(1)
        assert reopened.look(hold.entry)[0].deadline == AT_ONCE  # type: ignore[union-attr]

    # Finding out.

    def test_an_uncertain_effect_that_happened_gives_what_was_found(self, ledger: Ledger, reopened: Ledger) -> None:
        hold = begun(ledger, effect())
        ledger.give_up(hold)
        assert reopened.resolve(hold.entry, 1, Happened({"paid": 5}), "ada")
        assert ledger.begin(effect()) == Stored('{"is":{"paid":5}}')
        entry, _ = ledger.look(hold.entry)
        assert entry is not None
        assert (entry.settled, entry.settled_by) == ("happened", "ada")

    def test_an_uncertain_effect_that_did_not_happen_is_begun_again_once(
        self, ledger: Ledger, reopened: Ledger
    ) -> None:
        ledger.lease_s = self.tick
        hold = lapsed(ledger, effect())
        ledger.lease_s = 60.0
        assert ledger.resolve(hold.entry, 1, DidNotHappen(), "ada")
        assert not reopened.resolve(hold.entry, 1, DidNotHappen(), "bob")
        assert begun(reopened, effect()).generation == 2
        assert isinstance(ledger.begin(effect()), Busy)

    def test_nothing_is_settled_by_not_knowing(self, ledger: Ledger) -> None:
        hold = begun(ledger, effect())
        ledger.give_up(hold)
        assert not ledger.resolve(hold.entry, 1, StillUnknown(), "ada")
        assert ledger.begin(effect()) == Uncertain(1)

    @pytest.mark.parametrize("finding", [Happened("x"), DidNotHappen()])
    def test_only_an_uncertain_effect_of_that_attempt_can_be_resolved(self, ledger: Ledger, finding: Any) -> None:
        assert not ledger.resolve("none", 1, finding, "ada")
        hold = begun(ledger, effect())
        assert not ledger.resolve(hold.entry, 1, finding, "ada")  # its owner is alive
        ledger.fail(hold)
        assert not ledger.resolve(hold.entry, 1, finding, "ada")
        second = begun(ledger, effect())
        ledger.give_up(second)
        assert not ledger.resolve(hold.entry, 1, finding, "ada")
        assert ledger.begin(effect()) == Uncertain(2)
        ledger.succeed(second, "2")
        assert not ledger.resolve(hold.entry, 2, finding, "ada")
        assert ledger.begin(effect()) == Stored("2")

    # Words that come late.

    def test_a_late_success_counts_while_no_other_attempt_was_begun(self, ledger: Ledger, reopened: Ledger) -> None:
        ledger.lease_s = self.tick
        one, two = lapsed(ledger, effect("a")), lapsed(ledger, effect("b"))
        assert reopened.resolve(two.entry, 1, DidNotHappen(), "ada")
        for hold, what in ((one, effect("a")), (two, effect("b"))):
            assert ledger.succeed(hold, "1")
            assert reopened.begin(what) == Stored("1")

    def test_a_success_that_another_attempt_overtook_is_told(self, ledger: Ledger, reopened: Ledger) -> None:
        hold = begun(ledger, effect())
        ledger.give_up(hold)
        reopened.resolve(hold.entry, 1, DidNotHappen(), "ada")
        second = begun(reopened, effect())
        assert not ledger.succeed(hold, "1")
        assert not ledger.fail(hold)
        assert not ledger.give_up(hold)
        assert isinstance(reopened.begin(effect()), Busy)
        assert reopened.succeed(second, "2")
        assert ledger.begin(effect()) == Stored("2")

    def test_what_happened_is_not_taken_back(self, ledger: Ledger) -> None:
        hold = begun(ledger, effect())
        assert ledger.succeed(hold, "1")
        assert ledger.succeed(hold, "2")  # said again, as after a commit whose answer was lost
        assert not ledger.fail(hold)
        assert not ledger.give_up(hold)
        assert ledger.begin(effect()) == Stored("1")

    def test_a_failure_that_was_found_to_have_happened_stays_so(self, ledger: Ledger) -> None:
        hold = begun(ledger, effect())
        ledger.give_up(hold)
        ledger.resolve(hold.entry, 1, Happened("x"), "ada")
        assert not ledger.fail(hold)
        assert ledger.begin(effect()) == Stored('{"is":"x"}')

    # Looking.

    def test_everything_about_an_effect_is_kept(self, ledger: Ledger, reopened: Ledger) -> None:
        about = {"name": ODD, "scope": ODD, "owner": ODD, "tenant": ODD, "task_id": ODD, "run_id": "r", "call_id": "c"}
        what = effect(ODD, **about)
        before = ledger.look(what.entry)[1]
        hold = begun(ledger, what)
        entry, now = reopened.look(what.entry)
        assert entry is not None
        assert entry.effect == what
        assert before <= entry.began_at <= now < entry.deadline <= now + ledger.lease_s
        assert (entry.generation, entry.settled, entry.settled_at, entry.output, entry.erased) == (
            1,
            *[None] * 3,
            False,
        )
        ledger.give_up(hold)
        ledger.resolve(hold.entry, 1, Happened(), ODD)
        assert reopened.look(what.entry)[0].settled_by == ODD  # type: ignore[union-attr]

    def test_an_unknown_effect_is_none(self, ledger: Ledger) -> None:
        assert ledger.look("none")[0] is None

    def test_entries_are_listed_by_state_task_and_scope_newest_first(self, ledger: Ledger, reopened: Ledger) -> None:
        mine = {"owner": "ada", "tenant": "t", "task_id": "task"}
        whats = {
            "running": effect("1", **mine),
            "uncertain": effect("2", **mine),
            "failed": effect("3", owner="ada", tenant="u", task_id="other"),
            "succeeded": effect("4", owner="bob", tenant="t"),
        }
        holds = {state: begun(ledger, what) for state, what in whats.items()}
        ledger.give_up(holds["uncertain"])
        ledger.fail(holds["failed"])
        ledger.succeed(holds["succeeded"], "1")

        def keys(**wanted: Any) -> list[str]:
            return [entry.effect.key for entry in reopened.entries(**wanted)]

        assert keys() == ["4", "3", "2", "1"]
        assert keys(limit=2) == ["4", "3"]
        assert keys(limit=-1) == []
        for state, what in whats.items():
            assert keys(state=state) == [what.key]
        assert keys(task_id="task") == ["2", "1"]
        assert keys(scope=Scope(owner="ada")) == ["3", "2", "1"]
        assert keys(scope=Scope(tenant="t")) == ["4", "2", "1"]
        assert keys(scope=Scope("ada", "t"), state="uncertain") == ["2"]
        assert keys(scope=Scope(ODD)) == keys(task_id="tas%") == []
        wanted = holds["failed"].entry
        assert keys(begins=wanted[:12]) == keys(begins=wanted) == ["3"]
        assert keys(begins=wanted, scope=Scope("bob")) == keys(begins="%") == keys(begins=f"{wanted}0") == []

    def test_one_entry_is_seen_by_those_alone_whose_it_is(self, ledger: Ledger, reopened: Ledger) -> None:
        hold = begun(ledger, effect(owner="ada", tenant="t"))
        for scope in (Scope(), Scope("ada"), Scope(tenant="t"), Scope("ada", "t")):
            assert reopened.look(hold.entry, scope=scope)[0] is not None
        before = ledger.look(hold.entry)[1]
        for scope in (Scope("bob"), Scope(tenant="u"), Scope("ada", "u"), Scope(ODD)):
            entry, now = reopened.look(hold.entry, scope=scope)
            assert entry is None
            assert now >= before
        ledger.erase(owner="ada")
        assert reopened.look(hold.entry, scope=Scope("ada"))[0] is None

    def test_a_store_says_whether_it_holds_anything_and_makes_nothing_for_that(
        self, ledger: Ledger, reopened: Ledger
    ) -> None:
        assert not ledger.exists()
        assert not reopened.exists()
        begun(ledger, effect())
        assert ledger.exists()
        assert reopened.exists()

    # Erasing.

    @pytest.mark.parametrize("target", ["run_id", "task_id", "owner"])
    def test_erasing_removes_what_is_stored_and_not_that_it_happened(
        self, ledger: Ledger, reopened: Ledger, target: str
    ) -> None:
        mine, other = effect("mine", **{target: "x"}, tenant="t"), effect("other", **{target: "y"}, tenant="t")
        for what in (mine, other):
            ledger.succeed(begun(ledger, what), '{"is":"secret"}')
        assert reopened.erase(**{target: "x"}) == 1
        assert reopened.erase(**{target: "x"}) == 0
        entry, _ = ledger.look(mine.entry)
        assert entry is not None
        assert entry.erased
        assert "secret" not in repr(entry)
        assert "mine" not in repr(entry)
        assert ledger.begin(mine) == Stored(None)
        assert ledger.begin(effect("mine", "b", tenant="t")) == Stored(None)
        assert ledger.begin(other) == Stored('{"is":"secret"}')
        assert [entry.effect.key for entry in ledger.entries()] == ["other"]

    def test_what_is_erased_while_it_runs_leaves_no_output_and_still_happens_once(
        self, ledger: Ledger, reopened: Ledger
    ) -> None:
        running, uncertain = effect("a", owner="x"), effect("b", owner="x")
        hold, left = begun(ledger, running), begun(ledger, uncertain)
        ledger.give_up(left)
        assert reopened.erase(owner="x") == 2
        assert isinstance(reopened.begin(running), Busy)
        assert ledger.renew([hold], 60.0) == []
        assert ledger.succeed(hold, '{"is":"secret"}')
        assert reopened.begin(running) == Stored(None)
        assert reopened.begin(uncertain) == Uncertain(1)
        assert ledger.resolve(left.entry, 1, DidNotHappen(), "ada")
        assert begun(reopened, uncertain).generation == 2
        assert [entry.effect for entry in ledger.entries()] == [uncertain]

    def test_exactly_one_thing_to_erase_is_named(self, ledger: Ledger) -> None:
        for named in ({}, {"run_id": "r", "owner": "o"}):
            with pytest.raises(UsageError, match="exactly one"):
                ledger.erase(**named)

    # Opening and closing.

    def test_a_closed_ledger_is_refused_and_another_one_goes_on(self, ledger: Ledger, reopened: Ledger) -> None:
        hold = begun(ledger, effect())
        assert ledger.submit(ledger.succeed, hold, "1").result(10)
        assert not ledger.closed
        ledger.close()
        ledger.close()
        assert ledger.closed
        for ask in (lambda: ledger.begin(effect()), lambda: ledger.renew([hold], 1.0), ledger.entries, ledger.exists):
            with pytest.raises(JournalClosed, match="open it again"):
                ask()
        if reopened is not ledger:
            assert reopened.begin(effect()) == Stored("1")
