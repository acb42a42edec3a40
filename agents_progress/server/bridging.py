"""The routes of a bridge: requests of another protocol start and answer runs, and are answered by their streams.

``POST {path}`` starts a run, or answers the questions of one, and streams it. ``GET {path}/{conversation}/stream`` goes
on with the newest run of a conversation; 204 when it is over. ``POST {path}/{conversation}/cancel`` stops it.

A conversation is a client's own text. It is a label of the runs, and is looked up among the caller's own runs alone:
two owners who use the same one never meet.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, Final
from urllib.parse import quote

from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as Connection

from agents_progress import asking
from agents_progress.answers import TEXTS
from agents_progress.bridges.base import Answered, Asked, BadBody, Bridge, Question, question_of
from agents_progress.claim import run_ids_before
from agents_progress.errors import CursorExpired, RunErased, UsageError
from agents_progress.journal.base import RunRow, continued
from agents_progress.server import asked, routes
from agents_progress.server.answering import answered
from agents_progress.server.bodies import json_object
from agents_progress.server.bridge_stream import BridgeStream, Cursor, cursor_of
from agents_progress.server.offered import offered
from agents_progress.server.principal import Action, Gate, Principal
from agents_progress.server.refusals import Refusal
from agents_progress.server.routes import PATHS, Call, Endpoint, Path, RunCall
from agents_progress.server.service import Service
from agents_progress.server.starts import LOOK_S, LOOKS, Starter, Wish, idempotency_key
from agents_progress.stored import view_at, view_of
from agents_progress.view import RunView

LOOKED_AT: Final = 50
"""Runs of one conversation that are read at once, until one of the caller's own is found."""
MOST_ANSWERS: Final = 32
"""Questions that one request answers, at most."""
OWN_PATHS: Final = frozenset({path.split("/")[1] for path in PATHS} | {"livez", "readyz", "page"})
"""First parts of paths that are taken."""

_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)+", re.ASCII)
_CONVERSATION = re.compile(r"(?!\.{1,2}\Z)[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,256}")


