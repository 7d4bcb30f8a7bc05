"""Stand-ins for the two programs of the public SCReAM BW tool, byte by byte.

Written from their description alone (receiver rule, wire format), on purpose without
streamd's own wire code: what they read and write is checked against nothing but numbers.
"""

import asyncio
import struct
from dataclasses import dataclass

from e2e_stage import Address, Plain

from streamd.clock import MonotonicClock

MEDIA_SSRC = 100
HISTORY = 512
BLOCKS = 64
ACK_DIFF = 32
INTERVAL = 0.04
FIRST_INTERVAL = 0.2
FIRST_PERIOD = 0.1
LOOK_EVERY = 0.0005
MAX_REPORT = 900


@dataclass(frozen=True, slots=True)
class Media:
    """One RTP packet as the tool sends it."""

    data: bytes

    @property
    def marker(self) -> bool:
        return bool(self.data[1] & 0x80)

    @property
    def kind(self) -> int:
        return self.data[1] & 0x7F

    @property
    def seq(self) -> int:
        return int.from_bytes(self.data[2:4], "big")

    @property
    def timestamp(self) -> int:
        return int.from_bytes(self.data[4:8], "big")

    @property
    def ssrc(self) -> int:
        return int.from_bytes(self.data[8:12], "big")


class ToolReceiver:
    """Reports as the tool's receiver does: at each marker, after 32 packets, or after 40 ms."""

    def __init__(self, listen: Plain, answer: Plain, to: Address | None) -> None:
        """`to` None: reports go where media come from; else there, whatever the source."""
        self.media: list[Media] = []
        self.other: list[bytes] = []
        self._answer, self._to = answer, to
        self._clock = MonotonicClock()
        self._begun: float | None = None
        self._ticks: dict[int, int] = {}
        self._highest = -1
        self._reported = 0
        self._reported_at = 0.0
        self._new = 0
        self._flush = False
        listen.on_datagram = self._on_datagram
        self._look()

    def stop(self) -> None:
        """No more looks at the clock."""
        self._timer.cancel()

    def _on_datagram(self, data: bytes, address: Address) -> None:
        packet = Media(data)
        if len(data) < 12 or packet.kind != 98:
            self.other.append(data)
            return
        now = self._clock.now()
        if self._begun is None:
            self._begun = now
            self._to = self._to or address
        self.media.append(packet)
        step = (packet.seq - self._highest) & 0xFFFF
        number = self._highest + step - (0x10000 if step >= 0x8000 else 0)
        self._highest = max(self._highest, number)
        self._ticks[number] = int(now * 65536)
        self._new += 1
        self._flush = self._flush or packet.marker
        if self._due():
            self._report(now, packet.marker)

    def _due(self) -> bool:
        return self._flush or self._highest - self._reported >= ACK_DIFF

    def _look(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(LOOK_EVERY, self._look)
        now = self._clock.now()
        if self._new and (self._due() or now - self._reported_at > self._interval(now)):
            self._report(now, True)

    def _interval(self, now: float) -> float:
        assert self._begun is not None
        return FIRST_INTERVAL if now - self._begun < FIRST_PERIOD else INTERVAL

    def _report(self, now: float, marker: bool) -> None:
        lists: list[bytes] = []
        while 12 + sum(map(len, lists)) < MAX_REPORT and self._wanted(now, marker):
            end = self._highest
            if end - self._reported > BLOCKS:
                end = self._reported + BLOCKS
            lists.append(self._list(end, int(now * 65536)))
            self._reported, self._reported_at, self._new = end, now, 0
            self._flush = end != self._highest
        if lists:
            body = struct.pack("!I", 10) + b"".join(lists)
            body += struct.pack("!I", int(now * 65536) & 0xFFFFFFFF)
            assert self._to is not None
            self._answer.send(struct.pack("!BBH", 0x8B, 205, len(body) // 4) + body, self._to)

    def _wanted(self, now: float, marker: bool) -> bool:
        overdue = self._new and now - self._reported_at > self._interval(now)
        return bool(self._flush or self._new >= 16 or overdue or (marker and self._new))

    def _list(self, end: int, ticks: int) -> bytes:
        begin = end - BLOCKS + 1
        blocks = [self._block(number, ticks) for number in range(begin, end + 1)]
        head = struct.pack("!IHH", MEDIA_SSRC, begin & 0xFFFF, BLOCKS - 1)
        return head + struct.pack(f"!{BLOCKS}H", *blocks)

    def _block(self, number: int, ticks: int) -> int:
        arrived = self._ticks.get(number)
        if arrived is None:
            return 0
        return 0x8000 | 1 << 13 | min(0x1FFE, (ticks - arrived) >> 6)


@dataclass(frozen=True, slots=True)
class Entry:
    """One list of a report: a number and block for each packet in it."""

    begin: int
    blocks: tuple[int, ...]

    @property
    def end(self) -> int:
        return (self.begin + len(self.blocks) - 1) & 0xFFFF

    @property
    def received(self) -> list[int]:
        """Numbers reported as received."""
        return [
            (self.begin + index) & 0xFFFF
            for index, block in enumerate(self.blocks)
            if block & 0x8000
        ]


@dataclass(frozen=True, slots=True)
class Report:
    """One RTCP packet, read as the tool's sender reads it."""

    sender_ssrc: int
    lists: tuple[Entry, ...]
    timestamp: int
    size: int


def read_report(data: bytes) -> Report:
    """The way the tool does: num_reports is blocks - 1, lists go on until 4 bytes are left."""
    words = struct.unpack_from("!H", data, 2)[0]
    assert data[:2] == b"\x8b\xcd"
    assert len(data) == 4 * words + 4
    lists = []
    position = 8
    while len(data) - position > 4:
        ssrc, begin, number = struct.unpack_from("!IHH", data, position)
        assert ssrc == MEDIA_SSRC
        count = number + 1
        position += 8
        lists.append(Entry(begin, struct.unpack_from(f"!{count}H", data, position)))
        position += 2 * count
        padding = -position % 4
        assert data[position : position + padding] == bytes(padding)
        position += padding
    assert len(data) - position == 4
    sender_ssrc = struct.unpack_from("!I", data, 4)[0]
    return Report(
        sender_ssrc, tuple(lists), struct.unpack_from("!I", data, 4 * words)[0], len(data)
    )


class ToolSender:
    """Sends what the tool's sender sends, and reads its receiver's reports."""

    def __init__(self, sock: Plain, peer: Address, *, ssrc: int = MEDIA_SSRC) -> None:
        self._sock, self._peer, self._ssrc = sock, peer, ssrc
        self.seq = 0
        self.reports: list[Report] = []
        self.keepalives = 0
        """Datagrams of one byte before anything else was received."""
        sock.on_datagram = self._on_datagram

    def packet(self, *, marker: bool, size: int = 1200, skip: int = 0) -> int:
        """Send one packet, `skip` numbers after the last; its number."""
        self.seq += skip
        number = self.seq & 0xFFFF
        self.send(number, marker, size)
        self.seq += 1
        return number

    def send(self, number: int, marker: bool, size: int = 1200) -> None:
        """Send a packet of any number."""
        second = 98 | marker << 7
        head = struct.pack("!BBHII", 0x80, second, number, 1800 * self.seq, self._ssrc)
        self._sock.send(head + bytes(size), self._peer)

    def frame(self, packets: int) -> int:
        """Send a frame; the number of its last packet."""
        for _ in range(packets - 1):
            self.packet(marker=False)
        return self.packet(marker=True, size=700)

    async def reported(self, number: int) -> Report:
        """The first report that says this packet was received, or else waits for it."""
        await self._sock.until(
            lambda: any(number in entry.received for r in self.reports for entry in r.lists)
        )
        return next(r for r in self.reports if any(number in e.received for e in r.lists))

    def _on_datagram(self, data: bytes, _: Address) -> None:
        if len(data) == 1:
            self.keepalives += not self.reports
        else:
            self.reports.append(read_report(data))
