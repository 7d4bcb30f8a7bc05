"""The ledger of packets in the network: feedback in, acknowledged and lost packets out.

What it decides, and by which rule:

* *acknowledged*: the first report that names a packet as received. The packet
  leaves the ledger; any later mention is a repeat.
* *lost*, for controllers without a rule of their own: not acknowledged although
  a packet sent at least `REORDER_TIME` later was. It stays in the ledger, a late
  acknowledgement or a retransmission can still come.
* *network loss* of a first transmission (metrics 1.4: a repair does not undo
  it): never acknowledged, or acknowledged only by a copy. Copies carry the same
  sequence number, so which one arrived is told by the one-way delay: an arrival
  too early for the copy, by the smallest delay seen, was the first transmission.

Sequence numbers are unwrapped against the highest one sent, so a report can
only speak of the 65536 numbers around it; what was never sent is counted.
"""

from streamd.cc.api import FeedbackReport, SentPacket, StreamReport
from streamd.cc.filters import WindowedMin
from streamd.session.queue import MediaPacket
from streamd.wire.ccfb import BlockList, CongestionFeedback

REORDER_TIME = 0.03
"""A packet overtaken by one sent this much later is lost, not reordered (s)."""
MAX_OUTSTANDING = 16384
"""More unacknowledged packets are forgotten, oldest first: a quarter of the number space."""
MAX_AGE = 10.0
"""A packet unacknowledged for longer is forgotten (s)."""
_OFFSET_UNIT = 1 / 1024
_TICKS = 65536.0
_EARLY = 0.001
"""Slack on the smallest one-way delay: the unit of the arrival time offset."""


