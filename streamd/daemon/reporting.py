"""The periodic line, the summary and the result file: the same for every role."""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from streamd.daemon.lifecycle import Lifecycle
from streamd.io.net import Endpoint
from streamd.observability.model import SocketView
from streamd.observability.results import write_json

Figures = dict[str, Any]


async def report_periodically(life: Lifecycle, make: Callable[[], Figures]) -> None:
    """Log the line `report` every `report_interval`, on a fixed schedule, until cancelled."""
    interval = life.config.report_interval
    deadline = life.clock.now() + interval
    make()
    while True:
        await asyncio.sleep(max(0.0, deadline - life.clock.now()))
        deadline = max(deadline, life.clock.now() - interval) + interval
        figures = make()
        life.log.info("report", **figures)


def finish(life: Lifecycle, summary: Figures) -> None:
    """Log the canonical line of the run and write the result file if one is asked for."""
    summary = {**summary, "stop_reason": life.stop_reason, "seed": life.seed}
    life.log.info("session_summary", **summary)
    if life.config.json_file is not None:
        write_json(life.config.json_file, summary)


async def outlive(pump: "AnyPump") -> None:
    """Raises what ended a pump before its time: a daemon must not outlive it."""
    await asyncio.shield(pump.failed)


def socket_view(endpoint: "OpenEndpoint") -> SocketView:
    """One endpoint as the metrics want it."""
    return SocketView(endpoint.stats, endpoint.receive_buffer)


class OpenEndpoint(Endpoint, Protocol):
    """An endpoint that tells what buffer it was granted."""

    receive_buffer: int


class AnyPump(Protocol):
    """A pump of either kind."""

    failed: asyncio.Future[None]
