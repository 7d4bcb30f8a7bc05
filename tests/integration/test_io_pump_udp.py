"""Pumps over real sockets: two sessions that talk, and a relay between them."""

import asyncio
from collections import deque
from typing import Literal

import pytest
from io_loopback import PATIENCE, nodes

from streamd.clock import MonotonicClock
from streamd.datagram import Address, Datagram, Transmit
from streamd.io.pump import Pump, RelayPump
from streamd.io.udp import UdpNetwork

pytestmark = pytest.mark.asyncio

HOME = ("127.0.0.1", 0)
STEP = 0.0005


class Counter:
    """Sends numbered runs at deadlines, or sends back what it gets; an event per payload."""

    def __init__(self, peer: Address | None, count: int = 0) -> None:
        self.peer = peer
        self.left = count
        self.next_at: float | None = 0.0 if count else None
        self.out: deque[Transmit] = deque()
        self.events: deque[bytes] = deque()

    def handle_datagrams(self, batch: list[Datagram], *, now: float) -> None:
        for read in batch:
            assert read.received_at <= now
            segments = list(read.segments())
            self.events.extend(segments)
            if self.peer is None:
                self.out.append(Transmit(segments, read.address, read.ecn or 0))

    def handle_timeout(self, *, now: float) -> None:
        assert self.next_at is not None
        assert now >= self.next_at
        assert self.peer is not None
        payload = self.left.to_bytes(2, "big")
        self.out.append(Transmit([payload, payload], self.peer, 1))
        self.left -= 1
        self.next_at = now + STEP if self.left else None

    def poll_transmit(self, *, now: float) -> Transmit | None:
        return self.out.popleft() if self.out else None

    def poll_event(self) -> bytes | None:
        return self.events.popleft() if self.events else None

    def next_timeout(self) -> float | None:
        return self.next_at

    def close(self, *, now: float) -> None:
        assert self.peer is not None
        self.out.append(Transmit([b"bye"], self.peer, 1))


class Crossing:
    """A relay that passes everything on at once."""

    def __init__(self, far: Address) -> None:
        self.far = far
        self.near: Address | None = None
        self.due: deque[tuple[Literal["near", "far"], Transmit]] = deque()

    def handle_near(self, batch: list[Datagram], *, now: float) -> None:
        for read in batch:
            self.near = read.address
            self.due.append(("far", Transmit(list(read.segments()), self.far, 3)))

    def handle_far(self, batch: list[Datagram], *, now: float) -> None:
        assert self.near is not None
        for read in batch:
            self.due.append(("near", Transmit(list(read.segments()), self.near, read.ecn or 0)))

    def handle_timeout(self, *, now: float) -> None:
        raise AssertionError("never asked for")

    def poll_transmit(self, *, now: float) -> tuple[Literal["near", "far"], Transmit] | None:
        return self.due.popleft() if self.due else None

    def next_timeout(self) -> float | None:
        return None


async def test_a_paced_stream_is_echoed_through_a_relay() -> None:
    loop, clock = asyncio.get_running_loop(), MonotonicClock()
    network = UdpNetwork(loop, clock)
    echo_end = network.open_udp(HOME)
    echo = Pump(Counter(None), echo_end, clock, loop, lambda event: None)
    near, far = network.open_udp(HOME), network.open_udp(HOME)
    relay = RelayPump(Crossing(echo_end.local_address), near, far, clock, loop)
    heard: list[bytes] = []
    complete: asyncio.Future[None] = loop.create_future()

    def on_event(event: bytes) -> None:
        heard.append(event)
        if len(heard) == 200:
            complete.set_result(None)

    source = Pump(Counter(near.local_address, 100), network.open_udp(HOME), clock, loop, on_event)
    for pump in (echo, relay, source):
        pump.start()
    await asyncio.wait_for(complete, PATIENCE)
    for stopping in (source, relay, echo):
        stopping.stop()
        await stopping.failed
    expected = [n.to_bytes(2, "big") for n in range(100, 0, -1) for _ in range(2)]
    assert heard == expected
    assert source.stats.overdue == 0


async def test_close_then_stop_lets_the_goodbye_out() -> None:
    loop, clock = asyncio.get_running_loop(), MonotonicClock()
    async with nodes(HOME) as (listener,):
        endpoint = UdpNetwork(loop, clock).open_udp(HOME)
        pump = Pump(Counter(listener.address), endpoint, clock, loop, lambda event: None)
        pump.start()
        pump.close()
        pump.stop()
        await listener.receive(1)
        assert listener.payloads() == [b"bye"]


async def test_a_session_that_fails_frees_its_port() -> None:
    loop, clock = asyncio.get_running_loop(), MonotonicClock()
    network = UdpNetwork(loop, clock)
    endpoint = network.open_udp(HOME)
    address = endpoint.local_address

    class Broken(Counter):
        """Raises on the first datagram."""

        def handle_datagrams(self, batch: list[Datagram], *, now: float) -> None:
            raise ZeroDivisionError("broken")

    pump = Pump(Broken(None), endpoint, clock, loop, lambda event: None)
    pump.start()
    async with nodes(HOME) as (a,):
        a.endpoint.send(Transmit([b"x"], address, 1))
        with pytest.raises(ZeroDivisionError, match="broken"):
            await asyncio.wait_for(pump.failed, PATIENCE)
    network.open_udp(address).close()
