"""``serve``: a decorated function as a service on this machine."""

from __future__ import annotations

import argparse
import sys

from agents_progress.cli.printing import say
from agents_progress.errors import ServerExtraMissing
from agents_progress.plaintext import clean


def serve(chosen: argparse.Namespace) -> int:
    """It ends with a signal: the first one lets runs end, the second does not wait."""
    try:
        from agents_progress.server import serve as service
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "uvicorn":
            raise
        raise ServerExtraMissing(
            "serve needs uvicorn; install it with: pip install 'agents-progress[server]'"
        ) from error
    serving = service.Serving(
        target=chosen.target,
        journal=chosen.journal,
        host=chosen.host,
        port=chosen.port,
        authorize=chosen.authorize,
        hosts=chosen.allow_host,
        certificate=chosen.certificate,
        key=chosen.key,
        drain_s=chosen.drain,
    )
    return service.serve(serving, _tell)


def _tell(line: str) -> None:
    say(clean(line))
    sys.stdout.flush()  # what starts it may wait for the token
