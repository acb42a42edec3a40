"""The scripted API: what one writes is what the real client and the real SDK models receive."""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from agents import Agent, ModelBehaviorError, Runner, function_tool, set_tracing_disabled
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage

from agents_progress.testing import (
    ScriptedAPI,
    ScriptNotPlayed,
    Turn,
    Usage,
    call,
    completed,
    connection_error,
    cut,
    error,
    event,
    failed,
    hang_up,
    http_error,
    incomplete,
    message,
    no_network,
    pause,
    raw_item,
    raw_turn,
    reached,
    reasoning,
    refusal,
    text,
    transport,
    turn,
    wait,
)


@pytest.fixture(autouse=True)
def closed_network() -> Iterator[None]:
    set_tracing_disabled(True)
    with no_network():
        yield


@function_tool
def search(q: str) -> str:
    return f"found {q}"


async def sent(answer: Turn) -> list[Any]:
    """The events of one streamed request to the Responses API, parsed by the real client."""
    client = ScriptedAPI([answer]).client()
    return [part async for part in await client.responses.create(model="m", input="hi", stream=True)]


async def chunks(answer: Turn) -> list[Any]:
    """The chunks of one streamed request to the Chat Completions API."""
    client = ScriptedAPI([answer]).client()
    stream = await client.chat.completions.create(
        model="m",
        messages=[{"role": "user", "content": "hi"}],
        stream=True,
        stream_options={"include_usage": True},
    )
    return [chunk async for chunk in stream]


def types(events: list[Any]) -> list[str]:
    return [part.type.removeprefix("response.") for part in events]


@pytest.mark.asyncio
async def test_a_text_is_framed_as_the_responses_api_frames_it() -> None:
    events = await sent(turn(text("Hello big world.")))
    assert types(events) == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert [part.sequence_number for part in events] == list(range(len(events)))
    assert [part.delta for part in events if part.type.endswith("delta")] == ["Hello ", "big ", "world."]
    assert {part.item_id for part in events if hasattr(part, "item_id")} == {"msg_1_0"}
    final = events[-1].response
    assert (final.status, final.output_text, final.usage.total_tokens) == ("completed", "Hello big world.", 15)
    assert isinstance(final.output[0], ResponseOutputMessage)


@pytest.mark.asyncio
async def test_every_event_satisfies_the_strict_type_of_the_client() -> None:
    events = await sent(
        turn(
            reasoning("I think.", "I think more."),
            message(text("Yes, ", annotations=[url_citation()]), refusal("no.")),
            call("search", {"q": "x"}),
        )
    )
    for part in events:
        type(part).model_validate(part.model_dump(), strict=False)
    assert [item.type for item in events[-1].response.output] == ["reasoning", "message", "function_call"]
    assert {part.output_index for part in events if hasattr(part, "output_index")} == {0, 1, 2}


def url_citation() -> dict[str, Any]:
    return {"type": "url_citation", "url": "https://example.org", "title": "T", "start_index": 0, "end_index": 3}


@pytest.mark.asyncio
async def test_arguments_arrive_in_pieces_and_are_whole_in_the_item() -> None:
    events = await sent(turn(call("search", {"q": "a b"}, call_id="c1", chunk=4)))
    deltas = [part.delta for part in events if part.type == "response.function_call_arguments.delta"]
    assert len(deltas) > 1 and json.loads("".join(deltas)) == {"q": "a b"}
    item = events[-1].response.output[0]
    assert isinstance(item, ResponseFunctionToolCall)
    assert (item.call_id, item.arguments) == ("c1", '{"q": "a b"}')


@pytest.mark.asyncio
async def test_call_ids_that_were_not_given_differ_over_the_whole_script() -> None:
    api = ScriptedAPI([turn(call("a"), call("b")), turn(call("a"))])
    client = api.client()
    first = await client.responses.create(model="m", input="1")
    second = await client.responses.create(model="m", input="2")
    ids = [item.call_id for item in (*first.output, *second.output) if item.type == "function_call"]
    assert len(set(ids)) == 3


@pytest.mark.asyncio
async def test_an_incomplete_response_marks_the_item_it_stopped_in() -> None:
    events = await sent(turn(text("One."), text("Tw"), incomplete("content_filter")))
    final = events[-1]
    assert final.type == "response.incomplete"
    assert final.response.incomplete_details.reason == "content_filter"
    assert [item.status for item in final.response.output] == ["completed", "incomplete"]


