"""A tool under `@once` has its effect once: in one run and in many, sync and async, and however a call is left."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agents import RunContextWrapper, function_tool
from pydantic import BaseModel, RootModel, SecretStr

from agents_progress.effects.entry import (
    Begun,
    Busy,
    DidNotHappen,
    Entry,
    Finding,
    Happened,
    Hold,
    StillUnknown,
    Uncertain,
    erased,
)
from agents_progress.effects.keys import canonical, digest
from agents_progress.effects.ledger import Ledger
from agents_progress.effects.ledger.memory import MemoryLedger
from agents_progress.effects.ledger.sqlite import SQLiteLedger
from agents_progress.effects.once import effect_key, once, worded
from agents_progress.effects.shown import fields
from agents_progress.effects.words import TOLD
from agents_progress.errors import (
    EffectBusy,
    EffectConflict,
    EffectErased,
    EffectUncertain,
    EffectUnscoped,
    JournalUnavailable,
    NotDecoratable,
    UsageError,
)


class Clock:
    """The time of a ledger, which a test turns."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def cancelled(call: Coroutine[Any, Any, Any], when: asyncio.Event) -> None:
    """Make a call, and cancel it when it has come so far."""
    task = asyncio.create_task(call)
    await when.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(clock: Clock) -> Iterator[MemoryLedger]:
    ledger = MemoryLedger(clock)
    yield ledger
    ledger.close()


class Bank:
    """A downstream: it counts what was paid under which key."""

    def __init__(self) -> None:
        self.paid: list[tuple[int, str]] = []
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        self.answer: Any = None

    def pay(self, order: int) -> str:
        self.paid.append((order, effect_key()))
        return f"paid {order}"

    def reconcile(self, key: str, arguments: Mapping[str, Any]) -> Finding:
        self.asked.append((key, arguments))
        if self.answer is not None:
            return self.answer  # type: ignore[no-any-return]
        found = [order for order, paid in self.paid if paid == key]
        return Happened(f"paid {found[0]}") if found else DidNotHappen()


@pytest.fixture
def bank() -> Bank:
    return Bank()


def only(ledger: Ledger) -> Entry:
    (entry,) = ledger.entries()
    return entry


class Freezing(MemoryLedger):
    """Gives the right to have an effect to somebody who is frozen then for longer than the lease. What becomes of it
    meanwhile is ``meanwhile(hold)``.
    """

    def __init__(self, meanwhile: Callable[[Any], object]) -> None:
        super().__init__()
        self.lease_s = 0.05
        self._meanwhile = [meanwhile]

    def begin(self, effect: Any) -> Any:
        answer = super().begin(effect)
        while self._meanwhile:
            time.sleep(2 * self.lease_s)
            self._meanwhile.pop()(answer.hold)
        return answer


def is_keeper() -> bool:
    """Whether this is the thread that keeps leases."""
    return threading.current_thread().name == "agents-progress-leases"


# The two kinds of tools.

KINDS = ["sync", "async"]


def tool_of(kind: str, function: Callable[[int], str], **terms: Any) -> Callable[[int], str]:
    """A once-only tool of a kind, called as sync code calls it."""
    if kind == "sync":

        @once(**{"scope": "s", "name": "pay", **terms})
        def pay(order: int) -> str:
            return function(order)

        return pay

    @once(**{"scope": "s", "name": "pay", **terms})
    async def pay_later(order: int) -> str:
        await asyncio.sleep(0)
        return function(order)

    return lambda order: asyncio.run(pay_later(order))


