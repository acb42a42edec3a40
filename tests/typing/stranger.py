# pyright: strict
"""A stranger's tests of an agent. Never executed: the type checkers read it, at their strictest."""

from __future__ import annotations

from typing import assert_type

from agents import Agent, Runner, RunResultStreaming

from agents_progress import progress
from agents_progress.testing import (
    GoldenEnvelopes,
    MakeAPI,
    Played,
    ScriptedAPI,
    approve,
    assert_ending,
    assert_view,
    call,
    cancel,
    cut,
    frozen_clock,
    never_done_early,
    run_script,
    run_script_async,
    text,
    turn,
)
from agents_progress.verify import has_output, matches

agent = Agent(name="Clerk")


@progress(verify=matches(r"\d+ EUR"), clock=frozen_clock())
def total(question: str, *, turns: int = 3) -> RunResultStreaming:
    return Runner.run_streamed(agent, question, max_turns=turns)


def test_of_a_stranger(scripted_api: MakeAPI, golden_envelopes: GoldenEnvelopes) -> None:
    played = run_script(total, [turn(text("5 ", cut(), "EUR"), call("pay")), approve("pay")], "2 plus 3?", turns=2)
    assert_type(played, Played)
    assert_type(played.types, list[str])
    assert_ending(played, "failed", code="connection", output=None, accepted=False)
    assert_view(played, status="failed", text="5 ", tools={"pay": ["returned", "skipped"]}, asks=[])
    assert_type(run_script(agent, [turn(cancel())], "hi", verify=has_output(), language="zh"), Played)
    api = scripted_api(turn(text("5 EUR")))
    assert_type(api, ScriptedAPI)
    assert_type(Agent(name="A", model=api.model()).name, str)
    golden_envelopes(run_script(total, api, "2 plus 3?"), name="again")
    assert_type(never_done_early(total, [turn(text("5 EUR"))], question="2 plus 3?"), int)


async def test_in_a_loop() -> None:
    run = total("x")
    await run
    assert_ending(run, "succeeded")
    assert_view(run.view, agent="Clerk")
    assert_type(await run_script_async(total, [turn()], "x"), Played)
