"""The bottleneck daemon without its sockets: a UDP relay with a path in each direction.

Two sides. The sender talks to *near*, the receiver is at *far*. What arrives at
near crosses the uplink and leaves at far, and the other way round. Payloads are
opaque. Codepoint and DSCP are kept, but for the CE a queue sets.

Grammar: `handle_near`, `handle_far` (input), `handle_timeout`; then
`poll_transmit` until it gives None, then `next_timeout`. A shell reads its
sockets before it calls `handle_timeout`, so that an arrival is not taken for
later than a departure that only came due while it waited to be read. Before
gauges are read, `handle_timeout` brings them up to date.

Bad input: a datagram from a source that is not the peer is counted as foreign
and dropped, one for a peer not known yet as unroutable. No answer to either.
"""

import math
from collections.abc import Iterable
from typing import Literal

from streamd.datagram import Address, Datagram, Transmit
from streamd.histogram import Histogram
from streamd.link.path import Path
from streamd.link.queue import SOJOURN_BOUNDS, Packet
from streamd.link.record import PacketRecord
from streamd.peer import PeerLatch, ip_udp_bytes

Side = Literal["near", "far"]

MAX_SEGMENTS = 64
"""Segments per transmit: what every kernel with UDP_SEGMENT takes."""
MAX_BYTES = 65_000
"""Payload per transmit, below the largest UDP payload on IPv4 and IPv6."""


class DirectionCounters:
    """What one direction of the relay has moved, in datagrams and bytes of UDP payload."""

    __slots__ = (
        "ecn_unknown_packets",
        "foreign_packets",
        "lateness",
        "received_bytes",
        "received_packets",
        "sent_bytes",
        "sent_packets",
        "transmits",
        "unroutable_packets",
    )

    def __init__(self) -> None:
        self.received_packets = 0
        """From the peer, foreign ones not included."""
        self.received_bytes = 0
        self.foreign_packets = 0
        """From a source that is not the peer: dropped."""
        self.unroutable_packets = 0
        """From the peer while the other side's address was not known: dropped."""
        self.ecn_unknown_packets = 0
        """The kernel gave no TOS: treated as not-ECT."""
        self.sent_packets = 0
        self.sent_bytes = 0
        self.transmits = 0
        """Runs of datagrams handed to the shell."""
        self.lateness = Histogram(SOJOURN_BOUNDS)
        """Poll minus scheduled departure (s), per packet."""


class _Direction:
    """One path between the peer it comes from and the peer it goes to."""

    __slots__ = (
        "arrived_at",
        "charged_address",
        "counters",
        "header_bytes",
        "path",
        "record",
        "side",
        "source",
        "target",
    )

    def __init__(self, path: Path, *, source: PeerLatch, target: PeerLatch, side: Side) -> None:
        self.path = path
        self.source = source
        self.target = target
        self.side = side
        self.counters = DirectionCounters()
        self.record: PacketRecord | None = None
        self.arrived_at = -math.inf
        self.charged_address: Address | None = None
        self.header_bytes = 0

    def receive(self, datagram: Datagram, now: float) -> None:
        """Put the datagrams of one read on the path."""
        counters = self.counters
        address = datagram.address
        if self.target.address is None:
            counters.unroutable_packets += _count(datagram)
            return
        if address != self.charged_address:
            self.charged_address = address
            self.header_bytes = ip_udp_bytes(address) + self.path.overhead_bytes
        ecn = datagram.ecn
        if ecn is None:
            counters.ecn_unknown_packets += _count(datagram)
            ecn = 0
        # A stamp cannot lie in the future, nor before one seen: clocks were mapped to get here.
        at = max(min(datagram.received_at, now), self.arrived_at)
        self.arrived_at = at
        header, dscp, send = self.header_bytes, datagram.dscp, self.path.send
        packets = 0
        for data in datagram.segments():
            send(Packet(data, len(data) + header, ecn, at, address, dscp), at)
            packets += 1
        counters.received_packets += packets
        counters.received_bytes += len(datagram.data)

    def poll(self, now: float) -> Transmit | None:
        """The next run of datagrams that are due."""
        self.path.advance(now)
        out = self.path.out
        address = self.target.address
        if not out or address is None:
            return None
        first = out[0]
        ecn, dscp, size = first.ecn, first.dscp, len(first.data)
        segments: list[bytes] = []
        total = 0
        observe, record = self.counters.lateness.observe, self.record
        while out and len(segments) < MAX_SEGMENTS:
            packet = out[0]
            length = len(packet.data)
            # An empty datagram would vanish in a run, so it goes alone.
            if (
                packet.ecn != ecn
                or length > size
                or packet.dscp != dscp
                or total + length > MAX_BYTES
            ):
                break
            if segments and not length:
                break
            out.popleft()
            segments.append(packet.data)
            total += length
            observe(now - packet.due)
            if record is not None:
                record.on_delivered(packet)
            if length < size or not size:
                break
        self._count_sent(len(segments), total)
        return Transmit(segments, address, ecn, dscp)

    def _count_sent(self, packets: int, total: int) -> None:
        self.counters.sent_packets += packets
        self.counters.sent_bytes += total
        self.counters.transmits += 1


