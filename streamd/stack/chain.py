"""A chain of three daemons on loopback: sender, bottleneck, receiver.

Started from the far end, so that each knows the port of the next; stopped from
the near end: the source first, then what it sent drains, then the rest.
"""

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from streamd.results.joined import join
from streamd.stack.process import DaemonProcess, Record

DRAIN_TIMEOUT = 8.0
"""Longer than the drain of a sender: two seconds, and its shutdown."""


@dataclass(frozen=True, slots=True)
class ChainPlan:
    """Extra command-line arguments of each daemon."""

    name: str
    sender: tuple[str, ...] = ()
    bottleneck: tuple[str, ...] = ()
    receiver: tuple[str, ...] = ()


Watch = Callable[[str, Record], None]
"""Takes a role and a line of its log."""


@dataclass(slots=True)
class ChainResult:
    """The three summaries, and the exit codes."""

    sender: Record
    bottleneck: Record
    receiver: Record
    exit_codes: dict[str, int] = field(default_factory=dict)

    def joined(self, *, ecn_capable: bool) -> Record:
        """What the viewer got, as flat result keys."""
        return join(
            self.sender,
            self.bottleneck,
            self.receiver,
            ecn_capable=ecn_capable,
            exit_codes=self.exit_codes,
        )


class Chain:
    """Three children and their results in a folder of their own."""

    def __init__(self, plan: ChainPlan, folder: Path) -> None:
        """`folder` exists; the summaries are written there."""
        self.plan = plan
        self._folder = folder
        self.processes: dict[str, DaemonProcess] = {}
        self.started: dict[str, Record] = {}
        """The `started` line of each daemon."""
        self._watch: Watch | None = None

    async def start(self, watch: Watch | None = None) -> None:
        """Start receiver, bottleneck and sender. StartupError names the one that failed.

        `watch` is told every line of their logs, with the role.
        """
        plan, self._watch = self.plan, watch
        receiver = await self._start("receiver", ("--listen", "127.0.0.1:0", *plan.receiver))
        bottleneck = await self._start(
            "bottleneck",
            ("--listen", "127.0.0.1:0", "--peer", receiver["listen"], *plan.bottleneck),
        )
        await self._start("sender", ("--peer", bottleneck["listen"], *plan.sender))

    async def stop(self) -> dict[str, int]:
        """Source first; exit codes by role."""
        codes: dict[str, int] = {}
        for role in ("sender", "receiver", "bottleneck"):
            process = self.processes.get(role)
            if process is not None:
                codes[role] = await process.stop()
        return codes

    async def finish(self) -> ChainResult:
        """Let the sender end and drain, stop the others, and collect the summaries."""
        sender = self.processes["sender"]
        sender.signal(signal.SIGTERM)
        await sender.wait(DRAIN_TIMEOUT)
        codes = await self.stop()
        results = {role: process.result() for role, process in self.processes.items()}
        return ChainResult(
            results["sender"], results["bottleneck"], results["receiver"], exit_codes=codes
        )

    async def kill(self) -> None:
        """End whatever still runs, at once, and wait until it is gone."""
        await asyncio.gather(*(process.kill() for process in self.processes.values()))

    async def _start(self, role: str, args: tuple[str, ...]) -> dict[str, Any]:
        result = self._folder / f"{self.plan.name}-{role}.json"
        process = DaemonProcess(role, ("--metrics-port", "0", *args), result)
        self.processes[role] = process
        if self._watch is not None:
            process.on_record = partial(self._watch, role)
        self.started[role] = started = await process.start()
        return started
