"""A script cut at every frame: nothing that was cut short is done, and a check that lets it pass is found out."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import openai
import pytest
from agents import Agent, OpenAIChatCompletionsModel, Runner, RunResultStreaming, function_tool

from agents_progress import progress
from agents_progress.testing import (
    DoneTooEarly,
    ScriptedAPI,
    approve,
    assert_ending,
    call,
    cut,
    hang_up,
    never_done_early,
    never_done_early_async,
    reached,
    run_script,
    stopped,
    text,
    turn,
)
from agents_progress.verify import equals, has_output, matches


@function_tool(needs_approval=True)
def pay(eur: int) -> str:
    return f"paid {eur} EUR"


def gateway() -> OpenAIChatCompletionsModel:
    """A model elsewhere: the SDK takes its chat stream that stops without a finish reason for a whole answer."""
    client = openai.AsyncOpenAI(api_key="k", base_url="https://models.example/v1")
    return OpenAIChatCompletionsModel("m", client)


def test_a_truthful_agent_passes_at_every_cut_and_each_frame_is_cut_in_two_ways() -> None:
    script = [turn(call("pay", {"eur": 5})), approve("pay"), turn(text("Paid 5 EUR."))]
    frames = run_script(Agent("Clerk", tools=[pay]), script, "pay").frames
    assert all(frames) and len(frames) == 2
    assert never_done_early(Agent("Clerk", tools=[pay]), script, "pay", verify=has_output()) == 2 * sum(frames)


def test_a_check_that_accepts_half_an_answer_is_found_out_and_a_stricter_one_is_not() -> None:
    @progress(verify=has_output())
    def false(question: str) -> RunResultStreaming:
        return Runner.run_streamed(Agent("Clerk", model=gateway()), question)

    script = [turn(text("5 EUR and 20 cents"))]
    with pytest.raises(DoneTooEarly) as caught:
        never_done_early(false, script, "how much?")
    where, _, told = str(caught.value).partition(": ")
    assert re.fullmatch(r"turn 1 cut after 1 of \d frames \(the body just ends\)", where)
    assert told == (
        "the run says done with '5 ' and the tools {}; the whole script gives '5 EUR and 20 cents' and {}. "
        "Its check accepts what was cut short: let verify= ask for more"
    )
    assert never_done_early(false.using(verify=matches(r"\d+ EUR and \d+ cents")), script, "how much?") > 12


def test_a_done_without_the_tools_of_the_whole_script_is_false_too() -> None:
    @progress(verify=equals("Paid."))
    def constant(question: str) -> RunResultStreaming:
        return Runner.run_streamed(Agent("Clerk", model=gateway(), tools=[pay]), question)

    script = [turn(text("Paid."), call("pay", {"eur": 5})), approve(), turn(text("Paid."))]
    with pytest.raises(DoneTooEarly, match=r"says done with 'Paid\.' and the tools {}; .*'Paid\.' and {'call_1_0': 'r"):
        never_done_early(constant, script, "pay")


async def test_it_can_be_awaited_and_says_so_in_a_loop() -> None:
    agent, script = Agent("Clerk"), [turn(text("5"))]
    assert await never_done_early_async(agent, script, "hi", verify=has_output()) > 10
    with pytest.raises(RuntimeError, match="write `await never_done_early_async"):
        never_done_early(agent, script, "hi", verify=has_output())


def test_a_script_that_does_not_end_done_proves_nothing_and_says_so() -> None:
    with pytest.raises(AssertionError, match="the whole script ends checking, .* give the function a verify="):
        never_done_early(Agent("Clerk"), [turn(text("5"))], "hi")
    with pytest.raises(AssertionError, match="no answer of the script was streamed"):
        own = ScriptedAPI([turn(text("mine"))] * 2)
        never_done_early(Agent("Clerk", model=own.model()), [], "hi", verify=has_output())


# What it stands on.


@pytest.mark.parametrize("after", [0, 1, 5, 99])
@pytest.mark.parametrize("step", [cut(), hang_up()])
def test_a_stream_stops_after_so_many_frames(after: int, step: Any) -> None:
    whole = turn(text("one two three"))
    frames = run_script(Agent("A"), [whole], "hi").frames[0]
    found = run_script(Agent("A"), [stopped(whole, after, step)], "hi")
    assert found.frames == (min(after, frames),)
    if after < frames:
        with pytest.raises(AssertionError):
            assert_ending(found, "succeeded")


def test_steps_before_the_place_are_still_taken() -> None:
    passed = asyncio.Event()
    script = [stopped(turn(text("one ", reached(passed), "two three")), 6, cut())]
    assert_ending(run_script(Agent("A"), script, "hi"), "failed")
    assert passed.is_set()