@pytest.mark.parametrize("kind", KINDS)
def test_a_call_that_was_frozen_before_its_body_leaves_the_effect_to_whoever_took_over(kind: str, bank: Bank) -> None:
    def taken_over(hold: Any) -> None:
        assert ledger.resolve(hold.entry, hold.generation, DidNotHappen(), "ann")
        again = MemoryLedger.begin(ledger, only(ledger).effect)
        assert isinstance(again, Begun)
        ledger.succeed(again.hold, '{"is":"theirs"}')

    ledger = Freezing(taken_over)
    assert tool_of(kind, bank.pay, ledger=ledger)(7) == "theirs"
    assert bank.paid == []
    assert only(ledger).generation == 2
    ledger.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_call_that_cannot_ask_whether_its_effect_is_still_its_own_lets_go_of_it(kind: str, bank: Bank) -> None:
    def kept_and_gone(hold: Any) -> None:
        now = time.time()  # as after a long wait for the store's lock, which leaves the lease as new
        ledger.change(hold.entry, lambda found, _: (None, replace(found, deadline=now + ledger.lease_s)))
        renew = ledger.renew

        def away(holds: Any, ttl: float) -> Any:
            if is_keeper():
                return renew(holds, ttl)
            raise JournalUnavailable("away")

        ledger.renew = away  # type: ignore[method-assign]

    ledger = Freezing(kept_and_gone)
    with pytest.raises(JournalUnavailable):
        tool_of(kind, bank.pay, ledger=ledger)(7)
    time.sleep(4 * ledger.lease_s)
    entry, now = ledger.look(only(ledger).effect.entry)
    assert entry is not None
    assert entry.state(now) == "uncertain", "nobody renews it"
    assert bank.paid == []
    ledger.close()


async def test_a_call_that_is_cancelled_while_it_asks_whether_its_effect_is_still_its_own_leaves_it_free(
    bank: Bank,
) -> None:
    reached, go_on, loop = asyncio.Event(), threading.Event(), asyncio.get_running_loop()

    def kept(hold: Any) -> None:
        now = time.time()
        ledger.change(hold.entry, lambda found, _: (None, replace(found, deadline=now + 100)))
        ledger.renew = asks  # type: ignore[method-assign]

    def asks(holds: Any, ttl: float) -> list[Hold]:
        if is_keeper():
            return []
        loop.call_soon_threadsafe(reached.set)
        assert go_on.wait(10)
        return []

    ledger = Freezing(kept)

    @once(scope="s", ledger=ledger)
    async def pay(order: int) -> str:
        return bank.pay(order)

    await cancelled(pay(1), reached)
    go_on.set()
    await asyncio.wrap_future(ledger.submit(int))  # after everything that was submitted
    del ledger.renew
    assert bank.paid == []
    assert only(ledger).settled == "did_not_happen"
    assert await pay(1) == "paid 1"
    ledger.close()


def test_a_plain_function_that_gives_something_to_await_has_done_nothing_that_counts(ledger: MemoryLedger) -> None:
    async def later(order: int) -> str:
        raise AssertionError("nobody awaits it")

    @once(scope="s", ledger=ledger)
    def pay(order: int) -> Any:
        return later(order)

    with pytest.raises(UsageError, match="async def"):
        pay(1)
    assert only(ledger).state(1000.0) == "uncertain"


@pytest.mark.parametrize("kind", KINDS)
def test_a_call_that_was_frozen_before_its_body_takes_the_effect_again_when_nobody_did(kind: str, bank: Bank) -> None:
    ledger = Freezing(lambda hold: None)
    assert tool_of(kind, bank.pay, ledger=ledger)(7) == "paid 7"
    assert len(bank.paid) == 1
    assert (only(ledger).generation, only(ledger).settled) == (2, "happened")
    ledger.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_call_gets_the_stored_output_and_another_one_runs(kind: str, ledger: MemoryLedger, bank: Bank) -> None:
    pay = tool_of(kind, bank.pay, ledger=ledger)
    assert [pay(1), pay(1), pay(2)] == ["paid 1", "paid 1", "paid 2"]
    assert [order for order, _ in bank.paid] == [1, 2]


