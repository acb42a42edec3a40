"""Runs for a terminal, played by ``python -m tests.scenes SCENE``; SIGUSR1 lets what waits in them go on.

The last row that is written says how the program ended, and in which state of the terminal's cursor is up to the test.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from agents import Agent, RunConfig, Runner, RunResultStreaming, function_tool

from agents_progress import Disclosure, current_run, open_journal, progress
from agents_progress.terminal import show
from agents_progress.testing import ScriptedAPI, call, text, turn

TURNS = {
    "asks": [
        turn(call("refund", {"order": 4711, "note": "שלום [/bold] \u202e工"}, call_id="c1")),
        turn(text("refunded")),
    ],
    "asks twice": [
        turn(call("refund", {"order": 1}, call_id="c1"), call("tell", {"who": "ann"}, call_id="c2")),
        turn(text("both")),
    ],
    "asks for words": [
        turn(
            call("clarify", {"question": "which?"}, call_id="c1"),
            call("pick", {"slots": ["mon", "tue"]}, call_id="c2"),
            call("refund", {"order": 1}, call_id="c3"),
        ),
        turn(text("all said")),
    ],
    "works asks": [
        turn(call("look", call_id="c1")),
        turn(call("refund", {"order": 1}, call_id="c2")),
        turn(text("no refund")),
    ],
    "works": [turn(call("look", call_id="c1")), turn(text("never asked for"))],
    "is checked": [turn(text("an answer"))],
    "counts": [turn(call("count", call_id="c1")), turn(text("word " * 200, chunk=5))],
}


SAID: list[Any] = []
"""What the tools were told."""
WORDS: dict[str, Any] = {
    "approval_kinds": {"clarify": "clarification"},
    "choices": {"pick": "slots"},
    "disclosure": Disclosure(approval_details="all"),
}


def at_the_signal(action: Callable[[], object]) -> None:
    """Do something when SIGUSR1 comes, or at once where it came before anybody waited for it."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, action)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})


def decorated(scene: str, aloud: str = "", **options: Any) -> Any:
    go_on = asyncio.Event()

    @function_tool(needs_approval=True)
    def refund(order: int, note: str = "") -> str:
        SAID.append((order, note))
        return "R-0815"

    @function_tool(needs_approval=True)
    def clarify(question: str) -> str:
        SAID.append(current_run().answer)
        return "said"

    @function_tool(needs_approval=True)
    def pick(slots: list[str]) -> str:
        SAID.append(current_run().answer)
        return "picked"

    @function_tool(needs_approval=True)
    def tell(who: str) -> str:
        return "told"

    @function_tool
    async def look() -> str:
        at_the_signal(go_on.set)
        if aloud:
            sys.stdout.write("looking\n")
            sys.stdout.flush()
        await go_on.wait()
        return "looked"

    @function_tool
    async def count() -> str:
        for number in range(300):
            current_run().report("counted", number, 300)
            await asyncio.sleep(0.002)
        at_the_signal(go_on.set)
        await go_on.wait()
        return "counted"

    agent = Agent("Clerk", model=ScriptedAPI(TURNS[scene]).model(), tools=[refund, tell, look, count, clarify, pick])

    @progress(**{"disclosure": Disclosure(approval_details=["refund"]), "verify": lambda output: True, **options})
    def serve_a_customer() -> RunResultStreaming:
        return Runner.run_streamed(agent, "hi", run_config=RunConfig(tracing_disabled=True))

    return serve_a_customer


async def never(output: str) -> bool:
    return await asyncio.get_running_loop().create_future()


async def shown(scene: str, *, ask: bool = False, elsewhere: bool = False, **options: Any) -> str:
    run = decorated(scene, **options)()
    if elsewhere:
        await run
        at_the_signal(lambda: run.resume(approve="all", actor="ann"))
    outcome = await show(run, ask=ask)
    return str(outcome.kind)


async def said(scene: str, **options: Any) -> str:
    return f"{await shown(scene, **options)} {SAID}"


async def kept(url: str, scene: str = "asks") -> str:
    """A run of a journal that others look at and answer; it lives until SIGUSR1."""
    journal, over = open_journal(url), asyncio.Event()
    at_the_signal(over.set)
    run = decorated(scene, journal=journal, run_id="r")()
    if scene == "asks":
        await run
    await anext(aiter(run))  # now the journal has it
    sys.stdout.write("paused\n" if scene == "asks" else "running\n")
    sys.stdout.flush()
    await over.wait()
    await journal.close()
    return str(run.view.status)


SCENES: dict[str, Callable[..., Coroutine[Any, Any, str]]] = {
    "asks": lambda: shown("asks", ask=True),
    "asks twice": lambda: shown("asks twice", ask=True),
    "asks for words": lambda: said("asks for words", ask=True, **WORDS),
    "asks blind": lambda: shown("asks twice", ask=True, approve_blind=["tell"]),
    "asks nobody": lambda: shown("asks"),
    "asks elsewhere": lambda: shown("asks", ask=True, elsewhere=True),
    "works": lambda: shown("works"),
    "is checked": lambda: shown("is checked", verify=never),
    "counts": lambda: shown("counts"),
    "works asks": lambda: shown("works asks", ask=True),
    "kept": kept,
}


def main(scene: str, *more: str) -> int:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        if scene == "sync":
            ended = str(decorated(*more).run_sync().kind)
        else:
            ended = asyncio.run(SCENES[scene](*more))
    except KeyboardInterrupt:
        ended = "interrupted"
    sys.stdout.write(f"the program ended: {ended}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
