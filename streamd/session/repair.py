"""Plain retransmission: lost packets go out again, unchanged, from the front of the queue.

On every report, each packet older than the newest acknowledged one that is
still unacknowledged is sent again when a round trip has gone by since its last
transmission, at most `limit` times. Same sequence number, timestamp and marker:
the receiver needs no support, and the controller sees one packet per number.
Source: specification of the BW tool's video mode ("Fake It No More", section 2.4).

At the end of a stream no newer packet will be acknowledged: then everything
outstanding is sent again by time alone, after the longest a report may take.
"""

from streamd.session.history import SentHistory
from streamd.session.queue import PacketQueue

REPORT_TIME = 0.1
"""How long a receiver may hold a packet before it reports it, with a margin (s)."""


class Retransmitter:
    """Moves lost packets from the ledger back to the queue."""

    def __init__(self, history: SentHistory, queue: PacketQueue, *, limit: int) -> None:
        """`limit`: retransmissions per packet; 0 switches repair off."""
        self._history = history
        self._queue = queue
        self._limit = limit

    def on_report(self, srtt: float, now: float) -> int:
        """Queue what is due again; returns how many packets."""
        due, spent = [], []
        for seq, packet in self._history.overtaken().items():
            if packet.queued:
                continue
            if packet.transmissions > self._limit:
                if packet.lost:
                    spent.append(seq)
            elif now - packet.sent_at >= srtt:
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
            if not packet.queued
            and packet.transmissions <= self._limit
            and now - packet.sent_at >= srtt + REPORT_TIME
        ]
        for packet in reversed(due):
            self._queue.push_front(packet, now)
        return len(due)
