"""The bridge to the AI SDK: `useChat` and everything else that reads a UI message stream (version 1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, get_args

from pydantic_core import to_json

from agents_progress.bridges.base import Asked, Event, message_parameter
from agents_progress.bridges.vercel_body import ANSWERS, answers_of, conversation_of, key_of, text_of
from agents_progress.bridges.vercel_parts import Major
from agents_progress.bridges.vercel_stream import VercelStream
from agents_progress.errors import UsageError
from agents_progress.messages import Language, refuse_unspoken

if TYPE_CHECKING:
    from agents_progress.decorate import Decorated

__all__ = ["Vercel"]


class Vercel:
    """Serves the runs of one function to the AI SDK's chat transports; `runs_app(bridges=[...])` mounts it.

    ``chat`` is the decorated function that a message starts. ``major`` is that of the client's `ai` package, 6 or 7: a
    client fails for a part that it does not know. ``path`` is where the transport points. ``arguments`` makes the
    function's arguments from a request's body; without it the text of the user's last message is given to the parameter
    `message` or `messages`, else to the only required one. ``language`` is that of error texts.

    Raises :exc:`UsageError` for another major or language, for a path that does not begin with ``/``, and without
    ``arguments`` for a function that does not fit.
    """

    name: Final = "vercel"
    headers: Final[Mapping[str, str]] = {"x-vercel-ai-ui-message-stream": "v1"}
    last: Final = b"data: [DONE]\n\n"

    def __init__(
        self,
        chat: Decorated[...],
        *,
        major: Major,
        path: str = "/api/chat",
        arguments: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None,
        language: Language = "en",
    ) -> None:
        if major not in get_args(Major):
            raise UsageError("the majors of `ai` that are known here are 6 and 7; name the one that the client has")
        refuse_unspoken(language)
        if not path.startswith("/") or path.endswith("/"):
            raise UsageError("a path begins with / and does not end with one, such as /api/chat")
        self.chat = chat
        self.path = path
        self._major: Major = major
        self._language: Language = language
        self._arguments = arguments
        self._parameter = None if arguments is not None else message_parameter(chat)

    def asked(self, body: Mapping[str, Any]) -> Asked:
        """What a request asks for: a run on a message, or answers to what a paused one asks. Raises :exc:`BadBody`."""
        conversation, answers = conversation_of(body), answers_of(body)
        arguments = None if answers else self._arguments_of(body)
        return Asked(conversation, key_of(body, answers), arguments, answers)

    def projection(self, conversation: str, key: str, history: Sequence[Mapping[str, Any]] = ()) -> VercelStream:
        """A stream for one reader. One that answered has the message, and its run goes on in it."""
        return VercelStream(self._major, self._language, continues=key.startswith(ANSWERS))

    def frame(self, event: Event) -> bytes:
        """One part as a frame."""
        return b"data: %b\n\n" % to_json(event, inf_nan_mode="null")

    def _arguments_of(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        text = text_of(body) if self._arguments is None else ""
        return {str(self._parameter): text} if self._arguments is None else self._arguments(body)
