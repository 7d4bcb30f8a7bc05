"""Loss detection (spec 5).

Theory of operation. When a sequence number H is acknowledged as the end of a
report or of a frame, everything up to H has left the network: it is taken off
the bytes in flight. A packet up to H that is not acknowledged is lost

* when it lies 512 numbers behind the previous such H, or
* when it was sent more than the reorder time before the packet acknowledged
  last, the wait being longer by the media time between the two. With live
  timestamps both sides grow alike, so this rule hardly ever fires; "repairing"
  it leaves the reference at the first loss.

A loss raises a loss event at most once per round trip; profile `head` only
when the filtered loss rate is above 1 % or the queue is growing.

Differences from the reference: only entries a walk can change are visited
(`ring.py`); numbers do not wrap; an alias of an entry skipped 4096 numbers ago
is not mistaken for a packet never sent.
"""

from bisect import bisect_left, bisect_right

from streamd.cc.scream import constants as c
from streamd.cc.scream.ring import ACKED, PASSED, USED, TxRing
from streamd.cc.scream.state import Connection, Stream

_FRESH = USED | ACKED  # acknowledged, not passed yet: the usual case


def detect_losses(conn: Connection, stream: Stream, highest: int, t: int) -> None:
    """Walk up to `highest`, which a report has just named as received."""
    ring = stream.ring
    previous = ring.hi_acked
    if previous is None:
        return
    ring.hi_acked = highest
    if ring.open:
        _expire(conn, stream, previous, highest, t)
        _walk_open(conn, stream, previous, highest, t)
    first = max(ring.scanned + 1, highest - c.RING_MASK)
    if highest >= first:
        _walk_new(conn, stream, first, highest, t)
        ring.scanned = highest


def _expire(conn: Connection, stream: Stream, previous: int, highest: int, t: int) -> None:
    """First rule: what now lies more than 512 behind."""
    ring = stream.ring
    end = previous - c.LOSS_DEPTH
    if ring.open[0] >= end:
        return
    step = highest - previous
    begin = end - (step if 0 <= step < c.LOSS_STEP else c.LOSS_STEP)
    first, last = bisect_left(ring.open, begin), bisect_left(ring.open, end)
    for seq in ring.open[first:last]:
        index = seq & c.RING_MASK
        if ring.seqs[index] == seq:
            state = ring.flags[index]
            ring.flags[index] = 0
            if state & (USED | ACKED) == USED:
                _lost(conn, stream, ring.sizes[index], t)
    del ring.open[first:last]
    ring.prune()


def _walk_open(conn: Connection, stream: Stream, previous: int, highest: int, t: int) -> None:
    """Second rule, for entries an earlier walk has passed or that were sent again."""
    entries = stream.ring.open
    first = bisect_left(entries, previous - c.LOSS_DEPTH)
    last = bisect_right(entries, highest)
    still_open = [seq for seq in entries[first:last] if _settle(conn, stream, seq, t)]
    if len(still_open) != last - first:
        entries[first:last] = still_open


def _walk_new(conn: Connection, stream: Stream, first: int, last: int, t: int) -> None:
    """Entries no walk has passed: in bulk where all are acknowledged."""
    ring = stream.ring
    begin = first & c.RING_MASK
    count = last - first + 1
    end = begin + count
    if end <= c.RING and ring.flags.count(_FRESH, begin, end) == count:
        ring.flags[begin:end] = bytes(count)
        left = sum(ring.sizes[begin:end])
        conn.bytes_newly_acked += left
        conn.bytes_in_flight = max(0, conn.bytes_in_flight - left)
        stream.acked_bytes += left
        if conn.loss_rate and conn.head:
            conn.loss_rate *= (1 - _loss_gain(conn)) ** count
        return
    for seq in range(first, last + 1):
        if _settle(conn, stream, seq, t):
            ring.open.append(seq)


def _settle(conn: Connection, stream: Stream, seq: int, t: int) -> bool:
    """Pass one entry and finish it if acknowledged or lost; True: it stays open."""
    ring = stream.ring
    index = seq & c.RING_MASK
    flags = ring.flags[index]
    if not flags & USED or ring.seqs[index] != seq:
        return False
    if not flags & PASSED:
        size = ring.sizes[index]
        conn.bytes_newly_acked += size
        conn.bytes_in_flight = max(0, conn.bytes_in_flight - size)
        stream.acked_bytes += size
        ring.flags[index] = flags | PASSED
    if flags & ACKED:
        ring.flags[index] = 0
        if conn.head:
            conn.loss_rate += (0 - conn.loss_rate) * _loss_gain(conn)
        return False
    if _overdue(conn, ring, index):
        ring.flags[index] = 0
        _lost(conn, stream, ring.sizes[index], t)
        return False
    return True


def _overdue(conn: Connection, ring: TxRing, index: int) -> bool:
    # modulo 2^32 as in the reference: RTP time ahead of ts_high makes a wait of hours
    media = (((ring.ts_high or 0) - ring.rtp[index]) & c.U32) / c.RTP_HZ
    return ring.tx[index] + (conn.config.reorder_time + media) * c.TICKS < ring.acked_tx


def _loss_gain(conn: Connection) -> float:
    return min(0.0025, conn.mss / conn.ref_wnd / 2)


def _lost(conn: Connection, stream: Stream, size: int, t: int) -> None:
    if t - conn.last_event > conn.s_rtt and conn.config.loss_beta < 1:
        _raise_loss_event(conn)
    stream.lost_bytes += size
    stream.total_lost_bytes += size
    stream.packets_lost += 1
    stream.repair = True
    if conn.head:
        conn.loss_rate += (1 - conn.loss_rate) * _loss_gain(conn)


def _raise_loss_event(conn: Connection) -> None:
    short_queue = conn.queue_delay_avg <= conn.qd_target / 4
    if conn.head and conn.loss_rate <= c.LOSS_RATE_THRESHOLD and short_queue:
        return
    conn.loss_event = True
    if not conn.head or not conn.config.policer_protection:
        return
    if conn.loss_rate > c.POLICER_LOSS_RATE and conn.queue_delay_avg < conn.qd_target / 4:
        if not conn.policed:
            conn.max_policed = c.POLICER_BETA * (conn.ref_wnd + conn.ref_wnd_i) / 2
        conn.policed = True
    else:
        conn.policed = False
