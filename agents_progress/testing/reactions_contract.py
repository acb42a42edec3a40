"""The contract of :class:`ReactionStore` as one class of tests, for the authors of backends.

```python
class TestMyStore(ReactionStoreContract):
    @pytest.fixture
    def store(self):       # an empty store
        ...

    @pytest.fixture
    def reopened(self):    # a second one on that store, as another node has it
        ...
```

Needs pytest.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from agents_progress.effects.entry import Hold
from agents_progress.effects.reactions.store import Document, Line, ReactionStore, Writing
from agents_progress.errors import JournalClosed
from agents_progress.journal.base import Scope

ODD = "a\x00b\\0\ud800 \"'{}%s;--元"
"""A text that many a column cannot hold."""


def document(name: str = "r1", **about: Any) -> Document:
    """A reaction that a worker may take at once."""
    return Document(**{"name": name, "kind": "reaction", "body": {"x": 1}, "reaction": "review", **about})


def put(store: ReactionStore, *documents: Document, lines: tuple[Line, ...] = ()) -> None:
    """Store documents as they are."""
    names = [document.name for document in documents]
    store.change(names, lambda found, now: (None, Writing(documents, lines)))


def _until(holds: Callable[[], object]) -> None:
    give_up = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < give_up, "it did not happen in time"
        threading.Event().wait(0.01)


class ReactionStoreContract:
    """Everything a store of reactions promises. Subclasses give the fixtures ``store`` and ``reopened``; none may leave
    a test out. ``tick`` is a lease that tests wait for, in seconds.
    """

    tick = 0.15

    def test_what_was_stored_is_there_for_every_node(self, store: ReactionStore, reopened: ReactionStore) -> None:
        body = {"text": ODD, "n": None, "list": [1, 2.5, True], "o": {"a": "元"}}
        kept = document(body=body, state="ready", generation=3, owner=ODD, tenant="t", task_id="r1", at=2.5)
        put(store, kept)
        for node in (store, reopened):
            found, now = node.look("r1")
            assert found == kept
            assert abs(now - time.time()) < 60
        assert store.look("r2")[0] is None

    def test_a_rule_sees_what_it_named_and_changes_all_or_nothing(self, store: ReactionStore) -> None:
        put(store, document("a"), document("b"))

        def fails(found: Any, now: float) -> Any:
            assert [None if one is None else one.name for one in found] == ["b", None, "a"]
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            store.change(["b", "c", "a"], fails)
        changed = document("a", state="x"), document("c")
        answer = store.change(["a", "c"], lambda found, now: ("yes", Writing(changed, [Line(now, "moved")])))
        assert answer == "yes"
        assert [store.look(name)[0] for name in ("a", "c")] == list(changed)
        assert [line.what for line in store.audit()] == ["moved"]

    def test_what_is_beside_is_seen_last_and_may_be_looked_at_by_many_but_not_changed(
        self, store: ReactionStore, reopened: ReactionStore
    ) -> None:
        put(store, document("a"), document("g", kind="grant", generation=0))
        inside, free = threading.Event(), threading.Event()

        def looks(found: Any, now: float) -> Any:
            inside.set()
            free.wait(self.tick)
            return [one.generation for one in found if one is not None], Writing()

        def raises(found: Any, now: float) -> Any:
            return None, Writing([document("g", kind="grant", generation=1)])

        with ThreadPoolExecutor(2) as threads:
            seen = threads.submit(lambda: store.change(["a"], looks, beside=["g", "none"]))
            inside.wait(10)
            threads.submit(lambda: reopened.change(["g"], raises)).result(20)
            assert seen.result(20) == [0, 0]
        assert store.change([], looks, beside=["g"]) == [1]

    def test_of_many_nodes_that_change_the_same_none_is_lost(
        self, store: ReactionStore, reopened: ReactionStore
    ) -> None:
        def more(found: Any, now: float) -> Any:
            counts = [0 if one is None else one.generation for one in found]
            return None, Writing([document("a", generation=counts[0] + 1), document("b", generation=counts[1] + 1)])

        def back(found: Any, now: float) -> Any:
            return more(found[::-1], now)

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda node: node.change(["a", "b"], more), (store, reopened) * 10))
            list(threads.map(lambda node: node.change(["b", "a"], back), (store, reopened) * 10))
        assert [found.generation for name in "ab" if (found := store.look(name)[0])] == [40, 40]

    def test_due_names_what_may_be_taken_the_longest_first(self, store: ReactionStore) -> None:
        _, now = store.look("")
        for name, due_at in (("a", now - 5), ("b", now - 9), ("c", now + 60), ("d", None), ("e", now - 7)):
            put(store, document(name, due_at=due_at, reaction=ODD if name == "e" else "review"))
        assert store.due(["review"], 10) == ["b", "a"]
        assert store.due(["review", ODD], 2) == ["b", "e"]
        assert store.due([], 10) == []

    def test_what_is_held_is_prolonged_until_it_is_taken_or_lapses(
        self, store: ReactionStore, reopened: ReactionStore
    ) -> None:
        _, now = store.look("")
        put(store, document(due_at=now + self.tick, generation=2))
        hold = Hold("r1", 2)
        assert list(store.renew([hold, Hold("r1", 1), Hold("none", 1)], 60.0)) == [Hold("r1", 1), Hold("none", 1)]
        found, now = reopened.look("r1")
        assert found is not None
        assert found.due_at is not None
        assert found.due_at > now + 30
        assert list(reopened.renew([hold], self.tick)) == []
        _until(lambda: store.due(["review"], 1))
        assert list(store.renew([hold], 60.0)) == [hold]
        put(store, document(due_at=None, generation=2))
        assert list(store.renew([hold], 60.0)) == [hold]

    def test_listings_are_scoped_and_newest_first(self, store: ReactionStore) -> None:
        put(store, document("a", at=1.0, owner="ada", state="ready"), document("b", at=2.0, tenant=ODD, state="done"))
        put(store, document("g", kind="grant", at=3.0))
        assert [one.name for one in store.documents()] == ["b", "a"]
        assert [one.name for one in store.documents(limit=1)] == ["b"]
        assert store.documents(limit=0) == []
        assert [one.name for one in store.documents(state="ready")] == ["a"]
        assert [one.name for one in store.documents(reaction="review", scope=Scope(tenant=ODD))] == ["b"]
        assert [one.name for one in store.documents(scope=Scope(owner="ada"))] == ["a"]
        assert store.documents(scope=Scope(owner="ada", tenant=ODD)) == []

    def test_all_in_some_states_are_named(self, store: ReactionStore) -> None:
        put(store, document("a", state="ready"), document("b", state="ready", reaction=ODD))
        put(store, document("c", state="done"), document("g", kind="grant", state="ready"))
        assert sorted(store.names(["ready"])) == ["a", "b"]
        assert sorted(store.names(["ready", "done"], ["review"])) == ["a", "c"]
        assert store.names(["ready"], [ODD]) == ["b"]
        assert store.names([]) == store.names(["ready"], []) == []

    def test_the_audit_log_keeps_its_order_and_forgets_names(self, store: ReactionStore) -> None:
        for number in range(3):
            line = Line(float(3 - number), f"w{number}", ODD, f"t{number % 2}", "why", ODD, "ada", "shop")
            put(store, document(), lines=(line,))
        assert [line.what for line in store.audit()] == ["w0", "w1", "w2"]
        assert [line.what for line in store.audit(limit=2)] == ["w1", "w2"]
        assert store.audit(limit=0) == []
        assert [line.what for line in store.audit(task_id="t0")] == ["w0", "w2"]
        assert [line.actor for line in store.audit(what="w1", scope=Scope(tenant="shop"))] == [ODD]
        assert store.audit(scope=Scope(tenant="bank")) == []
        store.change(["r1"], lambda found, now: (None, Writing(forget=["t0"])))
        assert [line.actor for line in store.audit()] == [None, ODD, None]
        assert [line.what for line in store.audit(scope=Scope(owner="ada"))] == ["w1"]
        put(store, document(), lines=(Line(5.0, "other", owner=ODD), Line(6.0, "no task", actor="x", owner="ada")))
        store.change([], lambda found, now: (None, Writing(forget_owners=["ada"])))
        assert [(line.actor, line.owner) for line in store.audit()] == [(None, None)] * 3 + [(None, ODD), (None, None)]
        store.wipe()

    def test_it_is_known_whether_anything_was_stored(self, store: ReactionStore, reopened: ReactionStore) -> None:
        assert not store.exists()
        put(store, document())
        assert store.exists()
        assert reopened.exists()

    def test_a_closed_store_says_so(self, store: ReactionStore) -> None:
        assert store.submit(lambda: 7).result(10) == 7
        store.close()
        store.close()
        assert store.closed
        for call in (lambda: store.look(""), lambda: store.due([], 1), lambda: put(store, document())):
            with pytest.raises(JournalClosed):
                call()
