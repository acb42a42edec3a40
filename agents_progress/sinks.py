"""What an application has told of each envelope."""

from __future__ import annotations

from agents_progress.log import RunLog
from agents_progress.plan import Sink
from agents_progress.telemetry import RunLogger


async def feed(sink: Sink, log: RunLog, logger: RunLogger) -> None:
    """Give one sink every envelope, in order. A sink that raises is named once and asked again for the next."""
    failed = False
    async for envelope in log.read():
        try:
            answer = sink(envelope)
            if answer is not None:
                await answer
        except Exception as error:  # noqa: BLE001 - a sink must not change the run or another sink
            if not failed:
                failed = True
                logger.error("a sink failed: %s", type(error).__name__)
