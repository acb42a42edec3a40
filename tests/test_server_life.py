"""A serving process over time: live feeds, caps on readers, what it does at intervals, and how it goes away."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from agents import Runner, RunResultStreaming, function_tool
from serving import (
    ADA,
    BOB,
    PEOPLE,
    by_token,
    caller,
    code,
    done,
    envelopes,
    feed,
    frames,
    listening,
    live,
    living,
    paused,
    scripted,
    service_of,
    write,
)
from staging import soon, stored

from agents_progress import progress
from agents_progress.decorate import Decorated
from agents_progress.errors import UsageError
from agents_progress.journal import MemoryJournal
from agents_progress.run import Run
from agents_progress.server import Limits, runs_app
from agents_progress.server import service as life
from agents_progress.testing import call, text, turn, wait


def holding(release: asyncio.Event, *tools: Any) -> Decorated[...]:
    @progress
    def hold() -> RunResultStreaming:
        return Runner.run_streamed(scripted(turn(text("so far"), wait(release), text(", ok"))), "go")

    return hold


def client(url: str, name: str = "ada") -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=url, headers={"authorization": f"Bearer {name}"}, timeout=20)


# Live feeds.


async def test_a_run_is_read_while_it_is_running_and_its_feed_ends_with_it(journal: MemoryJournal) -> None:
    release = asyncio.Event()
    async with listening(runs_app(journal, by_token, functions=[holding(release)])) as url, client(url) as ada:
        run_id = (await ada.post("/runs", json={})).json()["run_id"]
        async with asyncio.timeout(5), ada.stream("GET", f"/runs/{run_id}/events") as response:
            decoder_frames = frames(response)
            reading = asyncio.create_task(decoder_frames)
            await soon(lambda: service_of_url(journal, run_id) == "running")
            assert not reading.done()
            release.set()
            found = await reading
        assert [json.loads(frame.data)["seq"] for frame in found] == list(range(1, len(found) + 1))
        assert envelopes(found)[-1]["type"] == "run.ended"
        last = {"last-event-id": found[-1].id}
        assert (await ada.get(f"/runs/{run_id}/events", headers=last)).status_code == 204


def service_of_url(journal: MemoryJournal, run_id: str) -> str:
    return str(journal._logs[run_id].facts.standing.status)


async def test_net_1_the_first_bytes_of_a_silent_feed_come_at_once_and_others_are_served_beside_five(
    journal: MemoryJournal,
) -> None:
    await write(journal, live("r1"), sealed=False)
    async with listening(runs_app(journal, by_token)) as url, client(url) as ada:
        async with asyncio.timeout(5):
            feeds = [ada.stream("GET", "/runs/r1/events?after_seq=3") for _ in range(5)]
            for each in feeds:
                response = await each.__aenter__()
                assert (await anext(response.aiter_raw())).startswith(b"retry: ")
            assert (await ada.get("/runs/r1")).status_code == 200
        for each in feeds:
            await each.__aexit__(None, None, None)


async def test_a_feed_is_closed_when_its_reader_may_no_longer_read(journal: MemoryJournal) -> None:
    await write(journal, live("r1"), sealed=False)
    allowed = {"ada"}

    def authorize(request: Any, action: Any, run: Any) -> Any:
        name = request.headers["authorization"].removeprefix("Bearer ")
        return PEOPLE[name] if name in allowed else None

    app = runs_app(journal, authorize, limits=Limits(again_s=0.1))
    async with listening(app) as url, client(url) as ada, asyncio.timeout(5):
        async with ada.stream("GET", "/runs/r1/events") as response:
            reading = asyncio.create_task(frames(response))
            await soon(lambda: service_of(app).hub.readers("r1"))
            allowed.clear()
            assert len(await reading) == 3  # what was there, and the end without a word about the run
        await soon(lambda: not service_of(app).hub.readers())
        assert (await ada.get("/runs/r1/events")).status_code == 401


async def test_a_reader_that_asks_authorize_while_it_fails_is_sent_away(journal: MemoryJournal) -> None:
    await write(journal, live("r1"), sealed=False)
    broken = asyncio.Event()

    def authorize(request: Any, action: Any, run: Any) -> Any:
        if broken.is_set():
            raise RuntimeError
        return ADA

    app = runs_app(journal, authorize, limits=Limits(again_s=0.1))
    async with listening(app) as url, client(url) as ada, asyncio.timeout(5):
        async with ada.stream("GET", "/runs/r1/events") as response:
            reading = asyncio.create_task(frames(response))
            await soon(lambda: service_of(app).hub.readers("r1"))
            broken.set()
            await reading
        assert (await ada.get("/runs/r1/events")).status_code == 503


async def test_an_owner_and_everybody_have_so_many_readers_and_no_more(journal: MemoryJournal) -> None:
    await write(journal, live("r1"), sealed=False)
    await write(journal, live("b1"), BOB, sealed=False)
    app = runs_app(journal, by_token, limits=Limits(readers_per_owner=2, readers=3))
    async with listening(app) as url, client(url) as ada, client(url, "bob") as bob:
        opened = [ada.stream("GET", "/runs/r1/events") for _ in range(2)] + [bob.stream("GET", "/runs/b1/events")]
        for each in opened:
            assert (await each.__aenter__()).status_code == 200
        third, full = await ada.get("/runs/r1/events"), await bob.get("/runs/b1/events")
        assert (third.status_code, code(third), third.headers["retry-after"]) == (429, "too_many_readers", "5")
        assert (full.status_code, code(full), full.headers["retry-after"]) == (503, "full", "5")
        for each in opened:
            await each.__aexit__(None, None, None)
        await soon(lambda: not service_of(app)._reading)
        async with ada.stream("GET", "/runs/r1/events") as again:
            assert again.status_code == 200


# At intervals.


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("EXPIRE_S", "TOUCH_S", "SWEEP_S", "FOLLOW_S"):
        monkeypatch.setattr(life, name, 0.01)


async def test_a_run_that_nobody_started_is_declared_lost_by_any_node(journal: MemoryJournal, often: None) -> None:
    await journal.reserve("r1", 0.02)
    async with living(runs_app(journal, by_token)):
        await soon(lambda: journal._logs["r1"].sealed)
    assert (await stored(journal, "r1")).ending == {"reason": "never_started"}


async def test_what_is_read_or_asked_for_here_counts_as_read_everywhere(journal: MemoryJournal, often: None) -> None:
    for run_id in ("read", "shown", "left"):
        await write(journal, live(run_id), sealed=False)
    async with listening(runs_app(journal, by_token)) as url, client(url) as ada:
        async with ada.stream("GET", "/runs/read/events"):
            await ada.get("/runs/shown")
            await soon(lambda: journal._logs["read"].read_at and journal._logs["shown"].read_at)
    assert journal._logs["left"].read_at is None


async def test_runs_past_their_time_are_pruned_then_erased_and_those_that_wait_or_work_are_not(
    journal: MemoryJournal, often: None
) -> None:
    await write(journal, live("works"), sealed=False)
    await write(journal, paused("waits"))
    await write(journal, paused("answered"))
    await write(journal, done("answered.2"))
    await write(journal, done("ended"))
    async with living(runs_app(journal, by_token, prune_after=0.02)):
        await soon(lambda: all(journal._logs[run_id].floor for run_id in ("ended", "answered", "answered.2")))
    assert [journal._logs[run_id].floor for run_id in ("works", "waits")] == [0, 0]
    async with caller(runs_app(journal, by_token)) as ada:
        assert (await ada.get("/runs/ended")).json()["status"] == "done"
    async with living(runs_app(journal, by_token, prune_after=0.02, erase_after=0.05)):
        await soon(lambda: "ended" in journal._erased)
    assert {"works", "waits"} <= set(journal._logs)


async def test_a_journal_that_fails_once_is_asked_again(
    journal: MemoryJournal, often: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real, asked = journal.expire, list[int]()

    async def expire() -> list[str]:
        asked.append(1)
        if len(asked) == 1:
            raise RuntimeError("hunter2")
        return await real()

    monkeypatch.setattr(journal, "expire", expire)
    async with living(runs_app(journal, by_token)):
        await soon(lambda: len(asked) > 2)
    assert "RuntimeError" in caplog.text
    assert "hunter2" not in caplog.text


async def test_a_journal_that_does_not_answer_makes_a_node_unready_within_its_second(
    journal: MemoryJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hangs(*args: Any, **kwargs: Any) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr(life, "READY_S", 0.02)
    monkeypatch.setattr(journal, "run", hangs)
    async with caller(runs_app(journal, by_token), None) as nobody:
        assert (await nobody.get("/readyz")).status_code == 503
        assert (await nobody.get("/livez")).status_code == 200


@pytest.mark.parametrize("wrong", [{"readers": 0}, {"body_s": -1.0}, {"runs_per_owner": 0}])
def test_a_limit_is_above_zero(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        Limits(**wrong)


# Going away.


async def test_a_service_that_goes_away_takes_nothing_new_tells_readers_and_lets_its_runs_end(
    journal: MemoryJournal,
) -> None:
    release = asyncio.Event()
    app = runs_app(journal, by_token, functions=[holding(release)])
    service = service_of(app)
    async with listening(app) as url, client(url) as ada:
        run_id = (await ada.post("/runs", json={})).json()["run_id"]
        async with ada.stream("GET", f"/runs/{run_id}/events") as response:
            reading = asyncio.create_task(frames(response))
            await soon(lambda: service.hub.readers(run_id))
            draining = asyncio.create_task(service.drain())
            last = (await reading)[-1]
        assert (last.event, draining.done(), service.drained) == ("bye", False, False)
        refused = [
            await ada.post("/runs", json={}),
            await ada.get(f"/runs/{run_id}/events"),
        ]
        assert [(answer.status_code, code(answer)) for answer in refused] == [(503, "draining")] * 2
        assert all(int(answer.headers["retry-after"]) > 0 for answer in refused)
        assert (await ada.get("/readyz")).status_code == 503
        assert (await ada.get("/livez")).status_code == 200
        assert (await ada.get(f"/runs/{run_id}")).json()["status"] == "running"
        release.set()
        await draining
        assert service.drained
    log = await stored(journal, run_id)
    assert (log.ending["outcome"], log.of("cancel.requested"), journal._logs[run_id].sealed) == ("succeeded", [], True)


async def test_runs_that_do_not_end_in_time_are_cancelled_by_the_shutdown_and_sealed(journal: MemoryJournal) -> None:
    app = runs_app(journal, by_token, functions=[holding(asyncio.Event())], drain_s=0.05)
    async with living(app), caller(app) as ada:
        ids = [(await ada.post("/runs", json={})).json()["run_id"] for _ in range(3)]
    for run_id in ids:
        log = await stored(journal, run_id)
        assert (log.ending["outcome"], log.ending["requested_by"]) == ("cancelled", "shutdown")
        assert journal._logs[run_id].sealed


async def test_a_run_that_will_not_stop_is_not_waited_for_for_ever(
    journal: MemoryJournal, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(life, "CANCELLED_S", 0.05)
    monkeypatch.setattr(Run, "cancel", lambda run, **asked: "accepted")
    release = asyncio.Event()
    app = runs_app(journal, by_token, functions=[holding(release)], drain_s=0.05)
    async with living(app), caller(app) as ada:
        run_id = (await ada.post("/runs", json={})).json()["run_id"]
    assert "1 runs did not stop in time" in caplog.text
    assert not journal._logs[run_id].sealed
    release.set()
    await soon(lambda: journal._logs[run_id].sealed)


async def test_a_run_that_goes_on_after_an_answer_is_drained_like_any_other(journal: MemoryJournal) -> None:
    release = asyncio.Event()

    @function_tool(needs_approval=True)
    def danger() -> str:
        return "did it"

    @progress
    def ask() -> RunResultStreaming:
        turns = (turn(call("danger", {}, call_id="c1")), turn(text("a"), wait(release), text("b")))
        return Runner.run_streamed(scripted(*turns, tools=[danger]), "go")

    app = runs_app(journal, by_token, functions=[ask])
    service = service_of(app)
    async with living(app), caller(app) as ada:
        run_id = (await ada.post("/runs", json={})).json()["run_id"]
        question = envelopes(await feed(ada, f"/runs/{run_id}/events"))
        (digest,) = (each["payload"]["digest"] for each in question if each["type"] == "approval.wait")
        body = {"decision": "approve", "digest": digest}
        later = (await ada.post(f"/runs/{run_id}/interactions/ask-1", json=body)).json()["continued_as"]
        draining = asyncio.create_task(service.drain())
        await soon(lambda: service._in_flight.total())
        assert not draining.done()
        release.set()
        await draining
    assert (await stored(journal, later)).ending["outcome"] == "succeeded"


async def test_a_service_that_goes_away_hangs_up_so_that_whoever_asks_again_can_reach_another(
    journal: MemoryJournal,
) -> None:
    run_id = await write(journal, live("r1"), sealed=False)
    app = runs_app(journal, by_token, functions=[holding(asyncio.Event())])
    async with listening(app) as url, client(url) as ada:
        service_of(app).draining = True
        refused = [await ada.post("/runs", json={"arguments": {}}), await ada.get(f"/runs/{run_id}/events")]
        assert [(each.status_code, each.headers["connection"]) for each in refused] == [(503, "close")] * 2
        shown = await ada.get(f"/runs/{run_id}")
        assert (shown.status_code, "connection" in shown.headers) == (200, False)


async def test_draining_twice_is_draining_once(journal: MemoryJournal) -> None:
    app = runs_app(journal, by_token, functions=[holding(asyncio.Event())], drain_s=0.05)
    async with living(app), caller(app) as ada:
        run_id = (await ada.post("/runs", json={})).json()["run_id"]
        await asyncio.gather(service_of(app).drain(), service_of(app).drain())
    assert len((await stored(journal, run_id)).of("cancel.requested")) == 1


async def test_a_journal_that_was_given_is_left_open(journal: MemoryJournal) -> None:
    async with living(runs_app(journal, by_token)):
        pass
    assert not journal.closed


async def test_a_journal_that_was_named_by_its_url_is_closed_with_the_app(tmp_path: Path) -> None:
    app = runs_app(f"sqlite:///{tmp_path}/runs.db", by_token)
    async with living(app):
        assert not service_of(app).journal.closed
    assert service_of(app).journal.closed


async def test_a_run_that_is_just_being_started_is_drained_too(journal: MemoryJournal) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()
    real = journal.lease

    async def lease(*args: Any, **kwargs: Any) -> Any:
        begun.set()
        await go_on.wait()
        return await real(*args, **kwargs)

    journal.lease = lease  # type: ignore[method-assign]
    app = runs_app(journal, by_token, functions=[holding(asyncio.Event())], drain_s=0.01)
    async with living(app), caller(app) as ada:
        starting = asyncio.create_task(ada.post("/runs", json={}))
        await begun.wait()
        draining = asyncio.create_task(service_of(app).drain())
        await soon(lambda: service_of(app).draining)
        go_on.set()
        run_id = (await starting).json()["run_id"]
        await draining
    assert (await stored(journal, run_id)).ending["requested_by"] == "shutdown"


async def test_a_paused_run_is_kept_for_its_answer_and_let_go_when_it_was_continued(
    journal: MemoryJournal, often: None
) -> None:
    @function_tool(needs_approval=True)
    def danger() -> str:
        return "did it"

    @progress
    def ask() -> RunResultStreaming:
        turns = turn(call("danger", {}, call_id="c1")), turn(text("ok"))
        return Runner.run_streamed(scripted(*turns, tools=[danger]), "go")

    app = runs_app(journal, by_token, functions=[ask])
    service = service_of(app)
    async with living(app), caller(app) as ada:
        run_id = (await ada.post("/runs", json={})).json()["run_id"]
        await soon(lambda: service._paused)
        assert not service._in_flight
        await ada.post(f"/runs/{run_id}/cancel", json={})
        await soon(lambda: not service._paused and not service._runs)
    assert (await stored(journal, f"{run_id}.2")).ending["outcome"] == "cancelled"


async def test_a_mounted_app_lives_with_the_lifespan_of_the_outer_one(journal: MemoryJournal, often: None) -> None:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    runs = runs_app(journal, by_token, functions=[holding(asyncio.Event())], drain_s=0.05)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> Any:
        async with runs.router.lifespan_context(runs):
            yield

    outer = Starlette(routes=[Mount("/agent", runs)], lifespan=lifespan)
    async with listening(outer) as url, client(url) as ada:
        answer = await ada.post("/agent/runs", json={})
        assert answer.status_code == 201
        assert answer.headers["location"] == f"/agent/runs/{answer.json()['run_id']}"
        assert (await ada.get(answer.headers["location"])).status_code == 200
        assert code(await ada.get("/agent/nothing")) == "no_such_path"
    assert (await stored(journal, answer.json()["run_id"])).ending["requested_by"] == "shutdown"
