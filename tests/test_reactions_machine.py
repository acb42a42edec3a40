"""Any number of workers that die at any step, a target that loses acknowledgements and submissions, and people and
grants that change their mind: a result arrives at most once, only when approved, and what is called done did.

The worker is the real one. Each has a door to the store, the source and the target that lets nothing through once its
process is dead.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any
from unittest import mock

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from agents_progress.effects.reactions import Accepted, Entry, Grant, Reaction, Reactions, Receipt, Record, worker
from agents_progress.effects.reactions import entry as rules
from agents_progress.effects.reactions.memory import MemoryReactionStore
from agents_progress.errors import JournalUnavailable, ReactionRefused
from agents_progress.journal import MemoryJournal

LEASE_S = 15.0
ARRIVES_WITHIN_S = 30.0
RESUBMIT_AFTER_S = 60.0
DOCUMENTS = "doc/1", "doc/2"


class Process(MemoryReactionStore):
    """The door of one process to the store that all share; it dies before its ``last`` thing to do, or after it."""

    def __init__(self, machine: Any, last: int, before: bool) -> None:
        super().__init__(lambda: machine.now)
        self.machine, self.left, self.before = machine, last, before

    def through(self, work: Callable[[], Any]) -> Any:
        self.left -= 1
        if self.left < 0 or (self.left == 0 and self.before):
            raise JournalUnavailable("this process is dead")
        answer = work()
        if self.left == 0:
            raise JournalUnavailable("this process is dead")
        return answer

    def change(self, *args: Any, **more: Any) -> Any:
        return self.through(lambda: self.machine.store.change(*args, **more))

    def look(self, *args: Any) -> Any:
        return self.through(lambda: self.machine.store.look(*args))

    def due(self, *args: Any) -> Any:
        return self.through(lambda: self.machine.store.due(*args))

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        over: Future[Any] = Future()
        try:
            over.set_result(work(*arguments))
        except Exception as error:  # noqa: BLE001 - as a thread gives it
            over.set_exception(error)
        return over


class Outside:
    """The source and the target, seen from a process."""

    def __init__(self, process: Process) -> None:
        self.machine, self.through = process.machine, process.through

    async def read(self, resource: str) -> Record | None:
        version = self.machine.versions[resource]
        return self.through(lambda: None if version is None else Record(version, {}))  # type: ignore[no-any-return]

    async def submit(self, key: str, result: Any) -> None:
        self.through(lambda: self.machine.arrive(key, result))
        if self.machine.loses:
            raise ConnectionError

    async def receipt(self, key: str) -> Receipt | None:
        if self.machine.silent:
            raise ConnectionError
        found = self.machine.taken.get(key)
        return self.through(lambda: None if found is None else Receipt(key, found))  # type: ignore[no-any-return]


@settings(max_examples=80, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck))
class ReactionsMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000_000.0
        self.store = MemoryReactionStore(lambda: self.now)
        self.grant = Grant("g", "ada", {"doc/*"}, {"rename"}, self.now + 1e6)
        self.versions: dict[str, str | None] = dict.fromkeys(DOCUMENTS, "v1")
        self.arrivals: Counter[str] = Counter()
        self.taken: dict[str, Any] = {}
        self.on_the_way: list[tuple[float, str, Any]] = []
        self.slow = self.loses = self.silent = False
        self.over: dict[str, str] = {}
        self.approved: set[str] = set()
        self.events = 0
        keeper = mock.Mock()
        self.patched = mock.patch.object(worker, "keeper_of", lambda store, ttl: keeper)
        self.patched.start()

    def teardown(self) -> None:
        try:
            self.slow = self.loses = self.silent = False
            for _ in range(8):
                self.time_passes(100.0)
                self.a_worker(10_000, False)
            for entry in self._entries():
                assert entry.state not in ("received", "approved"), entry
                if entry.state == "uncertain":  # nobody may submit it again
                    assert not self.arrivals[entry.key]
        finally:
            self.patched.stop()
            self.store.close()

    def _engine(self, store: Process) -> Reactions:
        outside, options = Outside(store), {"resubmit_after": RESUBMIT_AFTER_S, "patience_s": 0.0}
        reaction = Reaction("review", self.grant, outside, outside, lambda case: {"v": case.version}, **options)
        return Reactions(MemoryJournal(), [reaction], store=store)

    def _asked(self, ask: Callable[[Reactions], Any]) -> Any:
        return asyncio.run(ask(self._engine(Process(self, 10_000, before=False))))

    def _entries(self) -> list[Entry]:
        return [entry for entry in map(rules.entry_of, self.store.documents()) if entry is not None]

    def arrive(self, key: str, result: Any) -> None:
        if self.slow:
            self.on_the_way.append((self.now + ARRIVES_WITHIN_S, key, result))
        else:
            self.arrivals[key] += 1
            self.taken[key] = result

    # What happens.

    @rule(document=st.sampled_from(DOCUMENTS), version=st.sampled_from(["v1", "v2"]))
    def a_notification(self, document: str, version: str) -> None:
        self.events += 1
        event = {"event_id": f"e{self.events}", "reaction": "review", "who": "ada", "resource": document}
        event |= {"version": version, "action": "rename", "occurred_at": self.now}
        first = self._asked(lambda engine: engine.receive(event))
        again = self._asked(lambda engine: engine.receive(event))
        assert not isinstance(again, Accepted), first

    @rule(document=st.sampled_from(DOCUMENTS))
    def a_notification_is_prepared_and_approved(self, document: str) -> None:
        self.versions[document] = "v1"
        self.a_notification(document, "v1")
        self.a_worker(10_000, before=False)
        for which in range(len(self._entries())):
            self.a_person(which, "approve")

    @rule(last=st.integers(1, 40), before=st.booleans())
    def a_worker(self, last: int, before: bool) -> None:
        async def work() -> None:
            engine = self._engine(Process(self, last, before))
            try:
                await engine.settle()
            except JournalUnavailable:
                pass

        asyncio.run(work())

    @rule(seconds=st.sampled_from([1.0, LEASE_S + 1, LEASE_S + 1, 100.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.on_the_way = [one for one in self.on_the_way if one[0] > self.now]  # lost for good

    @rule()
    def something_slow_arrives(self) -> None:
        for _, key, result in self.on_the_way:
            self.arrivals[key] += 1
            self.taken[key] = result
        self.on_the_way = []

    @rule(slow=st.booleans(), loses=st.booleans(), silent=st.booleans())
    def the_target_changes(self, slow: bool, loses: bool, silent: bool) -> None:
        self.slow, self.loses, self.silent = slow, loses, silent

    @rule(document=st.sampled_from(DOCUMENTS), version=st.sampled_from(["v1", "v2", None]))
    def the_record_changes(self, document: str, version: str | None) -> None:
        self.versions[document] = version

    @rule(which=st.integers(0, 9), act=st.sampled_from(["approve", "approve", "approve", "reject", "cancel", "look"]))
    def a_person(self, which: int, act: str) -> None:
        entries = self._entries()
        if not entries:
            return
        entry = entries[which % len(entries)]
        verbs: dict[str, Callable[[Reactions], Any]] = {
            "approve": lambda engine: engine.approve(entry.task_id, entry.asked or "", "ann"),
            "reject": lambda engine: engine.reject(entry.task_id, "ann"),
            "cancel": lambda engine: engine.cancel(entry.task_id, "ann"),
            "look": lambda engine: engine.resolve(entry.task_id, "look", "ann"),
        }
        try:
            self._asked(verbs[act])
        except ReactionRefused:
            return
        if act == "approve":
            self.approved.add(entry.key)

    @rule()
    def the_grant_changes(self) -> None:
        grant = replace(self.grant, revision=self.grant.revision + 1)
        self._asked(lambda engine: engine.permit(grant))
        self.grant = grant

    # What always holds.

    @invariant()
    def nothing_arrives_twice_or_unapproved_and_done_is_true(self) -> None:
        for entry in self._entries():
            times = self.arrivals[entry.key]
            assert times <= 1, "twice"
            assert not times or entry.key in self.approved, "never approved"
            assert not times or entry.state in ("uncertain", "done"), f"it arrived, and is {entry.state}"
            assert times or entry.state != "done", "done, and it never arrived"
            before = self.over.get(entry.task_id)
            assert before in (None, entry.state), f"{before} came back"
            if entry.state in ("done", "stopped"):
                self.over[entry.task_id] = entry.state


TestReactions = ReactionsMachine.TestCase
