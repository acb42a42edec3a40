"""Whoever wants something of the owner of a run leaves a request, which reaches the owner on whatever node it is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

from agents_progress.errors import JournalClosed, RunErased, RunNotFound
from agents_progress.journal import Journal, Origin
from agents_progress.journal.base import Erased, Request, Scope
from agents_progress.testing.contract.logs import started, story, ticks
from agents_progress.testing.contract.owning import LONG

PROMPT_S = 1.5
"""How long a request may be on its way to the owner on another node, in seconds."""


async def heard(asks: AsyncIterator[Request], count: int) -> list[Request]:
    """The first ``count`` requests; less in 20 seconds fails."""
    given: list[Request] = []
    async with asyncio.timeout(20), aclosing(asks) as steps:  # type: ignore[type-var]
        while len(given) < count:
            given.append(await anext(steps))
    return given


def cancel(run_id: str = "r", **body: Any) -> Request:
    return Request(run_id, "cancel.immediate", {"actor": "mei", **body})


class Controlling:
    """What :meth:`Journal.ask`, :meth:`Journal.requests` and :meth:`Journal.asks` promise."""

    tick: float

    # Asking.

    async def test_a_request_is_stored_for_every_node(self, journal: Journal, reopened: Journal) -> None:
        await journal.append([started("r")])
        request = cancel(mode="immediate")
        assert await journal.ask(request) == request
        for node in (journal, reopened):
            assert await node.requests(["r"]) == [request]

    async def test_what_an_answer_carries_comes_as_it_was_given_and_is_in_no_repr(
        self, journal: Journal, reopened: Journal
    ) -> None:
        await journal.append([started("r")])
        arguments = {
            "to": "\u0000 SECRET \u5de5\n",
            "n": 12345678901234567890,
            "x": [1.0, None, {"deep": [[]]}],
            "": True,
        }
        request = Request("r", "answer.ask-1", {"arguments": arguments, "text": "SECRET", "reason": ""})
        await journal.ask(request)
        (found,) = await reopened.requests(["r"])
        assert dict(found.body) == request.body and list(found.body["arguments"]) == list(arguments)
        assert "SECRET" not in repr(found) + repr(request)

    async def test_two_requests_of_the_same_content_are_two(self, journal: Journal) -> None:
        await journal.append([started("r")])
        first, second = cancel(), cancel()
        assert first != second
        assert await journal.ask(first) == await journal.ask(second) == await journal.ask(first) == first
        assert await journal.requests(["r"]) == [first]

    async def test_of_many_requests_under_one_key_exactly_one_wins_and_all_see_it(
        self, journal: Journal, reopened: Journal
    ) -> None:
        await journal.append([started("r")])
        asked = [Request("r", "answer.ask-1", {"decision": "approved", "actor": f"p{n}"}) for n in range(20)]
        nodes = (journal, reopened) * 10
        stored = await asyncio.gather(*(node.ask(request) for node, request in zip(nodes, asked, strict=True)))
        (winner,) = [request for request in asked if request == stored[0]]
        assert stored == [winner] * 20
        assert await journal.requests(["r"]) == await reopened.requests(["r"]) == [winner]
        assert await reopened.ask(Request("r", "answer.ask-1", {"decision": "rejected"})) == winner

    async def test_different_keys_are_all_kept_in_the_order_they_were_asked_in(
        self, journal: Journal, reopened: Journal
    ) -> None:
        await journal.append([started("r")])
        await journal.append([started("s")])
        keys = ["b", "a", "answer.ask-1", "answer.ask-10", "answer.ask-", "B", "", "a b", 'a"', "a\\", "巡\n\x00"]
        asked = [Request("r", key, {"n": n}) for n, key in enumerate(keys)]
        for n, request in enumerate(asked):
            assert await (journal, reopened)[n % 2].ask(request) == request
        assert await reopened.requests(["r"]) == asked
        assert await reopened.requests(["s"]) == []
        other = await journal.ask(cancel("s"))
        found = await reopened.requests(["s", "r", "nobody"])
        assert [request for request in found if request.run_id == "r"] == asked
        assert [request for request in found if request.run_id != "r"] == [other]
        assert await journal.requests([]) == await journal.requests(["nobody", ""]) == []

    async def test_a_body_is_kept_exactly_and_is_its_own(self, journal: Journal, reopened: Journal) -> None:
        await journal.append([started("r")])
        body: dict[str, Any] = {
            "reason": "巡检✓\x00\u2028\n\ud800'\"\\",
            "deep": {"a": [{}], "": []},
            "numbers": [0, -1, 1.5, 2**60],
            "none": None,
            "yes": True,
        }
        request = Request("r", "answer.x", body)
        expected = Request("r", "answer.x", {**body, "deep": {"a": [{}], "": []}}, request.request_id)
        assert await journal.ask(request) == expected
        body["deep"]["a"].append("changed by the caller afterwards")
        assert await reopened.requests(["r"]) == await journal.requests(["r"]) == [expected]

    async def test_a_body_that_cannot_be_stored_is_refused_alone(self, journal: Journal) -> None:
        await journal.append([started("r")])
        good = Request("r", "good", {})
        answers = await asyncio.gather(
            journal.ask(Request("r", "bad", {"a": object()})), journal.ask(good), return_exceptions=True
        )
        assert isinstance(answers[0], TypeError)
        assert answers[1] == good
        assert await journal.requests(["r"]) == [good]

    async def test_a_run_that_has_not_begun_takes_no_request(self, journal: Journal, reopened: Journal) -> None:
        await journal.lease("leased", LONG)
        for run_id in ("nobody", "", "leased"):
            for node in (journal, reopened):
                with pytest.raises(RunNotFound):
                    await node.ask(cancel(run_id))
        assert await journal.requests(["nobody", "leased"]) == []
        assert await journal.runs() == []

    async def test_a_run_takes_requests_whatever_became_of_it(self, journal: Journal, reopened: Journal) -> None:
        await journal.reserve("reserved", LONG)
        lease = await journal.lease("owned", LONG)
        await journal.append(ticks("owned", 1, 1), lease=lease)
        await journal.append(story("sealed"))
        await journal.seal("sealed")
        await journal.reserve("lost", self.tick)
        await journal.append(story("pruned"))
        await journal.prune("pruned", 12)
        await asyncio.sleep(self.tick * 1.5)
        assert await journal.expire() == ["lost"]
        for run_id in ("reserved", "owned", "sealed", "lost", "pruned"):
            request = await reopened.ask(cancel(run_id))
            assert await journal.requests([run_id]) == [request]

    # Scopes.

    async def test_nobody_asks_anything_of_a_run_outside_their_scope(self, journal: Journal) -> None:
        await journal.append([started("r")], origin=Origin(owner="mei", tenant="a"))
        for outside in (Scope(owner="bo"), Scope(tenant="b"), Scope(owner="mei", tenant="b"), Scope(owner="")):
            with pytest.raises(RunNotFound):
                await journal.ask(cancel(), scope=outside)
        assert await journal.requests(["r"]) == []
        request = await journal.ask(cancel(), scope=Scope(owner="mei", tenant="a"))
        with pytest.raises(RunNotFound):  # nor do they see what others asked
            await journal.ask(cancel(), scope=Scope(owner="bo"))
        assert await journal.requests(["r"]) == [request]

    async def test_requests_are_erased_with_their_run(self, journal: Journal, reopened: Journal) -> None:
        for run_id, owner in (("r", "mei"), ("s", "bo")):
            await journal.append([started(run_id)], origin=Origin(owner=owner))
            await journal.ask(cancel(run_id))
        assert await reopened.erase(owner="mei") == Erased(1, 1, 0)
        for node in (journal, reopened):
            assert [request.run_id for request in await node.requests(["r", "s"])] == ["s"]
            with pytest.raises(RunErased):
                await node.ask(cancel())
            with pytest.raises(RunNotFound):
                await node.ask(cancel(), scope=Scope(owner="mei"))
        await journal.append([started("t")])  # in the place that became free
        assert await journal.requests(["r", "t"]) == []

    # Being asked.

    async def test_an_owner_is_given_what_was_asked_before_it_looked(self, journal: Journal, reopened: Journal) -> None:
        await journal.append([started("r")])
        asked = [await journal.ask(Request("r", f"k{n}", {})) for n in range(5)]
        assert await heard(reopened.asks(lambda: ["r"]), 5) == asked

    async def test_an_owner_on_another_node_hears_promptly_and_of_everything_once(
        self, journal: Journal, reopened: Journal
    ) -> None:
        for run_id in ("r", "s", "foreign"):
            await journal.append([started(run_id)])
        given: asyncio.Queue[tuple[Request, float]] = asyncio.Queue()

        async def owner() -> None:
            async for request in reopened.asks(lambda: {"r", "s"}):
                given.put_nowait((request, time.monotonic()))

        owning = asyncio.ensure_future(owner())
        asked, took = [], []
        for n in range(5):
            await journal.ask(cancel("foreign", n=n))
            since = time.monotonic()
            asked.append(await journal.ask(Request("rs"[n % 2], f"k{n}", {})))
            await journal.ask(Request("rs"[n % 2], f"k{n}", {"too": "late"}))
            request, moment = await asyncio.wait_for(given.get(), 20)
            took.append(moment - since)
            assert request == asked[-1]
        owning.cancel()
        await asyncio.gather(owning, return_exceptions=True)
        assert given.empty()
        assert sorted(took)[2] < PROMPT_S

    async def test_an_owner_is_asked_by_its_own_node_too(self, journal: Journal) -> None:
        await journal.append([started("r")])
        hearing = asyncio.ensure_future(heard(journal.asks(lambda: ["r"]), 2))
        asked = [await journal.ask(Request("r", f"k{n}", {})) for n in range(2)]
        assert await hearing == asked

    async def test_runs_that_come_to_be_owned_are_listened_to_and_nothing_is_said_twice(
        self, journal: Journal, reopened: Journal
    ) -> None:
        for run_id in ("a", "b", "c"):
            await journal.append([started(run_id)])
        owned: list[str] = []
        earlier = await journal.ask(cancel("b"))
        asks = reopened.asks(lambda: tuple(owned))
        hearing = asyncio.ensure_future(heard(asks, 4))
        owned.append("a")
        first = await journal.ask(cancel("a"))
        owned.append("b")
        second = await journal.ask(Request("a", "again", {}))
        owned.append("c")
        last = await journal.ask(cancel("c"))
        assert sorted(await hearing, key=repr) == sorted([first, earlier, second, last], key=repr)

    async def test_every_owner_hears_of_its_own_runs(self, journal: Journal, reopened: Journal) -> None:
        for run_id in ("a", "b"):
            await journal.append([started(run_id)])

        def elsewhere() -> list[Request]:
            return asyncio.run(heard(journal.asks(lambda: ["b"]), 1))

        one = asyncio.ensure_future(heard(reopened.asks(lambda: ["a"]), 1))
        other = asyncio.ensure_future(asyncio.to_thread(elsewhere))
        asked = [await journal.ask(cancel(run_id)) for run_id in ("a", "b")]
        assert [*await one, *await other] == asked

    async def test_closing_ends_the_asking(self, journal: Journal) -> None:
        async def everything(owned: list[str]) -> list[Request]:
            return [request async for request in journal.asks(lambda: owned)]

        await journal.append([started("r")])
        request = await journal.ask(cancel())
        hearing = [asyncio.ensure_future(everything(owned)) for owned in (["r"], [])]
        assert await heard(journal.asks(lambda: ["r"]), 1) == [request]
        await asyncio.sleep(0.1)
        await journal.close()
        assert await asyncio.wait_for(asyncio.gather(*hearing), 20) == [[request], []]
        with pytest.raises(JournalClosed):
            await everything(["r"])