@pytest.mark.asyncio
async def test_failed_and_error_are_the_last_events_of_their_streams() -> None:
    last = (await sent(turn(text("x"), failed("rate_limit_exceeded", "slow down"))))[-1]
    assert (last.type, last.response.status) == ("response.failed", "failed")
    assert (last.response.error.code, last.response.error.message) == ("rate_limit_exceeded", "slow down")
    last = (await sent(turn(error("boom", "broken"))))[-1]
    assert (last.type, last.code, last.message) == ("error", "boom", "broken")


@pytest.mark.asyncio
async def test_what_is_written_after_an_ending_is_sent_after_it() -> None:
    events = await sent(turn(text("a"), completed(status="incomplete", output=[]), completed(), event({"type": "odd"})))
    assert types(events)[-3:] == ["completed", "completed", "odd"]
    assert (events[-3].response.status, events[-3].response.output) == ("incomplete", [])
    assert events[-2].response.output_text == "a"


@pytest.mark.asyncio
async def test_a_stream_that_hangs_up_has_no_terminal_event_and_an_empty_one_has_none_at_all() -> None:
    assert types(await sent(turn(text("ab ", hang_up(), "cd"))))[-1] == "output_text.delta"
    assert await sent(raw_turn()) == []


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", ["read", "protocol", "timeout"])
async def test_a_cut_connection_breaks_after_what_was_sent_before_it(kind: Any) -> None:
    client = ScriptedAPI([turn(text("ab ", cut(kind), "cd"))]).client()
    seen: list[Any] = []
    with pytest.raises(Exception) as caught:  # openai 3 wraps it; openai 2 lets the HTTP library's error through
        async for part in await client.responses.create(model="m", input="", stream=True):
            seen.append(part)
    assert types(seen)[-1] == "output_text.delta" and seen[-1].delta == "ab "
    assert "the script" in str(caught.value.__cause__ or caught.value)


@pytest.mark.asyncio
async def test_an_http_error_and_an_unreachable_api_fail_before_any_event() -> None:
    with pytest.raises(openai.InternalServerError, match="on fire"):
        await sent(http_error(500, "on fire"))
    with pytest.raises(openai.RateLimitError):
        await sent(http_error(429, code="rate_limit_exceeded"))
    with pytest.raises(openai.APIConnectionError):
        await sent(connection_error())


@pytest.mark.asyncio
async def test_a_gate_holds_the_stream_in_the_middle_of_a_word() -> None:
    here, gate = asyncio.Event(), asyncio.Event()
    client = ScriptedAPI([turn(text("hel", reached(here), wait(gate), "lo"))]).client()
    seen: list[Any] = []

    async def read() -> None:
        async for part in await client.responses.create(model="m", input="", stream=True):
            seen.append(part)

    reader = asyncio.create_task(read())
    await asyncio.wait_for(here.wait(), 1)
    assert seen[-1].delta == "hel" and not reader.done()
    gate.set()
    await asyncio.wait_for(reader, 1)
    assert types(seen)[-1] == "completed"


@pytest.mark.asyncio
async def test_other_tasks_run_between_two_frames() -> None:
    ticks: list[int] = []

    async def clock() -> None:
        for tick in itertools.count():
            ticks.append(tick)
            await asyncio.sleep(0)

    ticking = asyncio.create_task(clock())
    client = ScriptedAPI([turn(text("x" * 50, chunk=1))]).client()
    at = [len(ticks) async for _ in await client.responses.create(model="m", input="", stream=True)]
    ticking.cancel()
    assert len(set(at)) == len(at)


@pytest.mark.asyncio
async def test_closing_a_stream_stops_the_script_behind_it() -> None:
    beyond = asyncio.Event()
    client = ScriptedAPI([turn(text("a ", "b ", reached(beyond)))]).client()
    stream = await client.responses.create(model="m", input="", stream=True)
    async for part in stream:
        if part.type == "response.output_text.delta":
            break
    await stream.close()
    await asyncio.sleep(0.01)
    assert not beyond.is_set()


