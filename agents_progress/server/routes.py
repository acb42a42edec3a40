"""The routes, one function each. A GET changes nothing. What a caller may see was settled before these are reached."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Final, Literal, NotRequired, TypeAlias

from pydantic import ConfigDict, JsonValue, StringConstraints, TypeAdapter, ValidationError, with_config
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as Connection
from typing_extensions import TypedDict

from agents_progress import asking
from agents_progress.effects.entry import Entry, is_entry
from agents_progress.effects.ledger import Ledger
from agents_progress.effects.places import kept_beside
from agents_progress.effects.shown import fields as effect_fields
from agents_progress.errors import CursorExpired, RunErased, RunNotFound
from agents_progress.events import is_run_id
from agents_progress.journal.base import RunRow, Scope, continued
from agents_progress.journal.threads import outcome_of
from agents_progress.payloads import CancelMode, Decision
from agents_progress.server import asked
from agents_progress.server.answering import answered
from agents_progress.server.bodies import json_object
from agents_progress.server.offered import named
from agents_progress.server.principal import Action, Gate, Principal
from agents_progress.server.refusals import Answer, Refusal
from agents_progress.server.service import Service
from agents_progress.server.shown import fields, open_call
from agents_progress.server.starts import Starter
from agents_progress.server.stream import EventStream
from agents_progress.stored import view_of

_STRICT: Final = ConfigDict(extra="forbid", strict=True)


@with_config(_STRICT)
class _CancelBody(TypedDict):
    mode: NotRequired[CancelMode]


_Said: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]


@with_config(_STRICT)
class _AnswerBody(TypedDict):
    decision: Literal["approve", "reject"]
    reason: NotRequired[_Said]
    text: NotRequired[_Said]
    arguments: NotRequired[JsonValue]
    digest: NotRequired[Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]]


_CANCEL: Final = TypeAdapter(_CancelBody)
_ANSWER: Final = TypeAdapter(_AnswerBody)
_DECISIONS: Final[Mapping[str, Decision]] = {"approve": "approved", "reject": "rejected"}


@dataclass(frozen=True, slots=True)
class Call:
    """A request of somebody who is known."""

    request: Request
    service: Service
    starter: Starter
    gate: Gate
    principal: Principal


@dataclass(frozen=True, slots=True)
class RunCall(Call):
    """A request about a run that its caller may see."""

    row: RunRow


# Runs.


async def start(call: Call) -> Response:
    """``POST /runs``."""
    asked.nothing(call.request)
    row, new = await call.starter.start(call.request, call.principal)
    later = {} if new else await continued(call.service.journal, [row], call.principal.scope)
    place = f"{call.request.scope.get('root_path', '')}/runs/{row.run_id}"
    return Answer(fields(row, later.get(row.run_id)), 201 if new else 200, {"location": place})


async def list_runs(call: Call) -> Response:
    """``GET /runs``: the newest first."""
    wanted = asked.filters(call.request, call.service.limits.listed)
    journal, scope = call.service.journal, call.principal.scope
    try:
        found = await journal.runs(**asdict(replace(wanted, limit=wanted.limit + 1)), scope=scope)
    except (RunNotFound, RunErased):
        raise Refusal("bad_query", "before is a run that can be seen") from None
    rows = found[: wanted.limit]
    later = await continued(journal, rows, scope)
    return Answer({"runs": [fields(row, later.get(row.run_id)) for row in rows], "older": len(found) > len(rows)})


async def show(call: RunCall) -> Response:
    """``GET /runs/{id}``."""
    asked.nothing(call.request)
    journal, row, scope = call.service.journal, call.row, call.principal.scope
    call.service.looked_at(row.run_id)
    busy_with = None
    if row.standing.ended:
        call.service.views.drop(row.run_id)
    else:
        busy_with = open_call(row, await call.service.views.of(row.run_id, scope))
    later = await continued(journal, [row], scope)
    return Answer({**fields(row, later.get(row.run_id)), "open_call": busy_with})


async def snapshot(call: RunCall) -> Response:
    """``GET /runs/{id}/snapshot``: the view of everything stored so far."""
    asked.nothing(call.request)
    call.service.looked_at(call.row.run_id)
    view = await view_of(call.service.journal, call.row.run_id, call.principal.scope)
    headers = {"etag": f'"{view.seq}"', "cache-control": "private, no-cache"}
    known = {tag.strip().removeprefix("W/") for tag in call.request.headers.get("if-none-match", "").split(",")}
    if headers["etag"] in known:
        return Response(None, 304, headers)
    return Answer(view.snapshot(), headers=headers)


# Feeds.


async def events(call: RunCall) -> ASGIApp:
    """``GET /runs/{id}/events``: the envelopes after a cursor, those still to come included."""
    position, row, service = asked.position(call.request), call.row, call.service
    if position.after_seq > row.seq:
        raise Refusal("cursor_ahead", f"the run is at {row.seq}", head=row.seq)
    if row.sealed and position.after_seq == row.seq:
        return Response(None, 204)
    scope, first = call.principal.scope, None
    if position.snapshot:
        # As it is stored: folding what came after it would hold the first byte up, and the reader folds that anyway.
        first = await service.journal.snapshot(row.run_id, scope=scope)
        first = first or (await view_of(service.journal, row.run_id, scope)).snapshot()
    else:
        try:
            await service.journal.read(row.run_id, position.after_seq, 1, scope=scope)
        except CursorExpired as pruned:
            first = pruned.snapshot
    stream = EventStream(
        service.hub,
        row.run_id,
        position.after_seq,
        snapshot=first,
        scope=scope,
        again=lambda: call.gate.still(call.request, row),
        again_s=service.limits.again_s,
        heartbeat_s=service.limits.heartbeat_s,
        stall_s=service.limits.stall_s,
    )

    async def counted(connection: Connection, receive: Receive, send: Send) -> None:
        with service.reader(call.principal.account):
            await stream(connection, receive, send)

    return counted


# Control.


async def cancel(call: RunCall) -> Response:
    """``POST /runs/{id}/cancel``: asks; that the run has stopped is said by its log alone."""
    body = await _body(call, _CANCEL)
    mode, actor, scope = body.get("mode", "immediate"), call.principal.actor, call.principal.scope
    journal, within = call.service.journal, call.service.limits.answer_s
    return Answer({"answer": await asking.cancel(journal, call.row, mode, actor, scope, within=within)}, 202)


async def answer(call: RunCall) -> Response:
    """``POST /runs/{id}/interactions/{iid}``: of many answers one is used."""
    interaction_id = call.request.path_params["interaction_id"]
    if not is_run_id(interaction_id):
        raise Refusal("unknown_interaction")
    body = await _body(call, _ANSWER)
    given = asking.Answer(
        interaction_id,
        _DECISIONS[body["decision"]],
        call.principal.actor,
        reason=body.get("reason") or None,
        digest=body.get("digest"),
        arguments=body.get("arguments"),
        text=body.get("text") or None,
    )
    later = await answered(call.service, call.starter, call.principal, call.row, [given])
    return Answer({"answer": "accepted", "continued_as": later}, 202)


# Tools that act once.


async def tool_execution(call: Call) -> Response:
    """``GET /tool-executions/{key}``: what the ledger beside the journal knows of an effect.

    Whoever may read the run that had it may read it. One that no run had belongs to nobody: an operator alone sees it.
    """
    asked.nothing(call.request)
    entry, ledger = call.request.path_params["key"], kept_beside(call.service.journal)
    if ledger is None or not is_entry(entry):
        raise Refusal("not_found")
    found, now = await outcome_of(ledger.submit(_looked, ledger, entry, call.principal.scope))
    if found is None or found.erased:
        raise Refusal("not_found")
    if found.effect.run_id is not None:
        await call.gate.find(call.request, "read", found.effect.run_id)
    return Answer(effect_fields(found, now))


def _looked(ledger: Ledger, entry: str, scope: Scope) -> tuple[Entry | None, float]:
    """Without making a ledger where there is none."""
    return ledger.look(entry, scope=scope) if ledger.exists() else (None, 0.0)


async def _body(call: Call, shape: TypeAdapter[Any]) -> Any:
    asked.nothing(call.request)
    given = await json_object(call.request, call.service.limits)
    try:
        return shape.validate_python(given)
    except ValidationError as error:
        raise Refusal("bad_fields", named(error)) from None


# The table.

Endpoint: TypeAlias = Callable[[Any], Awaitable[ASGIApp]]

PATHS: Final[Mapping[str, Mapping[str, tuple[Action, Endpoint]]]] = {
    "/runs": {"GET": ("list", list_runs), "POST": ("start", start)},
    "/runs/{run_id}": {"GET": ("read", show)},
    "/runs/{run_id}/events": {"GET": ("read", events)},
    "/runs/{run_id}/snapshot": {"GET": ("read", snapshot)},
    "/runs/{run_id}/cancel": {"POST": ("cancel", cancel)},
    "/runs/{run_id}/interactions/{interaction_id}": {"POST": ("answer", answer)},
    "/tool-executions/{key}": {"GET": ("read", tool_execution)},
}
"""Path to method to what the caller must be allowed, and who answers."""


class Path:
    """One path of the table, as an ASGI app."""

    def __init__(
        self, methods: Mapping[str, tuple[Action, Endpoint]], service: Service, starter: Starter, gate: Gate
    ) -> None:
        self._methods = methods
        self._service = service
        self._starter = starter
        self._gate = gate

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        """Find out who asks, and about which run, then answer."""
        if scope["method"] not in self._methods:
            raise Refusal("method_not_allowed", headers={"allow": ", ".join(self._methods)})
        action, endpoint = self._methods[scope["method"]]
        request = Request(scope, receive)
        run_id = request.path_params.get("run_id")
        shared = request, self._service, self._starter, self._gate
        if run_id is None:
            response = await endpoint(Call(*shared, await self._gate.admit(request, action)))
        else:
            response = await endpoint(RunCall(*shared, *await self._gate.find(request, action, run_id)))
        await response(scope, receive, send)


class Probe:
    """Says yes or no to whoever asks, and nothing else: for what watches over the process."""

    def __init__(self, name: str, holds: Callable[[], Awaitable[bool]]) -> None:
        self._name = name
        self._holds = holds

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        if scope["method"] not in ("GET", "HEAD"):
            raise Refusal("method_not_allowed", headers={"allow": "GET, HEAD"})
        holds = await self._holds()
        await Answer({self._name: holds}, 200 if holds else 503)(scope, receive, send)
