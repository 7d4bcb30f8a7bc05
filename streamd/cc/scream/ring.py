"""The transmitted packets of one stream (spec 2, 3.3) and which of them are still open.

A ring indexed by the sequence number, held as parallel lists: one store per
field when a packet is sent, no object per packet. The reference walks the 512
packets behind the highest acknowledgement at every report; here `open` lists
the few of them that the walk could still change, so a report costs what is new
in it. An entry the walk has passed is either finished or in `open`, which is
why the two are equivalent.
"""

from bisect import bisect_left

from streamd.cc.scream import constants as c

# state of an entry, a sum of:
USED = 1
ACKED = 2
PASSED = 4
"""Counted as having left the network."""


class TxRing:
    """Sent packets by sequence number modulo the ring size; numbers are unwrapped."""

    __slots__ = (
        "acked_tx",
        "flags",
        "hi_acked",
        "open",
        "rtp",
        "scanned",
        "seqs",
        "sizes",
        "ts_high",
        "tx",
    )

    def __init__(self) -> None:
        self.flags = bytearray(c.RING)
        self.seqs = [-1] * c.RING
        self.sizes = [0] * c.RING
        self.tx = [0] * c.RING
        """Time of transmission (ticks)."""
        self.rtp = [0] * c.RING
        self.hi_acked: int | None = None
        """Highest number acknowledged by the last walk (hi_seq_ack); None before any packet."""
        self.scanned = -1
        """Highest number any walk has passed."""
        self.acked_tx = 0
        """When the packet acknowledged last was sent (t_tx_ack, ticks)."""
        self.ts_high: int | None = None
        """Highest RTP time acknowledged (ts_ack_high); None before the first."""
        self.open: list[int] = []
        """Passed or repeated entries that are not finished, ascending."""

    def begin(self, seq: int) -> None:
        """The first packet of the stream is about to be entered."""
        self.hi_acked = seq
        self.scanned = seq - 1

    def reopen(self, seq: int) -> None:
        """A packet at or below `scanned` was sent again and its entry rewritten."""
        entries = self.open
        place = bisect_left(entries, seq)
        if place == len(entries) or entries[place] != seq:
            entries.insert(place, seq)

    def forget(self) -> int:
        """Drop every entry; returns the bytes that were still counted as in flight."""
        flags, sizes = self.flags, self.sizes
        in_flight = sum(sizes[i] for i in range(c.RING) if flags[i] and not flags[i] & PASSED)
        self.flags = bytearray(c.RING)
        self.open.clear()
        return in_flight

    def prune(self) -> None:
        """Drop from `open` what the ring has no room for any more."""
        entries = self.open
        horizon = self.scanned - c.RING_MASK
        if entries and entries[0] < horizon:
            del entries[: bisect_left(entries, horizon)]
