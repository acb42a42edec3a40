"""What the tests of runs share: scripted agents, models that play prebuilt events, and logs read back strictly."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from agents import Agent, Runner, RunResultStreaming, function_tool
from agents.models.interface import Model
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseCreatedEvent,
    ResponseFunctionCallArgumentsDeltaEvent,
    ResponseFunctionToolCall,
    ResponseOutputItemDoneEvent,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
)

from agents_progress import Disclosure, Envelope, RunView, progress
from agents_progress.journal import Journal
from agents_progress.payloads import ENDINGS
from agents_progress.run import Run
from agents_progress.testing import ScriptedAPI, Turn


def scripted(*turns: Turn, name: str = "A", **fields: Any) -> Agent[Any]:
    """An agent whose real client gets these turns as answers."""
    return Agent(name=name, **{"model": ScriptedAPI(turns).model(), **fields})


def started(agent: Agent[Any], *, hooks: Any = None, session: Any = None, max_turns: int = 10, **options: Any) -> Run:
    """A run of an agent, started through the decorator."""

    @progress(**options)
    def work(question: str) -> RunResultStreaming:
        return Runner.run_streamed(agent, question, hooks=hooks, session=session, max_turns=max_turns)

    return work("hi")


@dataclass(frozen=True)
class Log:
    """The envelopes of one run, and what a strict reader makes of their bytes."""

    envelopes: Sequence[Envelope]

    @property
    def types(self) -> list[str]:
        return [envelope.type for envelope in self.envelopes]

    @property
    def shape(self) -> list[str]:
        """The types, without the text and the counts between them."""
        return [type_ for type_ in self.types if not type_.startswith(("text.", "usage."))]

    def of(self, type_: str) -> list[dict[str, Any]]:
        return [envelope.payload for envelope in self.envelopes if envelope.type == type_]

    @property
    def endings(self) -> list[Envelope]:
        return [envelope for envelope in self.envelopes if envelope.type in ENDINGS]

    @property
    def ending(self) -> dict[str, Any]:
        (envelope,) = self.endings
        return envelope.payload

    @property
    def view(self) -> RunView:
        """Folded from the bytes: every payload is validated on the way."""
        view = RunView(self.envelopes[0].run_id)
        for envelope in self.envelopes:
            view.feed(envelope.to_json())
        return view

    @property
    def texts(self) -> list[str]:
        return [message.text for message in self.view.messages]


async def log_of(run: Run) -> Log:
    """Everything a reader of the handle gets, to the end of the log."""
    return Log([envelope async for envelope in run])


async def stored(journal: Journal, run_id: str) -> Log:
    """Everything the journal holds of a run."""
    return Log(await journal.read(run_id, limit=1_000_000))


async def reach(run: Run, type_: str) -> Envelope:
    """Read a run up to the first envelope of a type, and leave."""
    async for envelope in run:
        if envelope.type == type_:
            return envelope
    raise AssertionError(f"the log ended without {type_}")


def on(type_: str, do: Callable[[], object]) -> Callable[[Envelope], None]:
    """A sink that does something at each envelope of a type."""

    def sink(envelope: Envelope) -> None:
        if envelope.type == type_:
            do()

    return sink


def strict(body: bytes) -> Any:
    """JSON as browsers read it: NaN and its kin are refused."""

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is no JSON")

    return json.loads(body, parse_constant=refuse)


async def soon(holds: Callable[[], object], limit: float = 5.0) -> None:
    """Wait for something that happens beside us and says nothing when it does."""
    async with asyncio.timeout(limit):
        while not holds():
            await asyncio.sleep(0)


class Prebuilt(Model):
    """A model that plays one list of events a call, or raises; nothing is encoded or parsed on the way.

    None among the events lets the loop's other tasks have their turn, as a real connection does.
    """

    def __init__(self, *plays: Iterable[Any] | Exception) -> None:
        self._plays = iter(plays)

    async def get_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("this model only streams")

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        play = next(self._plays)
        if isinstance(play, Exception):
            raise play
        for event in play:
            if event is None:
                await asyncio.sleep(0)
            else:
                yield event


def response(*output: Any, usage: Any = None) -> Response:
    return Response.model_construct(
        id="resp", created_at=0.0, model="m", object="response", output=list(output), status="completed", usage=usage
    )


def response_created() -> Any:
    return ResponseCreatedEvent.model_construct(response=response(), sequence_number=0, type="response.created")


def response_completed(*output: Any, usage: Any = None) -> Any:
    return ResponseCompletedEvent.model_construct(
        response=response(*output, usage=usage), sequence_number=0, type="response.completed"
    )


def message_item(text: str) -> ResponseOutputMessage:
    part = ResponseOutputText.model_construct(annotations=[], text=text, type="output_text", logprobs=[])
    return ResponseOutputMessage.model_construct(
        id="msg_1", content=[part], role="assistant", status="completed", type="message"
    )


def call_item(name: str, arguments: str, call_id: Any, item_id: str = "fc_1") -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall.model_construct(
        id=item_id, call_id=call_id, name=name, arguments=arguments, type="function_call", status="completed"
    )


def item_done(item: Any, place: int = 0) -> Any:
    return ResponseOutputItemDoneEvent.model_construct(
        item=item, output_index=place, sequence_number=0, type="response.output_item.done"
    )


def text_delta(text: str) -> Any:
    return ResponseTextDeltaEvent.model_construct(
        content_index=0,
        delta=text,
        item_id="msg_1",
        logprobs=[],
        output_index=0,
        sequence_number=0,
        type="response.output_text.delta",
    )


def arguments_delta(text: str) -> Any:
    return ResponseFunctionCallArgumentsDeltaEvent.model_construct(
        delta=text, item_id="fc_1", output_index=0, sequence_number=0, type="response.function_call_arguments.delta"
    )


OPEN = Disclosure(arguments="all", outputs="all")


@function_tool
def add() -> str:
    return "r1"