@pytest.mark.parametrize(("key", "shown"), [(None, ""), ("o-{order}", "o-7"), (lambda given: "mine", "mine")])
def test_an_entry_shows_the_key_that_was_chosen_and_never_arguments_or_outputs(
    key: Any, shown: str, ledger: MemoryLedger
) -> None:
    @once(scope="s", ledger=ledger, key=key)
    def pay(order: int, note: str) -> str:
        return "secret output"

    assert pay(7, "secret note") == pay(7, "secret note")
    entry = only(ledger)
    assert entry.effect.key == shown
    assert "secret" not in repr(entry) + repr(ledger.begin(entry.effect))
    assert "secret" not in repr(fields(entry, 0.0))


@pytest.mark.parametrize("kind", KINDS)
def test_a_body_that_raised_is_uncertain_and_is_not_run_again(kind: str, ledger: MemoryLedger, bank: Bank) -> None:
    def pay_and_fail(order: int) -> str:
        bank.pay(order)
        raise ConnectionError("the acknowledgement was lost")

    pay = tool_of(kind, pay_and_fail, ledger=ledger)
    with pytest.raises(ConnectionError, match="acknowledgement"):
        pay(1)
    for _ in range(2):
        with pytest.raises(EffectUncertain) as refused:
            pay(1)
    assert len(bank.paid) == 1
    entry = only(ledger)
    assert (refused.value.entry, refused.value.generation) == (entry.effect.entry, 1)
    assert ledger.resolve(entry.effect.entry, 1, Happened("found"), "ada")
    assert pay(1) == "found"
    assert len(bank.paid) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_an_exception_that_proves_that_nothing_happened_lets_it_run_again(
    kind: str, ledger: MemoryLedger, bank: Bank
) -> None:
    class Declined(Exception):
        pass

    answers = iter([Declined(), None])

    def attempt(order: int) -> str:
        refusal = next(answers)
        if refusal is not None:
            raise refusal
        return bank.pay(order)

    pay = tool_of(kind, attempt, ledger=ledger, no_effect=Declined)
    with pytest.raises(Declined):
        pay(1)
    assert pay(1) == "paid 1"
    assert len(bank.paid) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_what_an_owner_left_behind_is_asked_for_downstream_by_its_key(
    kind: str, ledger: MemoryLedger, bank: Bank
) -> None:
    def pay_and_die(order: int) -> str:
        bank.pay(order)
        raise ConnectionError

    def die(order: int) -> str:
        raise ConnectionError

    for order, broken, executions in ((1, pay_and_die, 1), (2, die, 0)):
        with pytest.raises(ConnectionError):
            tool_of(kind, broken, ledger=ledger)(order)
        assert len([each for each, _ in bank.paid if each == order]) == executions
        assert tool_of(kind, bank.pay, ledger=ledger, reconcile=bank.reconcile)(order) == f"paid {order}"
        assert len([each for each, _ in bank.paid if each == order]) == 1
    assert [key for key, _ in bank.asked] == [key for _, key in bank.paid]  # the same in each attempt
    assert [arguments for _, arguments in bank.asked] == [{"order": 1}, {"order": 2}]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("answer", ["unknown", "error"])
def test_a_downstream_that_does_not_know_leaves_it_uncertain(
    kind: str, answer: str, ledger: MemoryLedger, bank: Bank
) -> None:
    def reconcile(key: str, arguments: Mapping[str, Any]) -> Finding:
        if answer == "error":
            raise TimeoutError
        return StillUnknown()

    def die(order: int) -> str:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        tool_of(kind, die, ledger=ledger)(1)
    with pytest.raises(EffectUncertain):
        tool_of(kind, bank.pay, ledger=ledger, reconcile=reconcile)(1)
    assert bank.paid == []


def test_a_downstream_that_answers_with_anything_else_is_a_mistake(ledger: MemoryLedger, bank: Bank) -> None:
    bank.answer = True

    @once(scope="s", ledger=ledger, reconcile=bank.reconcile)
    def pay() -> None:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        pay()
    with pytest.raises(UsageError, match="Happened"):
        pay()
    assert only(ledger).state(ledger.look("")[1]) == "uncertain"