class Mounted:
    """One bridge, and what its routes do. Raises :exc:`UsageError` for one that cannot be mounted."""

    def __init__(self, bridge: Bridge) -> None:
        first = bridge.path.split("/")[1:2]
        if not _PATH.fullmatch(bridge.path) or first[0] in OWN_PATHS:
            raise UsageError(
                f"a bridge cannot be at {bridge.path!r:.80}; give a path such as /api/chat, not one of ours"
            )
        (self.offered,) = offered([bridge.chat]).values()
        self._bridge = bridge
        self._label = f"{bridge.name}.conversation"

    @property
    def paths(self) -> Mapping[str, Mapping[str, tuple[Action, Endpoint]]]:
        """Path to method to what the caller must be allowed, and who answers. What more a message or an answer needs is
        known when its body is.
        """
        chat = self._bridge.path
        return {
            chat: {"POST": ("read", self.post)},
            f"{chat}/{{conversation:path}}/stream": {"GET": ("read", self.reconnect)},
            f"{chat}/{{conversation:path}}/cancel": {"POST": ("cancel", self.cancel)},
        }

    # Routes.

    async def post(self, call: Call) -> ASGIApp:
        """``POST {path}``: start or answer, then stream."""
        asked.nothing(call.request)
        wanted = self._asked(await json_object(call.request, call.service.limits))

        async def streamed() -> BridgeStream:
            if wanted.arguments is None:  # whoever answers has what came before, and nothing of what comes then
                found, new = await self._answered(call, wanted), True
            else:
                found, new = await self._started(call, wanted)
            return await self._stream(found, wanted, Cursor(found.row.run_id, 0) if new else None)

        return _counted(call, streamed)

    async def reconnect(self, call: Call) -> ASGIApp:
        """``GET {path}/{conversation}/stream``: after the header ``Last-Event-ID``, or else a run that is not over."""
        asked.nothing(call.request)
        wanted = Asked(_conversation(call), "", None)
        if (cursor := _cursor(call)) is not None:
            found = await self._found(call, "read", wanted.conversation, cursor.run_id)
            if cursor.seq > found.row.seq:
                raise Refusal("cursor_ahead", f"the run is at {found.row.seq}", head=found.row.seq)
        else:
            row = await self._newest(call, wanted.conversation)
            if row is None or not (_is_live(row) or row.status == "waiting"):
                return Response(None, 204)
            found = await self._found(call, "read", wanted.conversation, row.run_id)

        async def streamed() -> BridgeStream:
            return await self._stream(found, wanted, cursor)

        return _counted(call, streamed)

    async def cancel(self, call: Call) -> Response:
        """``POST {path}/{conversation}/cancel``: as a run is cancelled."""
        conversation = _conversation(call)
        row = await self._newest(call, conversation)
        if row is None:
            raise Refusal("not_found")
        return await routes.cancel(await self._found(call, "cancel", conversation, row.run_id))

    # Requests.

    def _asked(self, body: Mapping[str, Any]) -> Asked:
        try:
            wanted = self._bridge.asked(body)
        except BadBody as error:
            raise Refusal("bad_fields", str(error)) from None
        if not _CONVERSATION.fullmatch(wanted.conversation):
            raise Refusal("bad_fields", _CONVERSATION_RULE)
        if (wanted.arguments is None) is not bool(wanted.answers):
            raise Refusal("bad_fields", "a request either brings a message or answers what was asked")
        return wanted

    async def _started(self, call: Call, wanted: Asked) -> tuple[RunCall, bool]:
        """The run that a message leads to: under the same key always the same, be it of the body or of the request."""
        principal = await call.gate.admit(call.request, "start")
        conversation = json.dumps([self._label, wanted.conversation])
        wish = Wish(
            self.offered.name,
            wanted.arguments or {},
            labels={self._label: wanted.conversation},
            conversation=conversation,
        )
        key = wanted.key or idempotency_key(call.request)
        key = None if key is None else json.dumps([conversation, key])
        vacant = partial(self._vacant, call, wanted.conversation)
        row, new = await call.starter.begin(wish, self.offered, principal, key, vacant)
        found = _about(call, principal, row if new else await self._latest(call, row))
        await _readable(found)
        return found, new

    async def _vacant(self, call: Call, conversation: str) -> None:
        """Raise :class:`Refusal` while a run of a conversation is live. One whose log is about to be closed is not."""
        for _ in range(LOOKS):
            row = await self._newest(call, conversation)
            if row is None or row.sealed:
                return
            if _is_live(row):
                break
            await asyncio.sleep(LOOK_S)
        raise Refusal("busy")

    async def _answered(self, call: Call, wanted: Asked) -> RunCall:
        """The run that goes on from what is answered."""
        questions = _questions(wanted.answers)
        (run_id,) = {question.run_id for question in questions}
        found = await self._found(call, "answer", wanted.conversation, run_id)
        await _readable(found)
        given = await _given(found, questions)
        if await answered(call.service, call.starter, found.principal, found.row, given, again=True) is None:
            raise Refusal("not_resumed")
        return replace(found, row=await self._latest(call, found.row))

    async def _stream(self, call: RunCall, wanted: Asked, cursor: Cursor | None) -> BridgeStream:
        service, row = call.service, call.row
        view, earlier = await self._views(call, cursor)
        stream = BridgeStream(
            service.hub,
            self._bridge,
            self._bridge.projection(wanted.conversation, wanted.key, wanted.history),
            view,
            cursor,
            earlier,
            scope=call.principal.scope,
            again=lambda: call.gate.still(call.request, row),
            again_s=service.limits.again_s,
            heartbeat_s=service.limits.heartbeat_s,
            stall_s=service.limits.stall_s,
        )
        stream.headers["content-location"] = self._place(call, wanted.conversation)
        return stream

    async def _views(self, call: RunCall, cursor: Cursor | None) -> tuple[RunView, list[RunView]]:
        """Where a reader joins, and the runs that this one continues, as far as there are any still."""
        journal, run_id, scope = call.service.journal, call.row.run_id, call.principal.scope
        try:
            if cursor is None:
                view = await view_of(journal, run_id, scope)
            else:
                view = await view_at(journal, run_id, cursor.joins_at, scope)
                await journal.read(run_id, view.seq, 1, scope=scope)
        except CursorExpired:
            raise Refusal("pruned") from None
        earlier = list[RunView]()
        for name in run_ids_before(run_id):
            with suppress(RunErased):
                earlier.append(await view_of(journal, name, scope))
        return view, earlier

    def _place(self, call: Call, conversation: str) -> str:
        """Where to go on with a stream, seen from where it was asked for: what a proxy put before that is not known."""
        if call.request.method == "GET":
            return "stream"
        return f"{self._bridge.path.rpartition('/')[2]}/{quote(conversation, safe='')}/stream"

    # Runs.

    async def _found(self, call: Call, action: Action, conversation: str, run_id: str) -> RunCall:
        """A run of the caller's own conversation, of which this may be done."""
        principal, row = await call.gate.find(call.request, action, run_id)
        if row.labels.get(self._label) != conversation or not _owns(principal, row):
            raise Refusal("not_found")
        return _about(call, principal, row)

    async def _newest(self, call: Call, conversation: str) -> RunRow | None:
        journal, labels, before = call.service.journal, {self._label: conversation}, None
        while rows := await journal.runs(labels=labels, before=before, limit=LOOKED_AT, scope=call.principal.scope):
            for row in rows:
                if _owns(call.principal, row):
                    return row
            before = rows[-1].run_id
        return None

    async def _latest(self, call: Call, row: RunRow) -> RunRow:
        """The run that went on from a pause, if this is one that was answered."""
        journal, scope = call.service.journal, call.principal.scope
        later = (await continued(journal, [row], scope)).get(row.run_id)
        return row if later is None else await journal.run(later, scope=scope) or row


