"""Endpoints on loopback and what arrived at them, for tests that wait on events only."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from streamd.clock import MonotonicClock
from streamd.datagram import Address, Datagram
from streamd.io.net import UdpOptions
from streamd.io.udp import UdpEndpoint, UdpNetwork

PATIENCE = 20.0
"""Seconds after which a test that waits for something gives up."""


def has_ipv6() -> bool:
    """Whether ::1 can be bound here."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
            sock.bind(("::1", 0))
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="no IPv6 on this machine")
needs_linux = pytest.mark.skipif(
    not hasattr(socket, "MSG_ERRQUEUE"), reason="batches and error queues are Linux's"
)


class Node:
    """A started endpoint that keeps what it gets."""

    def __init__(self, endpoint: UdpEndpoint) -> None:
        self.endpoint = endpoint
        self.got: list[Datagram] = []
        self._changed = asyncio.Event()
        endpoint.start(self._take)

    @property
    def address(self) -> Address:
        return self.endpoint.local_address

    def at(self, host: str) -> Address:
        """This node's port at `host`, for a wildcard socket."""
        return (host, self.endpoint.local_address[1])

    def payloads(self) -> list[bytes]:
        return [data for datagram in self.got for data in datagram.segments()]

    async def until(self, done: Callable[[], bool]) -> None:
        """Wait until `done()`, looked at after everything received."""
        async with asyncio.timeout(PATIENCE):
            while not done():
                self._changed.clear()
                await self._changed.wait()

    async def receive(self, count: int) -> list[Datagram]:
        """Wait for `count` payloads in all; the reads they came in."""
        await self.until(lambda: len(self.payloads()) >= count)
        return self.got

    def _take(self, batch: list[Datagram]) -> None:
        self.got.extend(batch)
        self._changed.set()


async def eventually(done: Callable[[], bool]) -> None:
    """Let the loop turn until `done()`."""
    async with asyncio.timeout(PATIENCE):
        while not done():  # noqa: ASYNC110 - counters have no event to wait for
            await asyncio.sleep(0)


@asynccontextmanager
async def nodes(*where: Address, options: UdpOptions | None = None) -> AsyncIterator[list[Node]]:
    """Started nodes bound to these addresses, closed at the end."""
    network = UdpNetwork(asyncio.get_running_loop(), MonotonicClock())
    opened = [
        Node(network.open_udp(local, options=options or UdpOptions(gro=True))) for local in where
    ]
    try:
        yield opened
    finally:
        for node in opened:
            node.endpoint.close()