def test_a_word_that_somebody_else_gave_meanwhile_counts(ledger: MemoryLedger, bank: Bank) -> None:
    def reconcile(key: str, arguments: Mapping[str, Any]) -> Finding:
        assert ledger.resolve(only(ledger).effect.entry, 1, Happened("as ada found"), "ada")
        return DidNotHappen()

    def die(order: int) -> str:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        tool_of("sync", die, ledger=ledger)(1)
    assert tool_of("sync", bank.pay, ledger=ledger, reconcile=reconcile)(1) == "as ada found"
    assert bank.paid == []


def test_an_answer_about_an_attempt_that_another_one_followed_counts_for_nothing(
    ledger: MemoryLedger, bank: Bank
) -> None:
    inside, go_on = threading.Event(), threading.Event()
    begin = ledger.begin

    def seen(effect: Any) -> Any:
        answer = begin(effect)
        if isinstance(answer, Busy):  # the late one waits, as it must
            go_on.set()
        return answer

    def slowly(order: int) -> str:
        inside.set()
        assert go_on.wait(10)
        return bank.pay(order)

    def die(order: int) -> str:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        tool_of("sync", die, ledger=ledger)(1)
    ledger.begin = seen  # type: ignore[method-assign]
    with ThreadPoolExecutor(1) as threads:

        def late(key: str, arguments: Mapping[str, Any]) -> Finding:
            threads.submit(tool_of("sync", slowly, ledger=ledger, reconcile=bank.reconcile), 1)
            assert inside.wait(10)
            return DidNotHappen()

        assert tool_of("sync", bank.pay, ledger=ledger, reconcile=late)(1) == "paid 1"
    assert len(bank.paid) == 1
    assert only(ledger).generation == 2


# Many at once.


@pytest.mark.parametrize("store", ["memory", "sqlite"])
async def test_of_fifty_parallel_calls_of_an_async_tool_one_runs(store: str, tmp_path: Path, bank: Bank) -> None:
    ledger: Ledger = MemoryLedger() if store == "memory" else SQLiteLedger(tmp_path / "e.db")

    @once(scope="s", ledger=ledger)
    async def pay(order: int) -> str:
        await asyncio.sleep(0.05)
        return bank.pay(order)

    assert await asyncio.gather(*(pay(1) for _ in range(50))) == ["paid 1"] * 50
    assert len(bank.paid) == 1
    ledger.close()


@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_of_fifty_parallel_calls_of_a_sync_tool_one_runs(store: str, tmp_path: Path, bank: Bank) -> None:
    ledger: Ledger = MemoryLedger() if store == "memory" else SQLiteLedger(tmp_path / "e.db")
    entered = threading.Event()

    @once(scope="s", ledger=ledger)
    def pay(order: int) -> str:
        entered.wait(0.05)
        return bank.pay(order)

    with ThreadPoolExecutor(50) as threads:
        assert list(threads.map(pay, [1] * 50)) == ["paid 1"] * 50
    assert len(bank.paid) == 1
    ledger.close()


async def test_who_waits_too_long_for_another_call_is_told(ledger: MemoryLedger, bank: Bank) -> None:
    inside, leave = asyncio.Event(), asyncio.Event()

    @once(scope="s", ledger=ledger, wait=0.0)
    async def pay(order: int) -> str:
        inside.set()
        await leave.wait()
        return bank.pay(order)

    first = asyncio.create_task(pay(1))
    await inside.wait()
    with pytest.raises(EffectBusy):
        await pay(1)
    leave.set()
    assert await first == await pay(1) == "paid 1"
    assert len(bank.paid) == 1


# Calls that are left.


