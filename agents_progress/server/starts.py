"""Starts: what ``POST /runs`` may ask for, and the one run that comes of a wish, however often it is made."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from inspect import BoundArguments
from typing import Annotated, Any, Final, TypeAlias

from pydantic import ConfigDict, StringConstraints, TypeAdapter, ValidationError, with_config
from starlette.requests import Request
from typing_extensions import TypedDict

from agents_progress import telemetry
from agents_progress.clock import Clock
from agents_progress.decorate import Decorated
from agents_progress.errors import AlreadyEnded, AppendConflict, JournalError, LeaseHeld, RunErased
from agents_progress.events import RUN_ID_PATTERN
from agents_progress.journal.base import RunRow
from agents_progress.options import Given
from agents_progress.run import Run
from agents_progress.server.abandoned import Abandoned
from agents_progress.server.asked import MOST_LABELS
from agents_progress.server.bodies import json_object
from agents_progress.server.offered import Offered, named
from agents_progress.server.principal import Principal
from agents_progress.server.refusals import Refusal
from agents_progress.server.service import Service
from agents_progress.server.shown import START_LABEL

logger = logging.getLogger("agents_progress")

LOOKS: Final = 20
LOOK_S: Final = 0.05
"""How often the run of the same request is looked for when it was quicker, and the pause between, in seconds."""
STARTING_S: Final = 5.0
"""How long a start waits for the application's function, in seconds; the run goes on starting after that."""

_KEY = re.compile(r"[\x21-\x7e]{1,255}", re.ASCII)
_PRINTABLE: Final = r"^[^\x00-\x1f\x7f-\x9f]*$"

_LabelName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._/-]{1,64}$")]
_LabelText = Annotated[str, StringConstraints(pattern=_PRINTABLE, max_length=256)]


@with_config(ConfigDict(extra="forbid", strict=True))
class _Body(TypedDict, total=False):
    function: str
    arguments: dict[str, Any]
    task_id: Annotated[str, StringConstraints(pattern=RUN_ID_PATTERN)]
    labels: dict[_LabelName, _LabelText]
    title: Annotated[str, StringConstraints(pattern=_PRINTABLE, min_length=1, max_length=200)]


_BODY: Final = TypeAdapter(_Body)


@dataclass(frozen=True, slots=True)
class Wish:
    """A run that somebody asks for."""

    function: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    task_id: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    title: str | None = None
    conversation: str | None = None
    """The key of which one run is live where the application's ``exclusive`` gives none."""

    @property
    def digest(self) -> str:
        """The same for the same wish, whatever order its fields came in."""
        return hashlib.sha256(
            _canonical([self.function, self.arguments, self.task_id, self.labels, self.title])
        ).hexdigest()


Exclusive: TypeAlias = Callable[[Principal, Wish], str | None]
"""``exclusive(principal, wish)`` gives the key of the conversation that a run belongs to, None for one by itself."""


def wish(body: Mapping[str, Any], functions: Mapping[str, Offered]) -> tuple[Wish, Offered]:
    """What a body asks for, with the function it names. Raises :class:`Refusal`, which names fields and no values."""
    if "run_id" in body:
        raise Refusal("bad_fields", "run_id: ids are given by the service; send an Idempotency-Key to start once")
    try:
        given = _BODY.validate_python(body)
    except ValidationError as error:
        raise Refusal("bad_fields", named(error)) from None
    labels = given.get("labels", {})
    if len(labels) > MOST_LABELS or START_LABEL in labels:
        raise Refusal("bad_fields", f"labels: at most {MOST_LABELS}, and none that the service keeps for itself")
    name = given.get("function", next(iter(functions)) if len(functions) == 1 else None)
    if name is None or name not in functions:
        raise Refusal(
            "bad_fields", f"function: one of {', '.join(functions) or 'none, for this service starts no runs'}"
        )
    wanted = Wish(name, given.get("arguments", {}), given.get("task_id"), labels, given.get("title"))
    return wanted, functions[name]


def idempotency_key(request: Request) -> str | None:
    """The key of a request, None when it has none. Raises :class:`Refusal` for one that is malformed or not alone."""
    keys = request.headers.getlist("idempotency-key")
    if not keys:
        return None
    if len(keys) > 1 or not _KEY.fullmatch(keys[0]):
        raise Refusal("bad_key")
    return keys[0]


def keyed_run_id(principal: Principal, function: str, key: str) -> str:
    """The id of the one run that a caller may start of a function under a key, the same on every node."""
    return hashlib.sha256(_canonical([principal.tenant, principal.owner, function, key])).hexdigest()[:32]


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=dict).encode()


def _bound(chosen: Offered, wanted: Wish) -> BoundArguments:
    try:
        return chosen.bind(wanted.arguments)
    except Refusal:
        raise
    except Exception as error:  # noqa: BLE001 - a validator of the application's own
        raise _failed(error) from None


