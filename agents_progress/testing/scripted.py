"""A scripted OpenAI API: the real client and the real SDK models, over a transport that plays what a test wrote.

What is faked is the wire and nothing above it, so that everything an application sees (events, retries, errors, how a
run ends) is what the SDK makes of such a stream, in whichever version is installed.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from . import chat_wire, responses_wire
from .turns import JSON, Ending, Turn

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
        self._taken = 0
        self._overrun = False
        self.requests: list[JSON] = []
        """The JSON bodies received, in order, those beyond the script included."""

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

    def assert_played(self) -> None:
        """Raise `ScriptNotPlayed` unless the requests asked for every turn and for none beyond the last."""
        if self._overrun:
            raise ScriptNotPlayed(self._beyond(len(self.requests)))
        left = sum(1 for _ in self._turns)
        if left:
            raise ScriptNotPlayed(f"{_turns(left)} of the script were not asked for; {self._taken} were played")

    def _answer(self, path: str, body: JSON) -> httpx.Response:
        from . import transport

        self.requests.append(copy.deepcopy(body))
        number = len(self.requests)
        turn = next(self._turns, None)
        if turn is None:
            self._overrun = True
            return _impossible(self._beyond(number))
        self._taken += 1
        if not turn.reachable:
            raise transport.unreachable()
        if turn.error is not None:
            return transport.refused(turn.http_status, turn.error)
        return _rendered(path, turn, number, body)

    def _beyond(self, number: int) -> str:
        return f"The script has {_turns(self._taken)}, and this is request {number}: there is no turn to answer it."


def _rendered(path: str, turn: Turn, number: int, body: JSON) -> httpx.Response:
    from . import transport

    streamed = bool(body.get("stream"))
    if not streamed and (error := _error(turn)) is not None:
        return transport.refused(500, error)  # a plain answer has no place for an error event
    if path.endswith("/responses"):
        if streamed:
            return transport.stream(responses_wire.events(turn, number, body), responses_wire.encode)
        return transport.plain(responses_wire.body(turn, number, body))
    if path.endswith("/chat/completions"):
        reason = chat_wire.unplayable(turn)
        if reason is not None:
            return _impossible(f"Turn {number} has no chat form: {reason}.")
        if streamed:
            return transport.stream(chat_wire.events(turn, number, body), chat_wire.encode)
        return transport.plain(chat_wire.body(turn, number, body))
    return _impossible(f"The scripted API answers /responses and /chat/completions, not {path}.")


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