async def test_a_call_that_is_cancelled_in_its_body_is_uncertain(ledger: MemoryLedger) -> None:
    inside = asyncio.Event()

    @once(scope="s", ledger=ledger)
    async def pay() -> None:
        inside.set()
        await asyncio.Event().wait()

    await cancelled(pay(), inside)
    with pytest.raises(EffectUncertain):
        await pay()


async def test_a_call_that_is_cancelled_before_its_body_leaves_the_effect_free(
    ledger: MemoryLedger, bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    @once(scope="s", ledger=ledger)
    async def pay(order: int) -> str:
        return bank.pay(order)

    began, go_on = asyncio.Event(), threading.Event()
    loop, begin = asyncio.get_running_loop(), ledger.begin

    def slowly(effect: Any) -> Any:
        loop.call_soon_threadsafe(began.set)
        assert go_on.wait(10)
        return begin(effect)

    monkeypatch.setattr(ledger, "begin", slowly)
    await cancelled(pay(1), began)
    go_on.set()
    await asyncio.wrap_future(ledger.submit(int))  # after everything that was submitted
    assert bank.paid == []
    assert await pay(1) == "paid 1"


async def test_a_call_that_is_cancelled_while_it_records_is_recorded(
    ledger: MemoryLedger, bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    @once(scope="s", ledger=ledger)
    async def pay(order: int) -> str:
        return bank.pay(order)

    reached, go_on = asyncio.Event(), threading.Event()
    loop, succeed = asyncio.get_running_loop(), ledger.succeed

    def slowly(hold: Any, output: str) -> bool:
        loop.call_soon_threadsafe(reached.set)
        assert go_on.wait(10)
        return succeed(hold, output)

    monkeypatch.setattr(ledger, "succeed", slowly)
    await cancelled(pay(1), reached)
    go_on.set()
    assert await pay(1) == "paid 1"
    assert len(bank.paid) == 1


def test_an_interrupt_in_the_body_is_uncertain(ledger: MemoryLedger) -> None:
    @once(scope="s", ledger=ledger)
    def pay() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pay()
    with pytest.raises(EffectUncertain):
        pay()


async def test_a_body_that_raises_stop_iteration_gives_just_that(ledger: MemoryLedger) -> None:
    @once(scope="s", ledger=ledger)
    def pay() -> None:
        raise StopIteration

    with pytest.raises(StopIteration):
        pay()
    with pytest.raises(EffectUncertain):
        pay()


def test_the_lease_is_kept_while_the_tool_works_and_not_longer(tmp_path: Path) -> None:
    ledger = SQLiteLedger(tmp_path / "e.db")
    ledger.lease_s = 0.4
    working, go_on = threading.Event(), threading.Event()

    @once(scope="s", ledger=ledger)
    def pay() -> str:
        working.set()
        assert go_on.wait(10)
        return "paid"

    with ThreadPoolExecutor(1) as threads:
        call = threads.submit(pay)
        assert working.wait(10)
        before = only(ledger).deadline
        for _ in range(5):
            threading.Event().wait(0.2)
            assert only(ledger).state(ledger.look("")[1]) == "running"
        assert only(ledger).deadline > before
        go_on.set()
        assert call.result() == "paid"
    ledger.close()


# A ledger that is away.


def test_nothing_is_run_when_it_cannot_be_recorded_that_it_begins(ledger: MemoryLedger, bank: Bank) -> None:
    def away(*_: Any) -> Any:
        raise JournalUnavailable("away")

    ledger.change = away  # type: ignore[method-assign]
    with pytest.raises(JournalUnavailable):
        tool_of("sync", bank.pay, ledger=ledger)(1)
    assert bank.paid == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_ledger_that_comes_back_soon_records_what_happened(kind: str, ledger: MemoryLedger, bank: Bank) -> None:
    succeed, failures = ledger.succeed, iter([True, True, False])

    def flaky(hold: Any, output: str) -> bool:
        if next(failures):
            raise JournalUnavailable("away")
        return succeed(hold, output)

    ledger.succeed = flaky  # type: ignore[method-assign]
    pay = tool_of(kind, bank.pay, ledger=ledger)
    assert pay(1) == pay(1) == "paid 1"
    assert len(bank.paid) == 1


def test_what_happened_and_could_not_be_recorded_is_told_and_uncertain_later(
    ledger: MemoryLedger, bank: Bank, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def away(*_: Any) -> Any:
        raise JournalUnavailable("away")

    monkeypatch.setattr("agents_progress.effects.flow.PATIENCE_S", 0.0)
    monkeypatch.setattr(ledger, "succeed", away)
    pay = tool_of("sync", bank.pay, ledger=ledger)
    with caplog.at_level(logging.ERROR, "agents_progress"):
        assert pay(1) == "paid 1"
    assert "could not be recorded: JournalUnavailable" in caplog.text
    clock.now += ledger.lease_s
    with pytest.raises(EffectUncertain):
        pay(1)
    assert len(bank.paid) == 1


def test_an_effect_that_was_wrongly_said_not_to_have_happened_is_an_error_in_the_log(
    ledger: MemoryLedger, bank: Bank, caplog: pytest.LogCaptureFixture
) -> None:
    def slowly(order: int) -> str:
        entry = only(ledger).effect.entry
        ledger.give_up(Hold(entry, 1))  # as a lease that ran out
        assert ledger.resolve(entry, 1, DidNotHappen(), "ada")
        assert tool_of("sync", bank.pay, ledger=ledger)(order) == "paid 1"
        return bank.pay(order)

    with caplog.at_level(logging.ERROR, "agents_progress"):
        tool_of("sync", slowly, ledger=ledger)(1)
    assert len(bank.paid) == 2
    assert "it may have happened twice" in caplog.text


# Keys and scopes.


def test_the_same_key_with_other_arguments_is_refused(ledger: MemoryLedger, bank: Bank) -> None:
    @once(scope="s", ledger=ledger, key="{order}")
    def pay(order: int, eur: int = 5) -> str:
        return bank.pay(order)

    assert pay(1) == pay(1, 5) == pay(1, eur=5) == pay(order=1) == "paid 1"
    with pytest.raises(EffectConflict):
        pay(1, 6)
    assert pay(2, 6) == "paid 2"
    assert len(bank.paid) == 2


@pytest.mark.parametrize("key", ["order-{order}", lambda arguments: arguments["order"], lambda arguments: 7])
def test_a_key_is_a_template_or_made_from_the_arguments(key: Any, ledger: MemoryLedger, bank: Bank) -> None:
    @once(scope="s", ledger=ledger, key=key)
    def pay(order: int) -> str:
        return bank.pay(order)

    assert pay(1) == pay(1) == "paid 1"
    assert only(ledger).effect.key in ("order-1", "1", "7")


def test_keys_that_are_alike_when_cut_are_different(ledger: MemoryLedger, bank: Bank) -> None:
    @once(scope="s", ledger=ledger, key="{text}")
    def pay(text: str) -> str:
        return bank.pay(len(text))

    assert pay("x" * 5000) != pay("x" * 5001)
    assert {len(entry.effect.key) for entry in ledger.entries()} == {201}


def test_two_tools_and_two_scopes_share_no_entry(ledger: MemoryLedger, bank: Bank) -> None:
    for scope in ("a", "b"):
        for name in ("pay", "refund"):
            tool_of("sync", bank.pay, ledger=ledger, scope=scope, name=name, key="{order}")(1)
    assert len(bank.paid) == len({key for _, key in bank.paid}) == 4


def test_a_scope_may_come_from_the_tools_context_which_is_no_argument(ledger: MemoryLedger, bank: Bank) -> None:
    @once(scope=lambda context: context.context["shop"], ledger=ledger)
    def pay(context: RunContextWrapper[dict[str, str]], order: int) -> str:
        return bank.pay(order)

    for shop in ("a", "b", "a"):
        assert pay(RunContextWrapper({"shop": shop}), 1) == "paid 1"
    assert len(bank.paid) == 2
    assert {entry.effect.arguments for entry in ledger.entries()} == {digest(canonical({"order": 1}))}


def test_an_effect_of_nobody_is_refused(ledger: MemoryLedger, bank: Bank) -> None:
    for scope in (None, "", lambda context: "", lambda context: None):
        with pytest.raises(EffectUnscoped):
            tool_of("sync", bank.pay, ledger=ledger, scope=scope)(1)
    assert bank.paid == []


class Order(BaseModel):
    number: int
    tags: set[str] = set()


class Named(RootModel[list[str]]):
    """As pydantic's documentation has it."""

    def __iter__(self) -> Iterator[str]:  # type: ignore[override]
        return iter(self.root)


class Hidden(BaseModel):
    token: SecretStr


class Broken(dict[str, int]):
    def items(self) -> Any:
        raise KeyError("secret")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Order(number=1, tags={"a", "b", "c"}), Order(number=1, tags={"c", "b", "a"})),
        ({"b": 1, "a": 2}, {"a": 2, "b": 1}),
        ({"x", "y", "z"}, {"z", "y", "x"}),
    ],
)
def test_arguments_are_compared_by_what_they_say(one: Any, other: Any, ledger: MemoryLedger, bank: Bank) -> None:
    @once(scope="s", ledger=ledger)
    def pay(what: Any) -> str:
        return bank.pay(1)

    assert pay(one) == pay(other)
    assert len(bank.paid) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, "1"), (1, True), (1, 1.0), (None, float("nan")), ("\ud800", "\udfff"), ("", None), ([1, [2]], [[1], 2])]
    + [(Named(["ab", "ac"]), Named(["ac"]))],
)
def test_arguments_that_differ_are_never_the_same(one: Any, other: Any, ledger: MemoryLedger, bank: Bank) -> None:
    @once(scope="s", ledger=ledger)
    def pay(what: Any) -> str:
        return bank.pay(1)

    pay(one)
    pay(other)
    assert len(bank.paid) == 2


