"""Any number of processes that make the same calls, die between any two steps, and lose the ledger or its answers: an
effect happens at most once, or is uncertain until somebody finds out, and comes to once in the end.

The steps are those of the real flow, one at a time; the body is two, with a death possible between its effect and its
return. Leases are kept for processes that live. Whoever is asked downstream tells the truth, or that it is not known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agents_progress.effects import flow as flow_module
from agents_progress.effects.entry import DidNotHappen, Effect, Finding, Happened, Hold, StillUnknown
from agents_progress.effects.flow import Asking, Ended, Flow, Once, Running, Step
from agents_progress.effects.keys import digest
from agents_progress.effects.ledger.memory import MemoryLedger
from agents_progress.effects.outputs import adapter_of, restored, stored
from agents_progress.errors import EffectConflict, EffectErased, EffectUncertain, JournalUnavailable

LEASE_S = 15.0
TENANTS = "t", "u"
KEY = "k"
"""The same of both."""
TEXT = adapter_of(str)


class Declined(Exception):
    """Proves that nothing happened."""


@dataclass
class Keeper:
    """Stands for the thread that renews: of a process that is dead, nothing is held."""

    holds: set[Hold] = field(default_factory=set)

    def hold(self, hold: Hold, lost: Callable[[], None]) -> None:
        self.holds.add(hold)

    def drop(self, hold: Hold) -> None:
        self.holds.discard(hold)


@dataclass
class Process:
    """One call, and how its body is to go."""

    effect: Effect
    ends: str
    flow: Flow
    step: Step
    keeper: Keeper
    acted: bool = False


@settings(max_examples=100, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck))
class Effects(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        self.ledger = MemoryLedger(lambda: self.now)
        self.executions: Counter[str] = Counter()
        self.processes: list[Process] = []
        self.keeper = Keeper()
        self.patched = mock.patch.object(flow_module, "keeper_of", lambda ledger, ttl: self.keeper)
        self.patched.start()

    def teardown(self) -> None:
        try:
            for process in list(self.processes):
                self._over(process)
            for tenant in TENANTS:
                self._comes_to_once(tenant)
        finally:
            self.patched.stop()
            self.ledger.close()

    def _comes_to_once(self, tenant: str) -> None:
        """A last process, and a bank that knows."""
        entry = digest(tenant, KEY)
        known, _ = self.ledger.look(entry)
        if known is None:
            return
        self.now += 2 * LEASE_S
        arguments = known.effect.arguments or "1"
        self.begin(tenant, arguments, "well", "truth")
        while self.processes:
            ended = self._steps(self.processes[0], "here")
            if isinstance(ended, Ended):
                assert ended.value == f"paid {entry}"
            elif ended is not None:
                assert isinstance(ended, EffectErased), ended
        assert self.executions[entry] == 1

    # What processes do.

    @rule(
        tenant=st.sampled_from(TENANTS),
        arguments=st.sampled_from("112"),
        ends=st.sampled_from(["well", "well", "raises before", "raises after", "declined"]),
        bank=st.sampled_from(["truth", "truth", "unknown", "none", "raises"]),
    )
    def begin(self, tenant: str, arguments: str, ends: str, bank: str) -> None:
        entry = digest(tenant, KEY)
        effect = Effect(entry, arguments, "pay", KEY, "s", owner=tenant, tenant=tenant)
        once = Once(
            ledger=self.ledger,
            effect=effect,
            body=lambda: None,  # done by the machine
            reconcile=None if bank == "none" else lambda: self._asked(entry, bank),
            no_effect=(Declined,),
            wait=1e9,
            stored=lambda output: stored(output, TEXT),
            restored=lambda text: restored(text, TEXT),
            resolve=lambda attempt, found: self._resolve(entry, attempt, found, "reconcile"),
            told=str,
            threaded=False,
        )
        flow = once.flow()
        self.processes.append(Process(effect, ends, flow, next(flow), self.keeper))

    @precondition(lambda self: self.processes)
    @rule(
        which=st.integers(0, 99),
        ledger=st.sampled_from(["here", "here", "here", "away", "answer lost"]),
        times=st.sampled_from([1, 1, 3, 9]),
    )
    def step(self, which: int, ledger: str, times: int) -> None:
        process = self.processes[which % len(self.processes)]
        for _ in range(times):
            if process in self.processes:
                self._steps(process, ledger)
            self.nothing_happens_twice_and_what_is_recorded_is_true()

    @precondition(lambda self: self.processes)
    @rule(which=st.integers(0, 99), within=st.booleans())
    def die(self, which: int, within: bool) -> None:
        process = self.processes[which % len(self.processes)]
        if within:  # what it asked for is done, and it never hears of it
            self._done(process, "answer lost")
        self._over(process)

    @rule(seconds=st.floats(0.1, 2 * LEASE_S))
    def time_passes(self, seconds: float) -> None:
        while seconds > 0:  # keepers renew more often than leases end
            self.now += min(seconds, LEASE_S / 5)
            seconds -= LEASE_S / 5
            self.ledger.renew(list(self.keeper.holds), LEASE_S)

    @rule()
    def a_person_finds_out(self) -> None:
        for entry in self.ledger.entries(state="uncertain"):
            name = entry.effect.entry
            assert self._resolve(name, entry.generation, self._asked(name, "truth"), "ann")

    @rule(owner=st.sampled_from(TENANTS))
    def an_owner_is_erased(self, owner: str) -> None:
        self.ledger.erase(owner=owner)

    # How they do it.

    def _steps(self, process: Process, ledger: str) -> Ended | Exception | None:
        """One step; what the call gave or raised, if it is over then."""
        ended = self._done(process, ledger)
        if ended is None:
            return None
        try:
            process.step = process.flow.send(ended)
            return None
        except StopIteration as over:
            result: Ended = over.value
            if result.error is None:
                assert self.executions[process.effect.entry] == 1, "told that it happened"
            answer: Ended | Exception = result
        except (EffectUncertain, EffectConflict, EffectErased, JournalUnavailable) as error:
            answer = error
        self._over(process)
        return answer

    def _done(self, process: Process, ledger: str) -> Ended | None:
        """What became of the step; None when the body had its effect and did not return yet."""
        step, entry = process.step, process.effect.entry
        if isinstance(step, Asking):
            if ledger == "away":
                return Ended(error=JournalUnavailable("away"))
            before = set(self.keeper.holds)
            ended = step.now()
            if ledger == "answer lost":
                self.keeper.holds &= before
                return Ended(error=JournalUnavailable("away"))
            return ended
        if isinstance(step, Running) and not _asks_bank(step):
            return self._body(process, entry)
        return step.now() if isinstance(step, Running) else Ended()

    def _body(self, process: Process, entry: str) -> Ended | None:
        if process.ends == "declined":
            return Ended(error=Declined())
        if process.ends == "raises before":
            return Ended(error=ConnectionError())
        if not process.acted:
            process.acted = True
            self.executions[entry] += 1
            return None
        return Ended(error=ConnectionError()) if process.ends == "raises after" else Ended(f"paid {entry}")

    def _asked(self, entry: str, bank: str) -> Finding:
        if bank == "raises":
            raise TimeoutError
        if bank == "unknown":
            return StillUnknown()
        return Happened(f"paid {entry}") if self.executions[entry] else DidNotHappen()

    def _resolve(self, entry: str, attempt: int, found: Any, by: str) -> bool:
        return self.ledger.resolve(entry, attempt, found, by, TEXT)

    def _over(self, process: Process) -> None:
        self.processes.remove(process)
        process.flow.close()

    # What always holds.

    @invariant()
    def nothing_happens_twice_and_what_is_recorded_is_true(self) -> None:
        for tenant in TENANTS:
            entry = digest(tenant, KEY)
            known, now = self.ledger.look(entry)
            times = self.executions[entry]
            assert times <= 1, "twice"
            state = None if known is None else known.state(now)
            assert times or state != "succeeded", "recorded, and it never happened"
            assert not times or state in ("running", "uncertain", "succeeded"), f"it happened, and is {state}"
            assert known is None or known.erased or known.effect.tenant == tenant


def _asks_bank(step: Running) -> bool:
    return "_asked" in step.code.__code__.co_names


TestEffects = Effects.TestCase
