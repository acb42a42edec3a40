"""A scripted OpenAI API: the real client and the real SDK models, over a transport that plays what a test wrote.

What is faked is the wire and nothing above it, so that everything an application sees (events, retries, errors, how a
run ends) is what the SDK makes of such a stream, in whichever version is installed.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from . import chat_wire, responses_wire
from .steps import JSON, Cancel, Delivery, Frame, Step
from .turns import Ending, Turn

if TYPE_CHECKING:
    import httpx2 as httpx
    from agents import OpenAIChatCompletionsModel, OpenAIResponsesModel
    from openai import AsyncOpenAI


class ScriptNotPlayed(AssertionError):
    """The requests of a run and the turns of its script do not match."""


class ScriptedAPI:
    """An API that answers the n-th request with the n-th turn of a script.

    Any iterable of turns will do, also an endless one (`itertools.repeat(turn(...))`). A request beyond the script is
    answered with HTTP 400 and a sentence that says so, and `assert_played` raises. No socket is opened.

    Turns are taken in the order in which requests arrive: agents that call the model at the same time should each
    have an API of their own.

    The client's base URL is that of OpenAI, because the SDK is stricter there: a chat stream that stops without a
    finish reason is an error from OpenAI and an answer from anyone else (openai-agents 0.23,
    `ChatCmplHelpers.is_openai`). Give `base_url` to stand for another provider.
    """

    def __init__(self, turns: Iterable[Turn]) -> None:
        self._turns = iter(turns)
        self._counted = isinstance(turns, Sized)
        self._overrun = False
        self.taken = 0
        """How many turns were asked for."""
        self.requests: list[JSON] = []
        """The JSON bodies received, in order, those beyond the script included."""
        self.frames: list[int] = []
        """How many frames of a stream were sent in answer to each of them."""
        self.cancelled: Callable[[Cancel], object] = _nobody
        """Does what a `cancel()` in the script asks for; `run_script` puts its run here."""

    def client(self, **options: Any) -> AsyncOpenAI:
        """The real client over this script, without retries of its own unless `max_retries` is given."""
        from openai import AsyncOpenAI

        from . import transport

        given = {"api_key": "scripted", "base_url": "https://api.openai.com/v1", "max_retries": 0, **options}
        return AsyncOpenAI(http_client=transport.client(self._answer), **given)

    def model(self, name: str = "scripted", **options: Any) -> OpenAIResponsesModel:
        """The SDK's Responses model over this script; `options` go to `client`."""
        from agents import OpenAIResponsesModel

        return OpenAIResponsesModel(name, self.client(**options))

    def chat_model(self, name: str = "scripted", **options: Any) -> OpenAIChatCompletionsModel:
        """The SDK's Chat Completions model over this script; `options` go to `client`."""
        from agents import OpenAIChatCompletionsModel

        return OpenAIChatCompletionsModel(name, self.client(**options))

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Answer what any client in this process asks of a model, so that the code under test stays as it is.

        Covers every asynchronous client over httpx or httpx2, to any host; requests that ask no model go where they
        went. A client that tries again by itself is refused the same until it gives up, and takes no further turn.
        """
        from . import transport

        with transport.taken_over(self._answer):
            yield

    def assert_played(self) -> None:
        """Raise `ScriptNotPlayed` unless the requests asked for every turn and for none beyond the last.

        Of a script without a length, such as a generator, nothing has to be left.
        """
        left = self.unplayed()
        if left is not None:
            raise ScriptNotPlayed(left)

    def unplayed(self) -> str | None:
        """How the requests and the script do not match, None where they do."""
        if self._overrun:
            return self._beyond(len(self.requests))
        if not self._counted:
            return None
        remaining = list(self._turns)
        self._turns = iter(remaining)
        if not remaining:
            return None
        return f"{_turns(len(remaining))} of the script not asked for; {self.taken} played"

    def _answer(self, path: str, body: JSON) -> httpx.Response:
        from . import transport

        self.requests.append(copy.deepcopy(body))
        self.frames.append(0)
        number = len(self.requests)
        turn = next(self._turns, None)
        if turn is None:
            self._overrun = True
            return _impossible(self._beyond(number))
        self.taken += 1
        if not turn.reachable:
            raise transport.unreachable()
        if turn.error is not None:
            return transport.refused(turn.http_status, turn.error)
        return self._rendered(path, turn, number, body)

    def _rendered(self, path: str, turn: Turn, number: int, body: JSON) -> httpx.Response:
        from . import transport

        streamed = bool(body.get("stream"))
        if not streamed and (error := _error(turn)) is not None:
            return transport.refused(500, error)  # a plain answer has no place for an error event
        chat = path.endswith("/chat/completions")
        if not chat and not path.endswith("/responses"):
            return _impossible(f"The scripted API answers /responses and /chat/completions, not {path}.")
        reason = chat_wire.unplayable(turn) if chat else None
        if reason is not None:
            return _impossible(f"Turn {number} has no chat form: {reason}.")
        wire = chat_wire if chat else responses_wire
        if not streamed:
            return transport.plain(self._cancelling(wire.body(turn, number, body)))
        frames = wire.events(turn, number, body)
        stopped = frames if turn.stop is None else turn.stop.of(frames)
        return transport.stream(self._counting(self._cancelling(stopped), number), wire.encode)

    def _cancelling(self, frames: Iterator[Frame | Step]) -> Iterator[Frame | Delivery]:
        """The frames and steps, without the cancels, which happen as they are reached."""
        for frame in frames:
            if isinstance(frame, Cancel):
                self.cancelled(frame)
            else:
                yield frame

    def _counting(self, frames: Iterator[Frame | Delivery], number: int) -> Iterator[Frame | Delivery]:
        """The frames, counted as they are taken."""
        for frame in frames:
            self.frames[number - 1] += isinstance(frame, dict | str)
            yield frame

    def _beyond(self, number: int) -> str:
        return f"The script has {_turns(self.taken)}, and this is request {number}: there is no turn to answer it."


def _nobody(step: Cancel) -> None:
    raise ScriptNotPlayed("a script with a cancel() in it is played by run_script; cancel a run of your own yourself")


def _error(turn: Turn) -> JSON | None:
    for piece in turn.pieces:
        if isinstance(piece, Ending) and piece.kind == "error":
            return {"message": piece.message, "type": "server_error", "param": None, "code": piece.code}
    return None


def _impossible(sentence: str) -> httpx.Response:
    # HTTP 400, because clients do not retry it and its message reaches the person: an exception raised
    # here would become "Connection error.".
    from . import transport

    body = {"message": sentence, "type": "invalid_request_error", "param": None, "code": "script_not_played"}
    return transport.refused(400, body)


def _turns(number: int) -> str:
    return f"{number} turn" if number == 1 else f"{number} turns"