def test_arguments_without_a_json_form_are_refused_before_anything_runs(ledger: MemoryLedger, bank: Bank) -> None:
    @once(scope="s", ledger=ledger)
    def pay(what: Any) -> str:
        return bank.pay(1)

    for what in (object(), b"\xff", SecretStr("a"), Hidden(token=SecretStr("a")), Broken()):
        with pytest.raises(UsageError, match="JSON"):
            pay(what)
    assert bank.paid == []


def test_terms_that_do_not_fit_the_function_are_refused_where_they_are_written() -> None:
    def pay(order: int) -> None: ...

    async def ask(key: str, arguments: Mapping[str, Any]) -> Finding:
        return StillUnknown()

    async def steps() -> Any:
        yield 1

    for key in ("order", "{number}", "{}", ""):
        with pytest.raises(UsageError, match=r"\{order\}"):
            once(key=key, scope="s")(pay)
    with pytest.raises(UsageError, match="sync"):
        once(reconcile=ask)(pay)
    with pytest.raises(NotDecoratable):
        once()(steps)


def test_a_key_that_names_the_context_is_refused_before_anything_runs(ledger: MemoryLedger, bank: Bank) -> None:
    @once(key="{context}-{order}", scope="s", ledger=ledger)
    def pay(context: RunContextWrapper[None], order: int) -> str:
        return bank.pay(order)

    with pytest.raises(UsageError, match="names its context"):
        pay(RunContextWrapper(None), 1)
    assert bank.paid == []


