"""Two server processes on one store: what was started on one is watched, cancelled and approved on the other, of 20
answers one counts, whether the owner of the pause is there or was killed, and what a killed one leaves behind is soon
told as lost by the other, and never as done.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from agents_progress import Envelope, RunView
from agents_progress.client import Client
from agents_progress.errors import Refused
from agents_progress.journal import Journal
from agents_progress.rows import Interaction

from .figures import Figures
from .fleet import PAID, Node, fleet, person, said
from .places import BACKENDS, Place, stores

LEASE_S: Final = 3.0
SLACK_S: Final = 1.0
ANSWERS: Final = 20
ORPHAN_ANSWERS: Final = 50
WITHIN_S: Final = 45.0
"""Each scene ends in so many seconds, or hangs."""
LONG: Final = {"ticks": 2000, "step_s": 0.05}


class Scene:
    """Both servers, with Ada at A and Bob at B, and the journal as neither of them has it."""

    def __init__(self, a: Node, b: Node, ada: Client, bob: Client, journal: Journal, figures: Figures) -> None:
        self.a, self.b = a, b
        self.ada, self.bob = ada, bob
        self.journal = journal
        self.figures = figures
        self.backend = ""

    def say(self, text: str) -> None:
        self.figures.say(f"{self.backend}: {text}")

    def hold(self, holds: object, text: str) -> None:
        self.figures.hold(bool(holds), f"{self.backend}: {text}")

    async def stored(self, run_id: str) -> list[Envelope]:
        return await self.journal.read(run_id, limit=100_000)


class Watch:
    """A reader: what it was given, and when it saw what."""

    def __init__(self, client: Client, run_id: str, *, continued: bool = False) -> None:
        self.views: dict[str, RunView] = {}
        self.statuses: list[str] = []
        self.view = RunView(run_id)
        self.ended_at = 0.0
        self._moved = asyncio.Condition()
        self.task = asyncio.create_task(self._follow(client, run_id, continued))

    async def _follow(self, client: Client, run_id: str, continued: bool) -> None:
        async for view in client.follow(run_id, continued=continued):
            self.view = self.views[view.run_id] = view
            if view.status not in self.statuses[-1:]:
                self.statuses.append(view.status)
            async with self._moved:
                self._moved.notify_all()
        self.ended_at = time.monotonic()

    async def until(self, sees: Callable[[RunView], object]) -> None:
        async with self._moved:
            await self._moved.wait_for(lambda: sees(self.view))


async def cancelled(scene: Scene) -> None:
    run_id = (await scene.ada.start("slow", LONG))["run_id"]
    watch = Watch(scene.bob, run_id)
    await watch.until(lambda view: view.text)
    began = time.monotonic()
    answer = await scene.bob.cancel(run_id)
    await watch.task
    stored = await scene.stored(run_id)
    actors = [each.payload.get("requested_by") for each in stored if each.type == "run.ended"]
    said_ = f"cancelled on B after {watch.ended_at - began:.2f} s: {answer}, {watch.statuses[-1]}, by {actors}"
    scene.hold((answer, watch.statuses[-1], actors) == ("accepted", "cancelled", ["bob"]), said_)
    scene.hold("done" not in watch.statuses and watch.view.seq == len(stored), "its reader on B had all of it")


def question(view: RunView) -> Interaction:
    (asked,) = view.interactions.values()
    return asked


async def paused(scene: Scene, paid: Path) -> Watch:
    run_id = (await scene.ada.start("ask", {"paid": str(paid)}))["run_id"]
    watch = Watch(scene.bob, run_id, continued=True)
    await watch.until(lambda view: view.standing.outcome == "paused")
    return watch


async def approved(scene: Scene, paid: Path) -> None:
    watch = await paused(scene, paid)
    asked, first, began = question(watch.view), watch.view.run_id, time.monotonic()
    goes_on = await scene.bob.answer(first, asked.interaction_id, "approve", digest=asked.digest)
    await watch.task
    by = question(watch.view).actor
    scene.hold(
        (goes_on, watch.view.run_id, by) == (f"{first}.2", f"{first}.2", "bob"),
        f"approved on B by {by}: it went on as R{watch.view.run_id.removeprefix(first)}",
    )
    scene.hold(
        (watch.view.status, watch.view.text) == ("done", PAID),
        f"its reader on B saw {watch.view.status} after {watch.ended_at - began:.2f} s",
    )
    pids = paid.read_text().split()
    scene.hold(pids == [str(scene.a.pid)], f"the tool ran {len(pids)} time on A")


async def raced(scene: Scene, paid: Path) -> None:
    watch = await paused(scene, paid)
    asked, run_id = question(watch.view), watch.view.run_id
    async with AsyncExitStack() as stack:
        people = [
            await stack.enter_async_context(person((scene.a, scene.b)[number % 2].url, f"p{number}"))
            for number in range(ANSWERS)
        ]
        answers = await asyncio.gather(
            *(each.answer(run_id, asked.interaction_id, "approve", digest=asked.digest) for each in people),
            return_exceptions=True,
        )
    await watch.task
    won = [f"p{number}" for number, answer in enumerate(answers) if not isinstance(answer, BaseException)]
    lost = [answer for answer in answers if isinstance(answer, Refused) and answer.code == "already_answered"]
    told = {answer.facts.get("actor") for answer in lost}
    by = question(watch.view).actor
    scene.hold(
        (len(won), len(lost), told, [by]) == (1, ANSWERS - 1, set(won), won),
        f"of {ANSWERS} answers {len(won)} won ({by} in the log), {len(lost)} were told who did",
    )
    pids = paid.read_text().split()
    scene.hold(len(pids) == 1 and watch.view.status == "done", f"the tool ran {len(pids)} time, {watch.view.status}")


async def orphaned(scene: Scene, paid: Path) -> None:
    """The owner of a pause is killed, and both servers, which never had it, are answered at once."""
    run_id = (await scene.ada.start("entrust", {"paid": str(paid)}))["run_id"]
    watch = Watch(scene.bob, run_id, continued=True)
    await watch.until(lambda view: view.standing.outcome == "paused")
    await scene.a.kill()
    await scene.a.start()
    asked = question(watch.view)
    async with AsyncExitStack() as stack:
        people = [
            await stack.enter_async_context(person((scene.a, scene.b)[number % 2].url, f"p{number}"))
            for number in range(ORPHAN_ANSWERS)
        ]
        answers = await asyncio.gather(
            *(each.answer(run_id, asked.interaction_id, "approve", digest=asked.digest) for each in people),
            return_exceptions=True,
        )
    await watch.task
    won = [f"p{number}" for number, answer in enumerate(answers) if not isinstance(answer, BaseException)]
    lost = [answer for answer in answers if isinstance(answer, Refused) and answer.code == "already_answered"]
    by = question(watch.view).actor
    scene.hold(
        (len(won), len(lost), [by]) == (1, ORPHAN_ANSWERS - 1, won),
        f"its owner killed, of {ORPHAN_ANSWERS} answers {len(won)} won ({by} in the log), {len(lost)} were told",
    )
    pids = paid.read_text().split()
    scene.hold(
        len(pids) == 1 and pids[0] in map(str, (scene.a.pid, scene.b.pid)) and watch.view.status == "done",
        f"the tool ran {len(pids)} time, on a server that never had the pause, {watch.view.status}",
    )
    scene.hold(not await scene.journal.pauses(), "nothing that was used is left")


async def killed(scene: Scene, lease_s: float) -> None:
    run_id = (await scene.ada.start("slow", LONG))["run_id"]
    watch = Watch(scene.bob, run_id)
    await watch.until(lambda view: len(view.text) > 50)
    await scene.a.kill()
    began, shown = time.monotonic(), list[str]()
    while "unknown" not in shown and time.monotonic() < began + 3 * lease_s + 10:
        status = (await scene.bob.run(run_id))["status"]
        shown += [status] if status not in shown[-1:] else []
        await asyncio.sleep(0.02)
    got_s = time.monotonic() - began
    await watch.task
    most, read_s = lease_s + lease_s / 3 + SLACK_S, watch.ended_at - began
    scene.hold(
        max(got_s, read_s) <= most,
        f"A killed: B's GET says {shown[-1]} after {got_s:.2f} s, its reader {watch.view.status} after {read_s:.2f} s "
        f"(lease {lease_s:g} s, at most {most:.2f} s)",
    )
    lost = [each for each in await scene.stored(run_id) if each.type == "run.lost"]
    scene.hold((len(lost), watch.statuses[-1]) == (1, "unknown"), f"it was lost {len(lost)} time")
    scene.hold("done" not in watch.statuses + shown, f"never done: {shown} and {watch.statuses}")


async def afterwards(scene: Scene) -> None:
    watch = Watch(scene.bob, (await scene.bob.start("plain"))["run_id"])
    await watch.task
    found = watch.view.status, watch.view.text
    scene.hold(found == ("done", said(1)), f"a run on B afterwards is {watch.view.status}")


@asynccontextmanager
async def scenes(place: Place, folder: Path, lease_s: float, figures: Figures) -> AsyncIterator[Scene]:
    journal = place.journal()
    try:
        async with fleet(place, folder, lease_s=lease_s) as (a, b):
            async with person(a.url) as ada, person(b.url, "bob") as bob:
                yield Scene(a, b, ada, bob, journal, figures)
    finally:
        await journal.close()


async def nodes(backend: str, lease_s: float, figures: Figures) -> None:
    """Every scene on one backend."""
    with stores(backend) as places, TemporaryDirectory(prefix="bars-") as name:
        folder = Path(name)
        async with scenes(places(), folder, lease_s, figures) as scene:
            scene.backend = backend
            for act in (
                partial(cancelled, scene),
                partial(approved, scene, folder / "once"),
                partial(raced, scene, folder / "raced"),
                partial(orphaned, scene, folder / "orphaned"),
                partial(killed, scene, lease_s),
                partial(afterwards, scene),
            ):
                try:
                    async with asyncio.timeout(WITHIN_S):
                        await act()
                except TimeoutError:
                    scene.hold(False, f"{act.func.__name__} hangs")
            tracebacks = [node.name for node in (scene.a, scene.b) if "Traceback" in node.said]
            scene.hold(not tracebacks, f"tracebacks in the logs of {tracebacks or 'none'}")
            for each in tracebacks:
                scene.say({"A": scene.a, "B": scene.b}[each].said[-2000:])


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bars.nodes", description=__doc__)
    parser.add_argument("--backend", choices=(*BACKENDS, "pgbouncer"), action="append")
    parser.add_argument("--lease", type=float, default=LEASE_S, help="seconds")
    chosen = parser.parse_args(arguments)
    figures = Figures("nodes")
    for backend in chosen.backend or (*BACKENDS, "pgbouncer"):
        asyncio.run(nodes(backend, chosen.lease, figures))
    return figures.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
