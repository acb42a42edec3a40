"""Mistakes in user code. Never executed: every type checker refuses the lines that end in `# wrong`, and no other."""

from __future__ import annotations

from agents import Agent, Runner
from agents.result import RunResultStreaming

from agents_progress import Disclosure, RunView, Verdict, open_journal, progress
from agents_progress.client import Client
from agents_progress.testing import assert_ending, assert_view, run_script, text, turn

agent = Agent(name="Clerk")


@progress
def total(question: str, *, turns: int = 3) -> RunResultStreaming:
    return Runner.run_streamed(agent, question, max_turns=turns)


@progress(language="zh")
async def later(question: str) -> RunResultStreaming:
    return Runner.run_streamed(agent, question)


@progress.inside
async def body(question: str) -> int:
    return len(question)


class Desk:
    @progress
    def settle(self, question: str) -> RunResultStreaming:
        return Runner.run_streamed(agent, question)


def no_run(question: str) -> str:
    return question


async def use(client: Client) -> None:
    total(3)  # wrong
    total()  # wrong
    total("x", turn=3)  # wrong
    total("x", turns="3")  # wrong
    total.using(owner="mei")(3)  # wrong
    total.using(user="mei")  # wrong
    Desk().settle(3)  # wrong
    Desk().settle.run_sync()  # wrong
    total.run_sync(3)  # wrong
    await total.start(3)  # wrong
    print(total.start("x").id)  # wrong
    total.using(exclusive=3)  # wrong
    later(question=3)  # wrong
    await body(3)  # wrong
    text: str = await body("x")  # wrong
    progress(no_run)  # wrong
    progress(verfy=None)  # wrong
    progress.inside(settle="long")  # wrong
    outcome = await total("x")
    outcome.kind = "succeeded"  # wrong
    print(outcome.is_complete)  # wrong
    Verdict("yes")  # wrong
    RunView("r", language="fr")  # wrong
    Disclosure(hold="long")  # wrong
    open_journal(3)  # wrong
    total("x").cancel("now")  # wrong
    await client.answer("r", "ask-1", "approved")  # wrong
    await client.runs(status="success")  # wrong
    client.events("r", "3")  # wrong
    total("x").resume(approved="all")  # wrong
    print(text)


def test_of_a_stranger() -> None:
    run_script(total, [turn(text("5 EUR"))])  # wrong
    run_script(total, [turn(text("5 EUR"))], 3)  # wrong
    run_script(total, [text("5 EUR")], "x")  # wrong
    run_script(agent, [], "x", verfy=None)  # wrong
    run_script(no_run, [], "x")  # wrong
    played = run_script(total, [], "x")
    assert_ending(played, "done")  # wrong
    assert_view(played, status="succeeded")  # wrong