class SentHistory:
    """Outstanding packets of one SSRC, oldest first."""

    def __init__(self, ssrc: int) -> None:
        self._ssrc = ssrc
        self._packets: dict[int, MediaPacket] = {}
        self._highest_sent = -1
        self._first_sent: int | None = None
        self._highest_acked = -1
        self._highest_acked_sent_at = 0.0
        self._clock = ReceiverClock()
        self._min_delay = WindowedMin(30.0)
        self.first_sent_count = 0
        self.first_lost_count = 0
        """First transmissions known to be lost; outstanding ones are not in it."""
        self.unsent_count = 0
        """Blocks that named packets never sent as received."""
        self.repeat_count = 0
        self.foreign_lists = 0
        """Block lists of an SSRC that is not ours."""

    def __len__(self) -> int:
        return len(self._packets)

    @property
    def clock_jumps(self) -> int:
        """Times the receiver's clock was found to have started anew."""
        return self._clock.jumps

    @property
    def highest_acked(self) -> int:
        """Highest acknowledged sequence number; -1 before the first."""
        return self._highest_acked

    def on_sent(self, packet: MediaPacket, now: float) -> None:
        """Record a transmission, first or repeated; sets the packet's times."""
        packet.sent_at = now
        packet.transmissions += 1
        if packet.transmissions == 1:
            packet.first_sent_at = now
            self.first_sent_count += 1
            if packet.seq > self._highest_sent:
                self._highest_sent = packet.seq
                if self._first_sent is None:
                    self._first_sent = packet.seq
        else:
            packet.lost = False
        self._packets[packet.seq] = packet
        if len(self._packets) > MAX_OUTSTANDING:
            self._forget_oldest()

    def on_feedback(self, feedback: CongestionFeedback, *, now: float) -> FeedbackReport:
        """Match a decoded report with the packets sent.

        The result has a stream report for each list that names our SSRC and
        ends at or before the highest packet sent; others are counted.
        """
        report = FeedbackReport(now, self._clock.unwrap(feedback.timestamp, now))
        for blocks in feedback.lists:
            if blocks.ssrc != self._ssrc:
                self.foreign_lists += 1
            elif blocks.blocks and self._first_sent is not None:
                self._match(blocks, report)
        return report

    def outstanding_below(self, seq: int) -> list[MediaPacket]:
        """Unacknowledged packets before `seq`, oldest first."""
        found = []
        for number, packet in self._packets.items():
            if number >= seq:
                break
            found.append(packet)
        return found

    def oldest_sent_at(self) -> float | None:
        """When the oldest outstanding packet was last sent; None when nothing is outstanding."""
        for packet in self._packets.values():
            return packet.sent_at
        return None

    def expire(self, now: float) -> None:
        """Forget packets that nobody will acknowledge any more; they count as lost."""
        while self._packets:
            packet = next(iter(self._packets.values()))
            if now - packet.sent_at < MAX_AGE or packet.queued:
                return
            self._forget_oldest()

    def network_loss(self, now: float, margin: float) -> tuple[int, int]:
        """First transmissions lost and sent, leaving out those of the last `margin` seconds."""
        lost, sent = self.first_lost_count, self.first_sent_count
        for packet in self._packets.values():
            if now - packet.first_sent_at < margin:
                sent -= 1
            else:
                lost += 1
        return lost, sent

    def _forget_oldest(self) -> None:
        seq = next(iter(self._packets))
        del self._packets[seq]
        self.first_lost_count += 1

    def _match(self, blocks: BlockList, report: FeedbackReport) -> None:
        words = blocks.blocks
        highest = self._highest_sent
        ahead = (blocks.begin_seq - highest) & 0xFFFF
        begin = highest + (ahead if ahead < 0x8000 else ahead - 0x10000)
        end = begin + len(words) - 1
        if end > highest:
            self.unsent_count += sum(
                1 for i in range(max(0, highest + 1 - begin), len(words)) if words[i] & 0x8000
            )
            words = words[: max(0, highest + 1 - begin)]
            end = begin + len(words) - 1
            if not words:
                return
        stream = StreamReport(self._ssrc, end, bool(words[-1] & 0x8000))
        self._acknowledge(begin, words, report, stream)
        self._find_lost(stream)
        report.streams.append(stream)

    def _acknowledge(
        self, begin: int, words: list[int], report: FeedbackReport, stream: StreamReport
    ) -> None:
        pop = self._packets.pop
        report_time = report.report_time
        acked = stream.acked
        seq = begin - 1
        for word in words:
            seq += 1
            if word < 0x8000:
                continue
            packet = pop(seq, None)
            if packet is None:
                if seq < (self._first_sent or 0):
                    self.unsent_count += 1
                else:
                    stream.repeats = True
                continue
            packet.acked = True
            packet.ecn = (word >> 13) & 3
            packet.arrived_at = report_time - (word & 0x1FFF) * _OFFSET_UNIT
            acked.append(packet)
            if packet.transmissions > 1:
                self._judge_copy(packet)
            else:
                self._min_delay.update(packet.arrived_at - packet.sent_at, report.received_at)
        if acked and acked[-1].seq > self._highest_acked:
            self._highest_acked = acked[-1].seq
            self._highest_acked_sent_at = acked[-1].first_sent_at

    def _judge_copy(self, packet: SentPacket) -> None:
        least = self._min_delay.value
        if least is None or packet.arrived_at - packet.sent_at > least - _EARLY:
            self.first_lost_count += 1

    def _find_lost(self, stream: StreamReport) -> None:
        horizon = self._highest_acked_sent_at - REORDER_TIME
        for seq, packet in self._packets.items():
            if seq >= self._highest_acked:
                break
            if not packet.lost and packet.sent_at < horizon:
                packet.lost = True
                stream.lost.append(packet)


class ReceiverClock:
    """A receiver's 32-bit Q16 clock (wraps at 18.2 h) as seconds that grow with ours.

    A restarted receiver starts another clock. It shows as an advance that
    differs from our own by more than `MAX_STEP`; the new clock is then laid
    over the old one at the moment of its first report, so that one-way delays
    stay comparable and no base delay is spoiled.
    """

    MAX_STEP = 5.0

    def __init__(self) -> None:
        self.jumps = 0
        self._ticks: int | None = None
        self._time = 0.0
        self._heard_at = 0.0

    def unwrap(self, ticks: int, now: float) -> float:
        """The report timestamp in seconds, unwrapped. A reordered report goes back a little."""
        if self._ticks is None:
            self._set(ticks, ticks / _TICKS, now)
            return self._time
        step = (ticks - self._ticks) & 0xFFFFFFFF
        advance = (step if step < 0x80000000 else step - 0x100000000) / _TICKS
        elapsed = now - self._heard_at
        if abs((step / _TICKS) - elapsed) <= self.MAX_STEP:
            self._set(ticks, self._time + step / _TICKS, now)
            return self._time
        if -self.MAX_STEP <= advance < 0:
            return self._time + advance
        self.jumps += 1
        self._set(ticks, self._time + elapsed, now)
        return self._time

    def _set(self, ticks: int, time: float, now: float) -> None:
        self._ticks, self._time, self._heard_at = ticks, time, now