class Relay:
    """See the module."""

    def __init__(
        self,
        uplink: Path,
        downlink: Path,
        *,
        far: Address | None,
        near: Address | None = None,
        record: PacketRecord | None = None,
    ) -> None:
        """`far` is the configured peer, None until its name is resolved (`self.far.set`).

        `near` None takes the first source that talks. `record` is filled from the uplink.
        """
        self.near = PeerLatch(near)
        """The sender: moves when it has been silent for a while and another source talks."""
        self.far = PeerLatch(far, hold=math.inf)
        """The receiver: stays where it was configured."""
        self._up = _Direction(uplink, source=self.near, target=self.far, side="far")
        self._down = _Direction(downlink, source=self.far, target=self.near, side="near")
        self.uplink = uplink
        self.downlink = downlink
        self.uplink_counters = self._up.counters
        self.downlink_counters = self._down.counters
        self.record = self._up.record = record
        if record is not None:
            uplink.watch_drops(record.on_drop)

    def handle_near(self, batch: Iterable[Datagram], *, now: float) -> None:
        """Datagrams that arrived on the sender's side."""
        up = self._up
        for datagram in batch:
            if self.near.accept(datagram.address, now=now):
                up.receive(datagram, now)
            else:
                up.counters.foreign_packets += _count(datagram)

    def handle_far(self, batch: Iterable[Datagram], *, now: float) -> None:
        """Datagrams that arrived on the receiver's side."""
        down, far = self._down, self.far
        for datagram in batch:
            if far.address is not None and far.accept(datagram.address, now=now):
                down.receive(datagram, now)
            else:
                down.counters.foreign_packets += _count(datagram)

    def handle_timeout(self, *, now: float) -> None:
        """Time has passed: whatever is due moves."""
        self.uplink.advance(now)
        self.downlink.advance(now)

    def poll_transmit(self, *, now: float) -> tuple[Side, Transmit] | None:
        """The next run of due datagrams and the side it leaves on; None when nothing is due."""
        for direction in (self._up, self._down):
            transmit = direction.poll(now)
            if transmit is not None:
                return direction.side, transmit
        return None

    def next_timeout(self) -> float | None:
        """When the next datagram may be due (s); None while the relay is empty."""
        up, down = self.uplink.next_timeout(), self.downlink.next_timeout()
        if up is None or down is None:
            return down if up is None else up
        return min(up, down)

    @property
    def held_packets(self) -> int:
        """Datagrams inside, both directions: 0 means drained."""
        return self.uplink.held_packets + self.downlink.held_packets


def _count(datagram: Datagram) -> int:
    """Datagrams in one read."""
    return max(1, -(-len(datagram.data) // datagram.segment_size)) if datagram.segment_size else 1