def mounted(bridges: Iterable[Bridge]) -> list[Mounted]:
    """Bridges that are to be mounted, each at its own path. Raises :exc:`UsageError`."""
    bridges = sorted(bridges, key=lambda bridge: f"{bridge.path}/")
    for upper, lower in pairwise(bridges):
        if f"{lower.path}/".startswith(f"{upper.path}/"):
            raise UsageError(f"two bridges are at or below {upper.path}; give each a path of its own")
    return [Mounted(bridge) for bridge in bridges]


def bridge_routes(bridges: Iterable[Mounted], service: Service, starter: Starter, gate: Gate) -> list[BaseRoute]:
    """The routes of mounted bridges."""
    return [
        Route(path, Path(methods, service, starter, gate))
        for bridge in bridges
        for path, methods in bridge.paths.items()
    ]


_CONVERSATION_RULE: Final = "the id of a conversation is printable text of 1 to 256 characters, and neither . nor .."


def _conversation(call: Call) -> str:
    given: str = call.request.path_params["conversation"]
    if not _CONVERSATION.fullmatch(given):
        raise Refusal("bad_query", _CONVERSATION_RULE)
    return given


def _cursor(call: Call) -> Cursor | None:
    given = call.request.headers.getlist("last-event-id")
    if not given:
        return None
    cursor = cursor_of(given[0]) if len(given) == 1 else None
    if cursor is None:
        raise Refusal("bad_cursor")
    return cursor


def _questions(answers: Iterable[Answered]) -> dict[Question, Answered]:
    """What is answered, and how. Raises :class:`Refusal`."""
    given: dict[Question, Answered] = {}
    for each in answers:
        question = question_of(each.interaction)
        if question is None:
            raise Refusal("unknown_interaction")
        if given.setdefault(question, each) != each:
            raise Refusal("bad_fields", "a question is answered twice, and differently")
        if "\0" in f"{each.reason or ''}{each.text or ''}":
            raise Refusal("bad_fields", "the text and the reason of an answer are without NUL")
    if len(given) > MOST_ANSWERS or len({question.run_id for question in given}) != 1:
        raise Refusal("bad_fields", f"at most {MOST_ANSWERS} questions are answered together, all of one run")
    return given


async def _given(call: RunCall, questions: Mapping[Question, Answered]) -> list[asking.Answer]:
    """The answers, with the caller as actor. Where an approval takes a text, and the protocol has no place for one, its
    reason is that text. Raises :class:`Refusal` for approving what no bridge shows, whoever offered it.
    """
    view, actor = await view_of(call.service.journal, call.row.run_id, call.principal.scope), call.principal.actor
    given = list[asking.Answer]()
    for (_, name, digest), each in questions.items():
        question, approved = view.interactions.get(name), each.decision == "approved"
        if approved and question is not None and not question.approvable:
            raise Refusal("not_shown")
        text, reason = each.text, each.reason
        if approved and text is None and question is not None and TEXTS.get(question.kind, "refused") != "refused":
            text, reason = reason, None
        given.append(asking.Answer(name, each.decision, actor, reason or None, digest, each.arguments, text or None))
    return given


def _is_live(row: RunRow) -> bool:
    """Whether there is more to come that a reader waits for: a verdict, too."""
    return not row.sealed and (not row.standing.ended or row.status == "checking")


def _owns(principal: Principal, row: RunRow) -> bool:
    return (row.origin.owner, row.origin.tenant) == (principal.owner, principal.tenant)


def _about(call: Call, principal: Principal, row: RunRow) -> RunCall:
    return RunCall(call.request, call.service, call.starter, call.gate, principal, row)


async def _readable(call: RunCall) -> None:
    """Raise :class:`Refusal` for a run that the caller may not read: a stream shows all of it."""
    if not await call.gate.still(call.request, call.row):
        raise Refusal("forbidden")


def _counted(call: Call, streamed: Callable[[], Awaitable[BridgeStream]]) -> ASGIApp:
    """Counts the reader before anything is done for it, and for as long as it reads."""
    once = [streamed]  # what it holds, all of a client's messages perhaps, is let go before a stream that may live long

    async def app(connection: Connection, receive: Receive, send: Send) -> None:
        with call.service.reader(call.principal.account):
            stream = await once.pop()()
            await stream(connection, receive, send)

    return app
