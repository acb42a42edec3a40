"""What a request is answered when it gets nothing: one table, one form, and never a word of what was asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic_core import to_json
from starlette.responses import Response

REFUSALS: Final[Mapping[str, tuple[int, str]]] = {
    "bad_json": (400, "The body is not one JSON object; send UTF-8, each name once, and no NaN"),
    "bad_query": (400, "The query is not understood"),
    "bad_cursor": (400, "The cursor is no sequence number; send the id of the newest event you have, or 0"),
    "cursor_ahead": (400, "The cursor lies beyond the end of this run; is it that of another run?"),
    "bad_key": (400, "The Idempotency-Key is not one of 1 to 255 visible ASCII characters"),
    "bad_request": (400, "A request of this form is not taken"),
    "token_in_url": (400, "A token never stands in a URL; send it as `Authorization: Bearer TOKEN`"),
    "forwarded": (400, "This service takes no forwarded requests; reach it directly"),
    "unauthenticated": (401, "Say who you are; send `Authorization: Bearer TOKEN`"),
    "forbidden": (403, "You may not do this"),
    "cross_origin": (403, "This request comes from another site"),
    "not_found": (404, "There is no such run or tool execution; check the id"),
    "unknown_interaction": (404, "This run asked no such question; look at its snapshot"),
    "no_such_path": (404, "There is nothing here; runs are at /runs"),
    "method_not_allowed": (405, "This path does not take this method"),
    "slow_body": (408, "The body did not arrive in time; send it again"),
    "busy": (409, "Another run of the same conversation is running; wait for its end"),
    "key_reused": (409, "The Idempotency-Key was used for another request; use a new one"),
    "already_answered": (409, "Somebody answered this first"),
    "not_waiting": (409, "The run does not wait for this answer (any more)"),
    "expired": (409, "The time to answer this is over; it was resolved as expired"),
    "not_allowed": (403, "Others may answer this; ask one of them"),
    "answer_missing": (422, "This is approved with a text that answers it; give one"),
    "answer_unexpected": (422, "This takes no such text or arguments; leave them out"),
    "answer_too_long": (422, "The text, the reason or the arguments are too long; shorten them"),
    "not_an_option": (422, "The text is none of the options that are offered; choose one of them"),
    "not_editable": (409, "The arguments of this call cannot be edited; approve it as it is, or reject it"),
    "arguments_not_object": (422, "The arguments are not one JSON object"),
    "arguments_unknown": (422, "The tool has no arguments of these names"),
    "arguments_missing": (422, "The tool needs arguments of these names too"),
    "not_shown": (409, "What this would approve was not shown here; approve it where its details are, or reject it"),
    "digest_differs": (
        409,
        "The digest is not that of the question; look at what is asked, then answer with its digest",
    ),
    "pruned": (410, "What follows this event is not kept any more; ask without it, and begin anew"),
    "body_too_large": (413, "The body is too large"),
    "wrong_host": (421, "This service is not known under this host name"),
    "not_json": (415, "Send the body as `Content-Type: application/json` in UTF-8, not compressed"),
    "bad_fields": (422, "Some fields do not fit"),
    "too_many_runs": (429, "You have as many runs in flight as you may; wait until one has ended"),
    "too_many_readers": (429, "You read as many feeds as you may; close one"),
    "internal": (500, "Something is wrong here; the log of the service says what"),
    "start_failed": (502, "The application could not start the run"),
    "draining": (503, "This service is about to stop; try again elsewhere, or in a moment"),
    "full": (503, "This service has as many readers as it may; try again in a moment"),
    "not_resumed": (503, "The answer was taken, and the run has not gone on yet; ask again in a moment"),
    "unavailable": (503, "The journal of the runs cannot be reached now; try again in a moment"),
    "authorize_failed": (503, "Whether you may do this could not be found out now; try again in a moment"),
}
"""Code to status and sentence. A code keeps its meaning once released."""

FOR_NOW: Final = frozenset(
    {"too_many_runs", "too_many_readers", "draining", "full", "not_resumed", "unavailable", "authorize_failed"}
)
"""What may be asked again later, so that the answer says when."""
ELSEWHERE_S: Final = 1
"""When to ask again, in seconds, where another node can answer at once."""
HANGS_UP: Final = frozenset({"slow_body", "body_too_large", "draining"})
"""What makes a connection useless: part of a request was left unread, or it leads to a server that is about to stop,
and whoever asks again on it would not reach another one.
"""


class Answer(Response):
    """An answer as strict JSON in UTF-8."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """The bytes of a value; NaN, which is no JSON, is null."""
        return to_json(content, inf_nan_mode="null")


class Refusal(Exception):
    """Ends the handling of a request with an answer from the table.

    ``detail`` is added to the sentence, ``more`` to the error object. Neither may hold what another caller owns.
    """

    def __init__(self, code: str, detail: str = "", *, headers: Mapping[str, str] | None = None, **more: Any) -> None:
        super().__init__(code)
        self.code = code
        self.detail = detail
        self.headers = dict(headers or {})
        self.more = more

    def response(self, retry_after_s: int) -> Response:
        """The answer in the one form that every refusal has."""
        status, sentence = REFUSALS[self.code]
        message = f"{sentence}: {self.detail}" if self.detail else sentence
        headers = dict(self.headers)
        if self.code == "unauthenticated":
            headers["www-authenticate"] = "Bearer"
        if self.code in FOR_NOW:
            headers["retry-after"] = str(ELSEWHERE_S if self.code == "draining" else retry_after_s)
        if self.code in HANGS_UP:
            headers["connection"] = "close"
        return Answer({"error": {"code": self.code, "message": message, **self.more}}, status, headers)
