"""The ledger of packets in the network: feedback in, acknowledged and lost packets out.

What it decides, and by which rule:

* *acknowledged*: the first report that names a packet as received. The packet
  leaves the ledger; any later mention is a repeat.
* *overtaken*: not acknowledged although a later number was. Only these can be
  lost or be due for repair, so only these are looked at per report.
* *lost*, for controllers without a rule of their own: overtaken by a packet sent
  at least `REORDER_TIME` later. It stays in the ledger, a late acknowledgement or
  a retransmission can still come.
* *given up*: nobody waits for it any more, but a late report can still name it.
* *network loss* of a first transmission (metrics 1.4: a repair does not undo
  it): never acknowledged, or acknowledged only by a copy. Copies carry the same
  sequence number, so which one arrived is told by the one-way delay: an arrival
  too early for the first copy, by the smallest delay seen, was the first
  transmission.

The same way it is told that the *last* copy cannot be what arrived. Delays are
measured from the last transmission, so the arrival is then moved along with it:
one copy sent for nothing would otherwise look like a path shorter by a round
trip, and every later packet like one that had queued for as long.

Sequence numbers are unwrapped against the highest one sent, so a report can
only speak of the 65536 numbers around it; what was never sent is counted.
"""

from collections.abc import Iterable
from operator import attrgetter

from streamd.cc.api import FeedbackReport, SentPacket, StreamReport
from streamd.cc.filters import WindowedMin
from streamd.session.queue import MediaPacket
from streamd.session.receiver_clock import ReceiverClock
from streamd.session.rtx import RtxStream
from streamd.wire.ccfb import ATO_OVER_RANGE, ATO_UNAVAILABLE, BlockList, CongestionFeedback

REORDER_TIME = 0.03
"""A packet overtaken by one sent this much later is lost, not reordered (s)."""
MAX_OUTSTANDING = 16384
"""More unacknowledged packets are forgotten, oldest first: a quarter of the number space."""
MAX_AGE = 10.0
"""A packet unacknowledged for longer is forgotten (s)."""
_OFFSET_UNIT = 1 / 1024
_EARLY = 0.001
"""Slack on the smallest one-way delay: the unit of the arrival time offset."""


