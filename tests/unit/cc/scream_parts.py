"""Pieces the SCReAM tests share: a connection at rest, a list of packets as queue."""

from streamd.cc.api import FeedbackReport, Limits, SentPacket, StreamReport
from streamd.cc.scream.config import ScreamConfig
from streamd.cc.scream.controller import ScreamController
from streamd.cc.scream.state import Connection, Stream
from streamd.ecn import ECT1

LIMITS = Limits(1_000_000, 1_000_000, 20_000_000)
TICK = 1 / 65536


class ListQueue:
    """`MediaQueue` over a list of (size, time)."""

    def __init__(self) -> None:
        self.items: list[tuple[int, float]] = []
        self.cleared = 0

    @property
    def bytes_queued(self) -> int:
        return sum(size for size, _ in self.items)

    @bytes_queued.setter
    def bytes_queued(self, value: int) -> None:
        raise AssertionError("the queue belongs to the session")

    def __len__(self) -> int:
        return len(self.items)

    def head_size(self) -> int:
        return self.items[0][0] if self.items else 0

    def head_time(self) -> float | None:
        return self.items[0][1] if self.items else None

    def clear(self) -> int:
        count = len(self.items)
        self.cleared += count
        self.items.clear()
        return count


def connection(profile: str = "head", *, l4s: bool = True, t: int = 65) -> Connection:
    conn = Connection(ScreamConfig(profile=profile), l4s=l4s, t=t, epoch=0.0)
    conn.total_max_bps = 20_000_000.0
    return conn


def stream(priority: float = 1.0, limits: Limits = LIMITS) -> Stream:
    return Stream(100, ListQueue(), limits, priority)


class Rig:
    """A controller with one stream, driven in ticks of 1/65536 s."""

    def __init__(
        self,
        config: ScreamConfig | None = None,
        *,
        ecn: int = ECT1,
        start: float = 0.0,
        first_seq: int = 0,
        first_rtp: int = 0,
    ) -> None:
        self.start = start
        self.seq = first_seq
        self.rtp = first_rtp
        self.queue = ListQueue()
        self.packets: list[SentPacket] = []
        self.marked: list[bool] = []
        now = self.time(65)
        self.controller = ScreamController(config or ScreamConfig(), ecn=ecn, now=now)
        self.controller.add_stream(100, queue=self.queue, limits=LIMITS, now=now)

    def time(self, t: int) -> float:
        return self.start + t * TICK

    def frame(self, t: int, sizes: list[int]) -> None:
        now = self.time(t)
        for i, size in enumerate(sizes):
            self.queue.items.append((size, now))
            self.marked.append(i == len(sizes) - 1)
            self.controller.on_media_packet(100, size, self.marked[-1], now=now)

    def send(self, t: int) -> SentPacket | None:
        """The next packet, if the controller lets it go now."""
        now = self.time(t)
        if self.controller.select(now=now) is None:
            return None
        at = self.controller.may_send(100, self.queue.head_size(), now=now)
        if at is None or at > now:
            return None
        size, frame_time = self.queue.items.pop(0)
        rtp = self.rtp + int((frame_time - self.start) * 90000)
        packet = SentPacket(100, self.seq, size, rtp, self.marked.pop(0), now)
        self.seq += 1
        self.packets.append(packet)
        self.controller.on_packet_sent(packet, now=now)
        return packet

    def send_all(self, t: int) -> list[SentPacket]:
        sent = []
        while (packet := self.send(t)) is not None:
            sent.append(packet)
        return sent

    def report(self, t: int, acked: list[SentPacket], *, delay: int = 655, ecn: int = ECT1) -> None:
        """A report of packets that arrived `delay` ticks after they were sent."""
        now = self.time(t)
        item = StreamReport(100, acked[-1].seq, True)
        for packet in acked:
            packet.acked = True
            packet.ecn = ecn
            packet.arrived_at = packet.sent_at - self.start + delay * TICK
        item.acked = acked
        feedback = FeedbackReport(now, now)
        feedback.streams.append(item)
        self.controller.on_feedback(feedback, now=now)