@pytest.mark.parametrize("made", [None, "", 1.5])
def test_a_key_that_is_none_is_refused(made: Any, ledger: MemoryLedger, bank: Bank) -> None:
    with pytest.raises(UsageError, match="key of pay"):
        tool_of("sync", bank.pay, ledger=ledger, key=lambda arguments: made)(1)
    assert bank.paid == []


# What is given back.


class Receipt(BaseModel):
    number: int
    lines: list[str]


OUTPUTS = [
    (Receipt, Receipt(number=1, lines=["a"])),
    (dict, {"a": [1, None, True, 1.5, "ü"]}),
    (Any, ["x"]),
    (None, None),
    (tuple[int, int], (1, 2)),
    (str, "text"),
]


@pytest.mark.parametrize(("annotation", "output"), OUTPUTS)
def test_an_output_comes_back_as_it_was(annotation: Any, output: Any, ledger: MemoryLedger) -> None:
    def pay() -> Any:
        return output

    pay.__annotations__["return"] = annotation
    tool = once(scope="s", ledger=ledger)(pay)
    for again in (tool(), tool()):
        assert again == output
        assert type(again) is type(output)


class Odd:
    def __str__(self) -> str:
        return "an odd thing"


@pytest.mark.parametrize(
    ("output", "text"),
    [(Odd(), "an odd thing"), ((1, 2), "(1, 2)"), (b"\xff", "b'\\xff'"), ("a\ud800", "a\ufffd"), (float("nan"), "nan")],
)
def test_an_output_that_cannot_come_back_comes_back_as_the_text_the_model_saw(
    output: Any, text: str, ledger: MemoryLedger
) -> None:
    @once(scope="s", ledger=ledger)
    def pay():  # type: ignore[no-untyped-def]
        return output

    assert pay() is output
    assert pay() == text


