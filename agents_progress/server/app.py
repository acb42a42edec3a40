"""The ASGI app: routes, guard and life put together.

It lives with its lifespan: within it a SIGINT or SIGTERM drains first and then has its effect. A mounted app has no
lifespan of its own: make it that of your app, or enter it there::

    Starlette(routes=[Mount("/agent", runs)], lifespan=runs.router.lifespan_context)
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial

from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from agents_progress.decorate import Decorated
from agents_progress.errors import UsageError
from agents_progress.journal import Journal
from agents_progress.options import shared_journal, switched_off
from agents_progress.server.guard import Guard
from agents_progress.server.leaving import drained_on_signals
from agents_progress.server.limits import Limits
from agents_progress.server.offered import offered
from agents_progress.server.principal import Authorize, Gate
from agents_progress.server.refusals import Refusal
from agents_progress.server.routes import PATHS, Path, Probe
from agents_progress.server.service import Service
from agents_progress.server.starts import Exclusive, Starter


def runs_app(
    journal: Journal | str,
    authorize: Authorize | None = None,
    *,
    functions: Mapping[str, Decorated[...]] | Iterable[Decorated[...]] = (),
    limits: Limits | None = None,
    exclusive: Exclusive | None = None,
    hosts: Collection[str] | None = None,
    origins: Collection[str] = (),
    direct: bool = False,
    drain_s: float = 20.0,
    prune_after: float | None = None,
    erase_after: float | None = None,
) -> Starlette:
    """An ASGI app that shows the runs of a journal, starts those of ``functions``, and passes control to their owners.

    There is none without ``authorize`` (:data:`agents_progress.server.principal.Authorize`). Of ``functions`` every
    named parameter is the caller's to give; their runs are written to this journal. ``exclusive(principal, wish)``
    names the conversation of a run: of one, one run is live. ``hosts`` are the names it answers under, None any;
    ``origins`` those of your pages, where a proxy changes the host. ``direct`` refuses what a proxy forwarded. In
    seconds: ``drain_s`` is how long runs may go on after a signal to stop, ``prune_after`` and ``erase_after`` for how
    long the events, and everything, of a closed run are kept, None for ever. Raises :exc:`UsageError`.
    """
    if not callable(authorize):
        raise UsageError("runs_app needs authorize=: who may see, start, cancel and answer runs is yours to decide")
    offers = offered(functions)
    if offers and switched_off():
        raise UsageError("AGENTS_PROGRESS=off makes plain calls of decorated functions; unset it to serve them")
    limits = limits or Limits()
    journal = shared_journal(journal) if isinstance(journal, str) else journal
    service = Service(journal, limits, drain_s=drain_s, prune_after=prune_after, erase_after=erase_after)
    guard = partial(Guard, limits=limits, hosts=hosts, origins=origins, direct=direct)
    return _Guarded(guard, service, Starter(service, offers, exclusive), Gate(authorize, journal))


class _Guarded(Starlette):
    """Routes behind a guard that lets no exception through. Starlette's own two middlewares would find nothing to do,
    and each would take a step in every write to every reader.
    """

    def __init__(self, guard: Callable[[ASGIApp], ASGIApp], service: Service, starter: Starter, gate: Gate) -> None:
        @asynccontextmanager
        async def lifespan(app: Starlette) -> AsyncIterator[None]:
            async with service.running():
                with drained_on_signals(service.drain):
                    yield

        paths = [
            *(Route(path, Path(methods, service, starter, gate)) for path, methods in PATHS.items()),
            Route("/livez", Probe("live", service.live)),
            Route("/readyz", Probe("ready", service.ready)),
        ]
        super().__init__(routes=paths, lifespan=lifespan)
        self.state.service = service
        self.router.redirect_slashes = False
        self.router.default = _nothing_there
        self._guard = guard

    def build_middleware_stack(self) -> ASGIApp:
        """The guard around the routes, and around both what the application added."""
        stack = self._guard(self.router)
        for middleware, args, kwargs in reversed(self.user_middleware):
            stack = middleware(stack, *args, **kwargs)
        return stack


async def _nothing_there(scope: Scope, receive: Receive, send: Send) -> None:
    raise Refusal("no_such_path")
