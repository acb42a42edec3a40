"""The ASGI app that shows the runs of a journal, starts those of some functions, and passes control to their owners.

What :func:`runs_app` is told:

* ``journal``: a Journal, which is left open, or a URL, whose journal is closed with the app. Whatever journal a
  function names itself, its runs are written to this one.
* ``authorize(request, action, run)`` gives the :class:`Principal` or None; see
  :data:`agents_progress.server.principal.Authorize`. There is no app without it.
* ``functions``: what callers may start, by name; every named parameter is theirs to give.
* ``bridges``: what tells runs in other protocols, :mod:`agents_progress.bridges`; each has routes below its path, and
  the function that its requests start.
* ``exclusive(principal, wish)`` gives the key of the conversation that a run belongs to, or None: of one key and owner
  one run is live, and another one is answered 409.
* ``hosts``: the host names under which the app answers; None takes any. ``origins``: the origins of your pages, where a
  proxy changes the host. ``direct`` refuses what a proxy forwarded.
* ``page``: whether the page that people look at is at the root of the app.
* ``drain_s``: how long runs may go on after the service was told to stop, in seconds.
* ``prune_after``, ``erase_after``: for how long the events, and everything, of a closed run are kept after its last
  word, in seconds; None keeps them.

The app lives with its lifespan: within it a SIGINT or SIGTERM drains first and then has its effect. A mounted app has
no lifespan of its own, so make it that of your app, or enter it there::

    Starlette(routes=[Mount("/agent", runs)], lifespan=runs.router.lifespan_context)
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from agents_progress.bridges.base import Bridge
from agents_progress.decorate import Decorated
from agents_progress.errors import UsageError
from agents_progress.journal import Journal
from agents_progress.options import shared_journal
from agents_progress.server.abandoned import SWEEP_S
from agents_progress.server.bridging import bridge_routes, mounted
from agents_progress.server.guard import Guard
from agents_progress.server.leaving import drained_on_signals
from agents_progress.server.limits import Limits
from agents_progress.server.offered import offered
from agents_progress.server.pages import page_routes, page_with_slash
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
    bridges: Iterable[Bridge] = (),
    limits: Limits | None = None,
    exclusive: Exclusive | None = None,
    hosts: Collection[str] | None = None,
    origins: Collection[str] = (),
    direct: bool = False,
    page: bool = True,
    drain_s: float = 20.0,
    prune_after: float | None = None,
    erase_after: float | None = None,
) -> Starlette:
    """An ASGI app over a journal, with the options that are described above.

    Raises :exc:`UsageError` without ``authorize``, for a function that cannot be offered, and for a bridge that cannot
    be mounted.
    """
    if not callable(authorize):
        raise UsageError("runs_app needs authorize=: who may see, start, cancel and answer runs is yours to decide")
    limits = limits or Limits()
    store = shared_journal(journal) if isinstance(journal, str) else journal
    service = Service(store, limits, drain_s=drain_s, prune_after=prune_after, erase_after=erase_after)
    chats = mounted(bridges)
    starter = Starter(service, offered(functions), exclusive, [chat.offered for chat in chats])
    gate = Gate(authorize, store)
    service.at_intervals.append((SWEEP_S, starter.abandoned.sweep))
    paths = [
        *(Route(path, Path(methods, service, starter, gate)) for path, methods in PATHS.items()),
        *bridge_routes(chats, service, starter, gate),
        Route("/livez", Probe("live", service.live)),
        Route("/readyz", Probe("ready", service.ready)),
        *(page_routes() if page else ()),
    ]
    guard = partial(Guard, limits=limits, hosts=hosts, origins=origins, direct=direct)
    return _RunsApp(paths, guard, service, closes=store is not journal, page=page)


class _RunsApp(Starlette):
    """Routes behind a guard that lets no exception through. Starlette's own two middlewares would find nothing to do,
    and each would take a step in every write to every reader.
    """

    def __init__(
        self,
        paths: Sequence[BaseRoute],
        guard: Callable[[ASGIApp], ASGIApp],
        service: Service,
        *,
        closes: bool,
        page: bool,
    ) -> None:
        super().__init__(routes=paths, lifespan=lambda outer: _living(service, closes))
        self.router.redirect_slashes = False
        self.router.default = partial(_elsewhere, page=page)
        self.state.service = service
        self._guard = guard

    def build_middleware_stack(self) -> ASGIApp:
        """The guard around the routes, and around both what the application added."""
        stack = self._guard(self.router)
        for middleware, args, kwargs in reversed(self.user_middleware):
            stack = middleware(stack, *args, **kwargs)
        return stack


@asynccontextmanager
async def _living(service: Service, closes: bool) -> AsyncIterator[None]:
    async with service.running():
        with drained_on_signals(service.drain):
            yield
    if closes:
        await service.journal.close()


async def _elsewhere(scope: Scope, receive: Receive, send: Send, *, page: bool) -> None:
    if page and scope["path"] == scope.get("root_path") and not scope["path"].endswith("/"):
        return await page_with_slash(scope, receive, send)
    raise Refusal("no_such_path")
