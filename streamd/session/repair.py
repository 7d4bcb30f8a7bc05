"""Plain retransmission: lost packets go out again, unchanged, from the front of the queue.

On every report, each packet older than the newest acknowledged one that is
still unacknowledged is sent again when a round trip has gone by since its last
transmission and something sent after that was acknowledged, at most `limit`
times. Same sequence number, timestamp and marker: the receiver needs no support,
and the controller sees one packet per number. (A report may have left the
receiver just before a copy came, and be here a round trip after the copy left.)
Source: specification of the BW tool's video mode ("Fake It No More", section 2.4).

What has been missing for too long is not worth the wait: later pictures would
queue behind it. When a copy of the oldest overtaken packet would arrive after the
deadline of its frame, as after an outage, all of them are given up, and the picture
has to start afresh.

At the end of a stream no newer packet will be acknowledged: then what no packet
has overtaken is sent again by time alone, after the longest a report may take.
"""

from streamd.session.history import SentHistory
from streamd.session.queue import PacketQueue

DEADLINE = 1.0
"""A packet of a frame made longer ago than this comes too late (s)."""
REPORT_TIME = 0.1
"""How long a receiver may hold a packet before it reports it, with a margin (s)."""


class Retransmitter:
    """Moves lost packets from the ledger back to the queue."""

    def __init__(
        self, history: SentHistory, queue: PacketQueue, *, limit: int, deadline: float = DEADLINE
    ) -> None:
        """`limit`: retransmissions per packet; 0 switches repair off. `deadline` in s."""
        self._history = history
        self._queue = queue
        self._limit = limit
        self._deadline = deadline
        self.hopeless = False
        """Packets were given up because of their age; whoever acts on it clears it."""

    def on_report(self, srtt: float, now: float) -> int:
        """Queue what is due again; returns how many packets."""
        overtaken = self._history.overtaken()
        if not overtaken:
            return 0
        oldest = next(iter(overtaken.values()))
        if now + srtt / 2 - oldest.frame_time > self._deadline:
            for seq in list(overtaken):
                self._history.give_up(seq)
            self.hopeless = True
            return 0
        newest = self._history.newest_acked_sent_at
        due, spent = [], []
        for seq, packet in overtaken.items():
            if packet.queued:
                continue
            if packet.transmissions > self._limit:
                if packet.lost:
                    spent.append(seq)
            elif packet.sent_at <= newest and now - packet.sent_at >= srtt:
                due.append(packet)
        for seq in spent:
            self._history.give_up(seq)
        for packet in reversed(due):
            self._queue.push_front(packet, now)
        return len(due)

    def on_silence(self, srtt: float, now: float) -> int:
        """Queue whatever should have been reported by now; returns how many packets."""
        due = [
            packet
            for packet in self._history.outstanding()
            if packet.seq > self._history.highest_acked
            and not packet.queued
            and packet.transmissions <= self._limit
            and now - packet.frame_time <= self._deadline
            and now - packet.sent_at >= srtt + REPORT_TIME
        ]
        for packet in reversed(due):
            self._queue.push_front(packet, now)
        return len(due)