@pytest.mark.asyncio
async def test_a_request_that_does_not_stream_gets_the_same_turn_as_json() -> None:
    answer = turn(reasoning("hm"), text("Hello"), call("search", {"q": "x"}, call_id="c1"), usage=Usage(7, 3, 2, 1))
    streamed = (await sent(answer))[-1].response
    plain = await ScriptedAPI([answer]).client().responses.create(model="m", input="hi")
    assert plain.model_dump() == streamed.model_dump()
    assert plain.usage is not None and plain.usage.input_tokens_details.cached_tokens == 2
    with pytest.raises(openai.InternalServerError, match="broken"):
        await ScriptedAPI([turn(error(message="broken"))]).client().responses.create(model="m", input="hi")


@pytest.mark.asyncio
async def test_a_raw_item_is_sent_as_given_with_its_events_in_between() -> None:
    item = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}}
    events = await sent(turn(raw_item(item, "response.web_search_call.in_progress", pause(0)), text("ok")))
    assert types(events)[2:5] == ["output_item.added", "web_search_call.in_progress", "output_item.done"]
    assert (events[3].item_id, events[3].output_index, events[2].item.status) == ("ws_1", 0, "in_progress")
    assert events[4].item.status == "completed"


@pytest.mark.asyncio
async def test_an_agent_runs_on_a_script_and_every_request_is_kept() -> None:
    api = ScriptedAPI([turn(text("Let me look."), call("search", {"q": "x"}, call_id="c1")), turn(text("Done."))])
    result = Runner.run_streamed(Agent(name="A", model=api.model(), tools=[search]), "hi")
    names = [part.name async for part in result.stream_events() if part.type == "run_item_stream_event"]
    # Their order depends on the SDK: up to 0.19 a call is told before the message of the same response.
    assert sorted(names) == ["message_output_created", "message_output_created", "tool_called", "tool_output"]
    assert result.final_output == "Done."
    assert len(api.requests) == 2
    output = api.requests[1]["input"][-1]
    assert (output["type"], output["call_id"], output["output"]) == ("function_call_output", "c1", "found x")
    api.assert_played()


@pytest.mark.asyncio
async def test_the_same_turns_run_over_chat_completions() -> None:
    api = ScriptedAPI([turn(text("Let me look."), call("search", {"q": "x"}, call_id="c1")), turn(text("Done."))])
    result = Runner.run_streamed(Agent(name="A", model=api.chat_model(), tools=[search]), "hi")
    async for _ in result.stream_events():
        pass
    assert result.final_output == "Done."
    assert api.requests[1]["messages"][-1] == {"role": "tool", "tool_call_id": "c1", "content": "found x"}
    plain = ScriptedAPI([turn(call("search", {"q": "y"})), turn(text("Plain."))])
    answer = await Runner.run(Agent(name="A", model=plain.chat_model(), tools=[search]), "hi")
    assert answer.final_output == "Plain."


@pytest.mark.asyncio
async def test_chat_chunks_carry_role_text_calls_finish_reason_and_usage() -> None:
    got = await chunks(turn(text("a b"), refusal("no"), call("t", '{"x": 1}', call_id="c1", chunk=4)))
    assert got[0].choices[0].delta.role == "assistant"
    assert [c.choices[0].delta.content for c in got[:2]] == ["a ", "b"]
    assert got[2].choices[0].delta.refusal == "no"
    calls = [c.choices[0].delta.tool_calls[0] for c in got[3:-2]]
    assert (calls[0].id, calls[0].function.name) == ("c1", "t")
    assert "".join(c.function.arguments for c in calls) == '{"x": 1}'
    assert got[-2].choices[0].finish_reason == "tool_calls"
    assert (got[-1].choices, got[-1].usage.total_tokens) == ([], 15)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("ending", "finish"),
    [(completed(), "stop"), (incomplete(), "length"), (incomplete("content_filter"), "content_filter")],
)
async def test_chat_endings_are_finish_reasons(ending: Any, finish: str) -> None:
    got = await chunks(turn(text("a"), ending, usage=None))
    assert got[-1].choices[0].finish_reason == finish


@pytest.mark.asyncio
async def test_chat_streams_end_without_a_finish_reason_or_without_any_chunk() -> None:
    got = await chunks(turn(call("t", ['{"x', hang_up()])))
    assert all(c.choices[0].finish_reason is None for c in got) and len(got) == 2
    assert await chunks(raw_turn()) == await chunks(turn(hang_up())) == []
    with pytest.raises(openai.APIError, match="on fire"):
        await chunks(turn(text("a"), failed(message="on fire")))


