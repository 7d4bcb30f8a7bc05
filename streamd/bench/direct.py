"""A sender and a receiver without a bottleneck between them, for benchmarks."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from streamd.stack.process import DaemonProcess, Record


class Direct(NamedTuple):
    """Both processes, and where their metrics are."""

    sender: DaemonProcess
    receiver: DaemonProcess
    sender_http: str
    receiver_http: str
    results: dict[str, Record]
    """The summaries by role, once both were stopped."""


@asynccontextmanager
async def direct(*sender_options: str) -> AsyncIterator[Direct]:
    """Started on loopback; stopped at the end, the sender first."""
    with tempfile.TemporaryDirectory(prefix="streamd-bench-") as folder:
        place = Path(folder)
        receiver = DaemonProcess(
            "receiver",
            ("--listen", "127.0.0.1:0", "--metrics-port", "0"),
            place / "receiver.json",
        )
        results: dict[str, Record] = {}
        there = await receiver.start()
        try:
            sender = DaemonProcess(
                "sender",
                ("--peer", there["listen"], "--metrics-port", "0", *sender_options),
                place / "sender.json",
            )
            here = await sender.start()
            try:
                yield Direct(sender, receiver, here["http"], there["http"], results)
            finally:
                await sender.stop()
        finally:
            await receiver.stop()
        results["sender"], results["receiver"] = sender.result(), receiver.result()