class SentHistory:
    """Outstanding packets of one SSRC, in sequence order."""

    def __init__(self, ssrc: int, *, rtx: RtxStream | None = None) -> None:
        """`rtx`: the stream the copies are sent in, if not in that of the originals."""
        self._ssrc = ssrc
        self._rtx = rtx
        self._packets: dict[int, MediaPacket] = {}
        self._overtaken: dict[int, MediaPacket] = {}
        self._given_up: dict[int, MediaPacket] = {}
        self._hole: int | None = None
        self._highest_sent = -1
        self._first_sent: int | None = None
        self._highest_acked = -1
        self._highest_acked_sent_at = 0.0
        self._clock = ReceiverClock()
        self._min_delay = WindowedMin(30.0)
        self.first_sent_count = 0
        self.first_lost_count = 0
        """First transmissions known to be lost; outstanding ones are not in it."""
        self.never_acked_count = 0
        """Packets forgotten of which no copy was ever acknowledged."""
        self.unsent_count = 0
        """Blocks that named packets never sent as received."""
        self.foreign_lists = 0
        """Block lists of an SSRC that is not ours."""

    def __len__(self) -> int:
        """Packets that are waited for."""
        return len(self._packets)

    @property
    def given_up_count(self) -> int:
        """Packets given up that a report may still name."""
        return len(self._given_up)

    @property
    def clock_jumps(self) -> int:
        """Times the receiver's clock was found to have started anew."""
        return self._clock.jumps

    def take_back_jump(self) -> None:
        """The last jump was no restart: see `ReceiverClock.take_back`."""
        self._clock.take_back()

    @property
    def newest_acked_sent_at(self) -> float:
        """When the packet with the highest acknowledged number was first sent (s)."""
        return self._highest_acked_sent_at

    @property
    def highest_acked(self) -> int:
        """Highest acknowledged sequence number; -1 before the first."""
        return self._highest_acked

    def on_sent(self, packet: MediaPacket, now: float) -> None:
        """Record a transmission, first or repeated; sets the packet's times."""
        packet.sent_at = now
        packet.transmissions += 1
        if packet.transmissions > 1:
            packet.lost = False
            if packet.transmissions == 2:
                packet.repaired_at = now
            return
        packet.first_sent_at = now
        self.first_sent_count += 1
        self._highest_sent = packet.seq
        if self._first_sent is None:
            self._first_sent = packet.seq
            self._highest_acked = packet.seq - 1
        self._packets[packet.seq] = packet
        if len(self._packets) > MAX_OUTSTANDING:
            self._forget_oldest()

    def awaits(self, packet: MediaPacket) -> bool:
        """Whether the packet was sent and is not acknowledged, given up or forgotten."""
        return packet.seq in self._packets

    def on_feedback(self, feedback: CongestionFeedback, *, now: float) -> FeedbackReport:
        """Match a decoded report with the packets sent.

        The result has a stream report for each list that names our SSRC, cut to
        the numbers really sent; what was cut off or is not ours is counted.
        """
        report = FeedbackReport(now, self._clock.unwrap(feedback.timestamp, now))
        for blocks in feedback.lists:
            if blocks.ssrc == self._ssrc:
                self._match(blocks, report)
            elif self._rtx is not None and blocks.ssrc == self._rtx.ssrc:
                self._match_copies(self._rtx.arrived(blocks), report)
            else:
                self.foreign_lists += 1
        return report

    def outstanding(self) -> Iterable[MediaPacket]:
        """Unacknowledged packets, in sequence order."""
        return self._packets.values()

    def overtaken(self) -> dict[int, MediaPacket]:
        """Unacknowledged packets below the highest acknowledged, in sequence order."""
        return self._overtaken

    def give_up(self, seq: int) -> None:
        """Nothing is done any more for an overtaken packet; a late report can still name it."""
        self._note_hole(seq)
        del self._overtaken[seq]
        self._given_up[seq] = self._packets.pop(seq)
        if len(self._given_up) > MAX_OUTSTANDING:
            self._forget_given_up()

    def give_up_all(self) -> None:
        """Nobody waits for what is outstanding any more; late reports can still name it."""
        for seq in self._packets:
            self._note_hole(seq)
            break
        self._overtaken.clear()
        self._given_up.update(self._packets)
        self._packets.clear()
        while len(self._given_up) > MAX_OUTSTANDING:
            self._forget_given_up()

    def forget(self) -> None:
        """Nobody will acknowledge what is outstanding: it counts as lost."""
        while self._packets:
            self._forget_oldest()
        while self._given_up:
            self._forget_given_up()

    def arrived(self, first: int, last: int) -> bool:
        """Whether nothing from `first` to `last` is outstanding; given up counts as arrived."""
        for seq in self._packets:
            if seq > last:
                return True
            if seq >= first:
                return False
        return True

    def take_hole(self) -> int | None:
        """The lowest number given up since the last call."""
        hole, self._hole = self._hole, None
        return hole

    def _note_hole(self, seq: int) -> None:
        if self._hole is None or seq < self._hole:
            self._hole = seq

    def oldest(self) -> MediaPacket | None:
        """The outstanding packet with the lowest number; None when nothing is outstanding."""
        return next(iter(self._packets.values()), None)

    def expire(self, now: float) -> None:
        """Forget packets that nobody will acknowledge any more; they count as lost."""
        while self._packets:
            packet = next(iter(self._packets.values()))
            if now - packet.sent_at < MAX_AGE:
                break
            self._forget_oldest()
        while self._given_up:
            packet = next(iter(self._given_up.values()))
            if now - packet.sent_at < MAX_AGE:
                return
            self._forget_given_up()

    def network_loss(self, now: float, margin: float) -> tuple[int, int]:
        """First transmissions lost and sent, leaving out those of the last `margin` seconds."""
        return self._with_undecided(self.first_lost_count, now, margin)

    def residual_loss(self, now: float, margin: float) -> tuple[int, int]:
        """Packets no copy of which arrived, and packets sent; margin as in `network_loss`."""
        return self._with_undecided(self.never_acked_count, now, margin)

    def _with_undecided(self, lost: int, now: float, margin: float) -> tuple[int, int]:
        sent = self.first_sent_count
        for undecided in (self._packets, self._given_up):
            for packet in undecided.values():
                if now - packet.first_sent_at < margin:
                    sent -= 1
                else:
                    lost += 1
        return lost, sent

    def _forget_oldest(self) -> None:
        seq = next(iter(self._packets))
        self._note_hole(seq)
        del self._packets[seq]
        self._overtaken.pop(seq, None)
        self.first_lost_count += 1
        self.never_acked_count += 1

    def _forget_given_up(self) -> None:
        del self._given_up[next(iter(self._given_up))]
        self.first_lost_count += 1
        self.never_acked_count += 1

    def _match(self, blocks: BlockList, report: FeedbackReport) -> None:
        highest, first = self._highest_sent, self._first_sent
        if first is None:
            self._count_unsent(blocks.blocks)
            return
        begin = highest + ((blocks.begin_seq - highest + 0x8000) & 0xFFFF) - 0x8000
        words = blocks.blocks
        ahead = max(0, highest + 1 - begin)
        if ahead < len(words):
            self._count_unsent(words[ahead:])
            words = words[:ahead]
        if begin < first:
            self._count_unsent(words[: first - begin])
            words = words[first - begin :]
            begin = first
        if not words:
            return
        stream = StreamReport(self._ssrc, begin + len(words) - 1, words[-1] >= 0x8000)
        self._acknowledge(begin, words, report, stream)
        if self._overtaken:
            self._find_lost(stream)
        report.streams.append(stream)

    def _match_copies(self, arrived: list[tuple[MediaPacket, int]], report: FeedbackReport) -> None:
        """Which transmission arrived is known here: it was a copy."""
        stream = StreamReport(self._ssrc, self._highest_acked, True)
        for packet, word in arrived:
            seq = packet.seq
            if self._packets.pop(seq, None) is None and self._given_up.pop(seq, None) is None:
                continue
            packet.acked = True
            packet.ecn = word >> 13 & 3
            self._take_untimed(packet, word & 0x1FFF, report.report_time)
            stream.acked.append(packet)
        if stream.acked:
            stream.acked.sort(key=attrgetter("seq"))
            self._settle(stream.acked)
            report.streams.append(stream)

    def _count_unsent(self, words: list[int]) -> None:
        self.unsent_count += sum(word >= 0x8000 for word in words)

    def _acknowledge(
        self, begin: int, words: list[int], report: FeedbackReport, stream: StreamReport
    ) -> None:
        packets, given_up = self._packets, self._given_up
        # Lists repeat the last reports: what lies before the oldest outstanding goes in bulk.
        known = next(iter(packets), self._highest_sent + 1) - begin
        if known > 0 and not given_up:
            stream.repeats = max(words[:known]) >= 0x8000
            words = words[known:]
            begin += known
        pop, acked, report_time = packets.pop, stream.acked, report.report_time
        seq = begin - 1
        for word in words:
            seq += 1
            if word < 0x8000:
                continue
            packet = pop(seq, None) or (given_up.pop(seq, None) if given_up else None)
            if packet is None:
                stream.repeats = True
                continue
            packet.acked = True
            packet.ecn = word >> 13 & 3
            offset = word & 0x1FFF
            if offset >= ATO_OVER_RANGE:
                self._take_untimed(packet, offset, report_time)
            else:
                packet.arrived_at = report_time - offset * _OFFSET_UNIT
                if packet.transmissions == 1:
                    self._min_delay.update(packet.arrived_at - packet.sent_at, report.received_at)
                else:
                    self._judge_copy(packet)
            acked.append(packet)
        if acked:
            self._settle(acked)

    def _take_untimed(self, packet: MediaPacket, offset: int, report_time: float) -> None:
        """An arrival as it is told; without a usable time now, or long ago if out of range."""
        unknown = offset == ATO_UNAVAILABLE
        packet.arrived_at = report_time - (0.0 if unknown else offset * _OFFSET_UNIT)
        if packet.transmissions > 1:
            self.first_lost_count += 1

    def _judge_copy(self, packet: MediaPacket) -> None:
        """Tell which transmission arrived: count the first as lost unless it is that one."""
        least = self._min_delay.value
        if least is None:
            self.first_lost_count += 1
            return
        sent_before = packet.arrived_at - least + _EARLY
        if packet.repaired_at < sent_before:
            self.first_lost_count += 1
            really_sent_at = packet.repaired_at
        else:
            really_sent_at = packet.first_sent_at
        if packet.sent_at >= sent_before:
            packet.arrived_at += packet.sent_at - really_sent_at

    def _settle(self, acked: list[SentPacket]) -> None:
        """Keep the overtaken packets: those acknowledged leave, those passed over now join."""
        overtaken, packets = self._overtaken, self._packets
        if overtaken:
            for packet in acked:
                overtaken.pop(packet.seq, None)
        newest = acked[-1]
        before, highest = self._highest_acked, newest.seq
        if highest <= before:
            return
        self._highest_acked = highest
        self._highest_acked_sent_at = newest.first_sent_at
        if next(iter(packets), highest) >= highest:
            return
        for seq in range(before + 1, highest):
            skipped = packets.get(seq)
            if skipped is not None:
                overtaken[seq] = skipped

    def _find_lost(self, stream: StreamReport) -> None:
        horizon = self._highest_acked_sent_at - REORDER_TIME
        for packet in self._overtaken.values():
            if not packet.lost and packet.sent_at < horizon:
                packet.lost = True
                stream.lost.append(packet)