@pytest.mark.asyncio
async def test_a_hosted_item_over_chat_is_refused_with_a_sentence() -> None:
    with pytest.raises(openai.BadRequestError, match="web_search_call item cannot be sent over Chat"):
        await chunks(turn(raw_item({"type": "web_search_call", "id": "ws_1"})))


@pytest.mark.asyncio
async def test_a_request_beyond_the_script_fails_with_a_sentence_that_counts() -> None:
    api = ScriptedAPI([turn(call("search", {"q": "x"}))])
    result = Runner.run_streamed(Agent(name="A", model=api.model(), tools=[search]), "hi")
    with pytest.raises(openai.BadRequestError, match="The script has 1 turn, and this is request 2"):
        async for _ in result.stream_events():
            pass
    with pytest.raises(ScriptNotPlayed, match="request 2"):
        api.assert_played()


@pytest.mark.asyncio
async def test_turns_that_nobody_asked_for_are_reported() -> None:
    api = ScriptedAPI([turn(text("a")), turn(text("b")), turn(text("c"))])
    await api.client().responses.create(model="m", input="")
    with pytest.raises(ScriptNotPlayed, match="2 turns of the script not asked for; 1 played"):
        api.assert_played()


@pytest.mark.asyncio
async def test_a_script_may_be_endless() -> None:
    client = ScriptedAPI(itertools.repeat(turn(text("again")))).client()
    for _ in range(5):
        assert (await client.responses.create(model="m", input="")).output_text == "again"


@pytest.mark.asyncio
async def test_the_sdk_sees_a_stream_without_terminal_event_as_it_would_on_a_real_wire() -> None:
    result = Runner.run_streamed(Agent(name="A", model=ScriptedAPI([turn(text("a"), hang_up())]).model()), "hi")
    with pytest.raises(ModelBehaviorError):
        async for _ in result.stream_events():
            pass


def test_importing_the_package_loads_neither_the_sdk_nor_an_http_library() -> None:
    code = (
        "import sys, agents_progress.testing;"
        "print([m for m in ('agents', 'openai', 'httpx', 'httpx2', 'pytest', 'respx') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


@pytest.mark.asyncio
async def test_a_script_without_an_end_has_nothing_left() -> None:
    api = ScriptedAPI(itertools.repeat(turn(text("again"))))
    for _ in range(3):
        await api.client().responses.create(model="m", input="hi")
    api.assert_played()
    assert api.taken == 3


@pytest.mark.asyncio
async def test_asking_what_is_left_takes_nothing() -> None:
    api = ScriptedAPI([turn(text("a")), turn(text("b"))])
    assert api.unplayed() == "2 turns of the script not asked for; 0 played"
    for answer in ("a", "b"):
        assert (await api.client().responses.create(model="m", input="hi")).output_text == answer
    assert api.unplayed() is None


@pytest.mark.asyncio
async def test_an_api_answers_clients_that_know_nothing_of_it_and_lets_them_go() -> None:
    def client() -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(api_key="k", base_url="https://models.example/v1", max_retries=0)

    before = transport.httpx.AsyncHTTPTransport.handle_async_request
    api = ScriptedAPI([turn(text("a")), http_error(404), turn(text("b"))])
    with api.answering():
        assert (await client().responses.create(model="m", input="1")).output_text == "a"
        with pytest.raises(openai.NotFoundError):
            await client().responses.create(model="m", input="2")
        chat = await client().chat.completions.create(model="m", messages=[{"role": "user", "content": "3"}])
        assert chat.choices[0].message.content == "b"
    assert [request.get("input") for request in api.requests] == ["1", "2", None]
    assert transport.httpx.AsyncHTTPTransport.handle_async_request is before


@pytest.mark.asyncio
async def test_a_client_that_tries_again_is_refused_the_same_and_a_new_request_is_not() -> None:
    client, api = openai.AsyncOpenAI(api_key="k"), ScriptedAPI([http_error(500), turn(text("a"))])
    with api.answering():
        with pytest.raises(openai.InternalServerError):
            await client.responses.create(model="m", input="hi")
        assert (await client.responses.create(model="m", input="hi")).output_text == "a"
    api.assert_played()