def test_an_erased_result_is_told_and_nothing_runs_again(ledger: MemoryLedger, bank: Bank) -> None:
    pay = tool_of("sync", bank.pay, ledger=ledger)
    pay(1)
    entry = only(ledger)
    ledger.change(entry.effect.entry, lambda found, now: (None, erased(entry)))
    with pytest.raises(EffectErased):
        pay(1)
    assert len(bank.paid) == 1


# The function as others see it.


def test_the_schema_of_a_tool_is_the_same_with_and_without_it(ledger: MemoryLedger) -> None:
    async def pay(context: RunContextWrapper[Any], order: Order, eur: int = 5) -> Receipt:
        """Pay an order.

        Args:
            order: which
            eur: how much
        """
        raise NotImplementedError

    def plain(order: int) -> str:
        """Pay."""
        raise NotImplementedError

    for function in (pay, plain):
        bare, wrapped = function_tool(function), function_tool(once(scope="s", ledger=ledger)(function))
        for name in ("name", "description", "params_json_schema", "strict_json_schema"):
            assert getattr(bare, name) == getattr(wrapped, name), name
        once_only = once(scope="s", ledger=ledger)(function)
        assert inspect.iscoroutinefunction(once_only) is inspect.iscoroutinefunction(function)
        assert inspect.signature(once_only) == inspect.signature(function)


def test_the_key_of_an_effect_is_known_in_its_body_alone(ledger: MemoryLedger, bank: Bank) -> None:
    pay = tool_of("sync", bank.pay, ledger=ledger)
    pay(1)
    with pytest.raises(UsageError, match="body"):
        effect_key()
    ((_, key),) = bank.paid
    assert len(key) == 64
    assert key != only(ledger).effect.entry


def test_a_model_is_told_what_happened_and_never_to_try_again(ledger: MemoryLedger) -> None:
    def die(order: int) -> str:
        raise ConnectionError("secret")

    pay = tool_of("sync", die, ledger=ledger)
    told: list[str] = []
    for _ in range(2):
        with pytest.raises(Exception) as raised:  # noqa: PT011
            pay(1)
        told.append(worded(None, raised.value))
    assert told == [TOLD["effect_uncertain"]["en"]] * 2
    assert "try again" in worded(None, ValueError("x"))
    assert ledger.begin(only(ledger).effect) == Uncertain(1)
