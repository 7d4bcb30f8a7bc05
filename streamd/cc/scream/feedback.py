"""Feedback processing (spec 4): acknowledge packets, measure round trip and delay.

One call per block list. The work per packet is one loop on local variables;
loss detection (5) runs at each frame end and at the end of the list.

Differences from the reference: a list that ends further behind than the loss
scan reaches is ignored (there, beyond 535, it is taken to lie ahead); the RTP
time of the first acknowledged packet is believed whatever it is, so a random
start is normal.
"""

from streamd.cc.api import StreamReport
from streamd.cc.scream import constants as c
from streamd.cc.scream import delay
from streamd.cc.scream.loss import detect_losses
from streamd.cc.scream.ring import ACKED, USED
from streamd.cc.scream.state import Connection, Stream
from streamd.ecn import CE

_TICKS = float(c.TICKS)


def process_list(conn: Connection, stream: Stream, report: StreamReport, t: int) -> None:
    """Steps 1 to 4 for every received block of one list; step 5 (7) is the caller's."""
    if not report.acked and not report.repeats:
        return
    if conn.bytes_in_flight > conn.max_bif:
        conn.max_bif = conn.bytes_in_flight
    if report.repeats:
        delay.track_extremes(conn, conn.queue_delay, conn.queue_delay)
    end_is_new = report.acked and _acknowledge(conn, stream, report, t)
    if report.end_received:
        if end_is_new:
            _update_rtt(conn, t - stream.ring.acked_tx, t)
        detect_losses(conn, stream, report.end_seq, t)


def _acknowledge(conn: Connection, stream: Stream, report: StreamReport, t: int) -> bool:
    """Mark the newly acknowledged; True: the last block of the list was one of them."""
    ring = stream.ring
    flags, seqs, tx = ring.flags, ring.seqs, ring.tx
    base, slot_min = conn.base_owd, conn.current_min_owd
    slot_over = t - conn.last_base >= c.BASE_SLOT
    end_seq = report.end_seq
    ts_high = ring.ts_high
    if ts_high is None:
        ts_high = report.acked[0].rtp_time
    delivered = marked = marked_bytes = 0
    smallest, largest, latest = c.CLOCK_JUMP, -1, -1
    seq = -1
    for packet in report.acked:
        number = packet.seq
        index = number & c.RING_MASK
        state = flags[index]
        if state & (USED | ACKED) != USED or seqs[index] != number:
            continue  # declared lost before, or forgotten
        flags[index] = state | ACKED
        seq = number
        sent = tx[index]
        delivered += 1
        if packet.ecn == CE:
            marked += 1
            marked_bytes += packet.size
        if (packet.rtp_time - ts_high) & c.U32 < c.MAX_RTP_STEP:
            ts_high = packet.rtp_time
        owd = int(packet.arrived_at * _TICKS) - sent
        if owd < slot_min:
            slot_min = owd
            if owd < base:
                base = owd
        if slot_over:
            slot_over = False
            conn.current_min_owd = slot_min
            delay.close_base_slot(conn, t)
            base, slot_min = conn.base_owd, conn.current_min_owd
        latest = owd - base
        if latest > largest:
            largest = latest
        if latest < smallest:
            smallest = latest
        if packet.marker and number != end_seq:
            ring.acked_tx, ring.ts_high = sent, ts_high
            detect_losses(conn, stream, number, t)
    if not delivered:
        return False
    ring.acked_tx, ring.ts_high = sent, ts_high
    conn.base_owd, conn.current_min_owd = base, slot_min
    _count(conn, stream, delivered, marked, marked_bytes)
    _apply_delay(conn, smallest, largest, latest, t)
    return seq == end_seq


def _count(conn: Connection, stream: Stream, delivered: int, marked: int, size: int) -> None:
    conn.delivered += delivered
    if marked:
        conn.marked += marked
        conn.bytes_newly_acked_ce += size
        conn.ce_in_feedback = True
        stream.ce_bytes += size
        stream.ce_packets += marked


def _apply_delay(conn: Connection, smallest: int, largest: int, latest: int, t: int) -> None:
    """Queue delays of the list in ticks: least, greatest, last (6)."""
    if largest > c.CLOCK_JUMP:
        delay.reset_base(conn)
        smallest = largest = latest = 0
    if smallest < c.LOW_DELAY:
        conn.last_refresh = t - 3 * conn.s_rtt
    conn.queue_delay = latest / c.TICKS
    delay.track_extremes(conn, smallest / c.TICKS, largest / c.TICKS)


def _update_rtt(conn: Connection, rtt: int, t: int) -> None:
    """Smoothed round-trip times; the receiver's hold time is part of them. At least one tick."""
    if rtt >= c.MAX_RTT:
        return
    short = conn.s_rtt_sh
    conn.s_rtt_sh_prev = short
    conn.s_rtt_sh = short = max(1, (7 * short + rtt) // 8)
    if t - conn.last_srtt <= short:
        return
    conn.last_srtt = t
    rest = 1023 if conn.head and conn.app_limited and conn.s_rtt > short else 7
    conn.s_rtt = max(1, (rest * conn.s_rtt + short) // (rest + 1))
    conn.rtt_s = conn.s_rtt / c.TICKS
