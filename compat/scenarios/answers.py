"""Runs that answer: text, structured output, reasoning, and what a server may put around them."""

from __future__ import annotations

from agents import Runner

from agents_progress.testing import completed, event, pause, text, turn
from agents_progress.testing import reasoning as thoughts

from ..registry import scenario
from ..stage import Stage
from .cast import Ans, drain


@scenario("succeeded")
async def plain(stage: Stage) -> None:
    agent = stage.agent(turn(text("hello world")))
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("succeeded")
async def empty_text(stage: Stage) -> None:
    agent = stage.agent(turn(text("")))
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("succeeded")
async def reasoning(stage: Stage) -> None:
    agent = stage.agent(turn(thoughts("I think."), text("hello")))
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("succeeded")
async def reasoning_only(stage: Stage) -> None:
    agent = stage.agent(turn(thoughts("I think.")))
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("succeeded")
async def structured_valid(stage: Stage) -> None:
    agent = stage.agent(turn(text('{"n": 3}')), output_type=Ans)
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("failed")
async def structured_invalid(stage: Stage) -> None:
    agent = stage.agent(turn(text("three")), output_type=Ans)
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("succeeded")
async def structured_empty_text(stage: Stage) -> None:
    # The SDK asks the model again, without a word about it.
    agent = stage.agent(turn(text("")), turn(text('{"n": 4}')), output_type=Ans)
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("succeeded")
async def structured_null_output(stage: Stage) -> None:
    agent = stage.agent(turn(text('{"response": null}')), output_type=int | None)
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("succeeded")
async def structured_falsy_output(stage: Stage) -> None:
    agent = stage.agent(turn(text('{"response": 0}')), output_type=int)
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("succeeded")
async def completed_output_empty_list(stage: Stage) -> None:
    agent = stage.agent(turn(completed(output=[])))
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("succeeded")
async def completed_output_empty_list_but_text_streamed(stage: Stage) -> None:
    agent = stage.agent(turn(text("hello"), completed(output=[])))
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("succeeded")
async def text_delta_no_item_done_completed_empty(stage: Stage) -> None:
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    delta = event({"type": "response.output_text.delta", "delta": "hello", "logprobs": [], **place})
    agent = stage.agent(turn(delta, completed(output=[])))
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("succeeded")
async def completed_then_extra_events(stage: Stage) -> None:
    agent = stage.agent(turn(text("hello"), completed(), event({"type": "response.afterthought"})))
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("succeeded")
async def completed_twice(stage: Stage) -> None:
    content = [{"type": "output_text", "text": "second", "annotations": []}]
    second = {"type": "message", "id": "msg_2", "role": "assistant", "status": "completed", "content": content}
    agent = stage.agent(turn(text("first"), completed(), completed(output=[second])))
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("succeeded")
async def completed_then_server_never_closes(stage: Stage) -> None:
    # Some gateways hold the connection open; here for as long as a test can afford.
    agent = stage.agent(turn(text("hello"), completed(), pause(0.3)))
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("succeeded")
async def unknown_raw_event_type(stage: Stage) -> None:
    agent = stage.agent(turn(event({"type": "response.brand_new.delta", "delta": "?"}), text("hello")))
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))