class Starter:
    """Starts what is offered, in this process. ``bridged`` are functions that other routes start."""

    def __init__(
        self,
        service: Service,
        functions: Mapping[str, Offered],
        exclusive: Exclusive | None,
        bridged: Iterable[Offered] = (),
    ) -> None:
        self._service = service
        self._functions = functions
        self._exclusive = exclusive
        self.abandoned = Abandoned(service, (*bridged, *functions.values()))

    async def start(self, request: Request, principal: Principal) -> tuple[RunRow, bool]:
        """The run that a request asks for, and whether it is a new one. Raises :class:`Refusal`."""
        key = idempotency_key(request)
        wanted, chosen = wish(await json_object(request, self._service.limits), self._functions)
        return await self.begin(wanted, chosen, principal, key)

    async def begin(
        self,
        wanted: Wish,
        chosen: Offered,
        principal: Principal,
        key: str | None,
        vacant: Callable[[], Awaitable[None]] | None = None,
    ) -> tuple[RunRow, bool]:
        """The run that a wish leads to, and whether it is a new one: under a key there is one. Raises :class:`Refusal`.

        ``vacant`` is asked before a new one is started, and raises when there is no room for it.
        """
        call = _bound(chosen, wanted)
        run_id = Clock().new_id() if key is None else keyed_run_id(principal, wanted.function, key)
        known = None if key is None else await self._known(run_id, wanted, principal)
        if known is None:
            if vacant is not None:
                await vacant()
            try:
                return await self._new(run_id, wanted, chosen, call, principal), True
            except (AlreadyEnded, AppendConflict, LeaseHeld):
                known = None if key is None else await self._soon_known(run_id, wanted, principal)
            except RunErased:
                raise Refusal("key_reused", "what it started was erased") from None
        if known is None:  # the run that is in the way is another one, of the same conversation
            raise Refusal("busy")
        return known, False

    async def _soon_known(self, run_id: str, wanted: Wish, principal: Principal) -> RunRow | None:
        """The run of the same request that was quicker, here or on another node: it is about to be known."""
        for _ in range(LOOKS):
            if (known := await self._known(run_id, wanted, principal)) is not None:
                return known
            await asyncio.sleep(LOOK_S)
        return None

    async def _known(self, run_id: str, wanted: Wish, principal: Principal) -> RunRow | None:
        """The run that was started under this key, if it was for the same wish."""
        row = await self._service.journal.run(run_id, scope=principal.scope)
        if row is not None and row.labels.get(START_LABEL) != wanted.digest:
            raise Refusal("key_reused")
        return row

    async def _new(
        self, run_id: str, wanted: Wish, chosen: Offered, call: BoundArguments, principal: Principal
    ) -> RunRow:
        """A run that is started here."""
        decorated = chosen.decorated.using(**self._options(run_id, wanted, chosen, principal))
        self._service.say_when_lifeless()
        self._service.take_place(principal.account)
        try:
            run = await self._begun(decorated, call, run_id)
        except BaseException:
            self._service.leave_place(principal.account)
            raise
        self._service.hold(run, principal.account)
        await self._settled(run)
        row = await self._service.journal.run(run_id, scope=principal.scope)
        if row is None:
            raise Refusal("not_found")
        return row

    def _options(self, run_id: str, wanted: Wish, chosen: Offered, principal: Principal) -> Given:
        given: Given = {
            "journal": self._service.journal,
            "run_id": run_id,
            "owner": principal.owner,
            "tenant": principal.tenant,
            "labels": {**wanted.labels, START_LABEL: wanted.digest, **chosen.decorated.options.labels},
        }
        if wanted.task_id is not None:
            given["task_id"] = wanted.task_id
        if wanted.title is not None:
            given["title"] = wanted.title
        key = self._conversation(wanted, principal)
        if key is not None:
            given["exclusive"] = json.dumps([principal.owner, key])
        return given

    def _conversation(self, wanted: Wish, principal: Principal) -> str | None:
        try:
            key = None if self._exclusive is None else self._exclusive(principal, wanted)
        except Exception as error:  # noqa: BLE001 - the application's own
            raise _failed(error) from None
        return wanted.conversation if key is None else key

    async def _begun(self, decorated: Decorated[...], call: BoundArguments, run_id: str) -> Run:
        """The run, taken in hand."""
        try:
            return await decorated.start(*call.args, **call.kwargs)
        except JournalError:
            raise
        except Exception as error:  # noqa: BLE001 - the application's own, whose text may be private
            raise _failed(error, run_id) from None

    async def _settled(self, run: Run) -> None:
        """Wait, for a moment, until the application's function has started its run or failed to."""
        with suppress(TimeoutError):
            async with asyncio.timeout(STARTING_S):
                async for envelope in run:
                    if envelope.type == "run.started":
                        return
                try:
                    await run
                except Exception as error:  # noqa: BLE001 - as above
                    raise _failed(error, run.id) from None


def _failed(error: Exception, run_id: str | None = None) -> Refusal:
    """What is answered when the application's own code raised; without an id it did before there was a run."""
    why, about = type(error).__name__, None if run_id is None else telemetry.about(run_id)
    logger.error("agents_progress: run %s could not be started: %s", run_id or "?", why, extra=about)
    return Refusal("start_failed") if run_id is None else Refusal("start_failed", run_id=run_id)
