"""Runs over HTTP: an ASGI app to mount, and a service for one function."""

from agents_progress.errors import ServerExtraMissing

try:
    import starlette as _starlette  # noqa: F401
except ModuleNotFoundError as error:
    raise ServerExtraMissing(
        "a server needs starlette; install it with: pip install 'agents-progress[server]'"
    ) from error

from agents_progress.server.app import runs_app
from agents_progress.server.limits import Limits
from agents_progress.server.principal import Principal

__all__ = ["Limits", "Principal", "runs_app"]
