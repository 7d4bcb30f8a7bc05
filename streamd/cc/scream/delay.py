"""Queue delay: base delay, averages and what they drive (spec 6, 7.4, 12).

Theory of operation. The one-way delay of a packet less the smallest of the last
500 s (50 slots of 10 s) is the queue delay; the two clocks need not agree. Its
average rises slowly and falls at once, and is counted from a slow average of
its own minima, which is what a base delay learnt over a standing queue leaves
behind. When no packet has come within 1 ms of the base for 490 s, the sender
lets the bottleneck drain for two round trips to measure the base again.

Profile `head` scales growth and headroom by how far the delay swings (latency
difference), `2026-03-04` by how often it exceeds 10 ms (jitter).

Differences from the reference: one-way delays are not modulo 2^32, so a clock
that starts anew is told by a delay above 16 s, which restarts the history as
a negative modular one does there; no clock drift compensation (off there).
"""

from streamd.cc.scream import constants as c
from streamd.cc.scream.state import INFINITE, Connection


def close_base_slot(conn: Connection, t: int) -> None:
    """A slot of 10 s is over: keep its minimum, start the next (6)."""
    slots = conn.base_slots
    if len(slots) < c.BASE_SLOTS:
        slots.append(conn.current_min_owd)
    else:
        slots[conn.base_slot] = conn.current_min_owd
    conn.base_slot = (conn.base_slot + 1) % c.BASE_SLOTS
    conn.current_min_owd = INFINITE
    conn.base_owd = min(slots)
    conn.last_base = t
    if t - conn.last_refresh > c.REFRESH_AFTER:
        conn.last_refresh = t


def reset_base(conn: Connection) -> None:
    """Forget every one-way delay seen (6, 3.4)."""
    conn.base_slots.clear()
    conn.base_slot = 0
    conn.base_owd = conn.current_min_owd = INFINITE
    conn.qd_min_slow = 0.0


def track_extremes(conn: Connection, smallest: float, largest: float) -> None:
    """(4) step 4, for the delays of one block list."""
    if smallest < conn.qd_min_avg:
        conn.qd_min_avg = smallest
    conn.qd_max_avg = min(conn.qd_target, max(conn.qd_max_avg, largest))


def update_averages(conn: Connection, t: int) -> None:
    """Once per reaction interval (7.4), in the order of (6)."""
    if t - conn.last_qd_slow > 100 * conn.s_rtt:
        conn.last_qd_slow = t
        least = conn.qd_min
        slow = conn.qd_min_slow
        conn.qd_min_slow = least if least < slow else 7 / 8 * slow + least / 8
        conn.qd_min = 1000.0
    sample = conn.queue_delay - conn.qd_min_slow
    if sample < conn.queue_delay_avg:
        conn.queue_delay_avg = sample
    else:
        conn.queue_delay_avg = 0.75 * conn.queue_delay_avg + 0.25 * sample
    if conn.head:
        _latency_difference(conn)
        conn.max_policed = min(c.MAX_POLICED, 1.001 * conn.max_policed)
    else:
        _jitter(conn)


def _latency_difference(conn: Connection) -> None:
    """Profile `head`: how far the queue delay swings."""
    difference = min(2 * c.LATENCY_THRESHOLD_S, max(0.0, conn.qd_max_avg - conn.qd_min_avg))
    conn.latency_diff_avg += (difference - conn.latency_diff_avg) / 32
    conn.latency_scale = min(1.0, max(0.0, 1 - conn.latency_diff_avg / c.LATENCY_THRESHOLD_S))
    conn.qd_max_avg *= 15 / 16
    conn.qd_min_avg += (conn.qd_max_avg - conn.qd_min_avg) / 16


def _jitter(conn: Connection) -> None:
    """Profile `2026-03-04`: how far the queue delay exceeds 10 ms (12)."""
    excess = (conn.queue_delay - conn.qd_min_slow) / c.LATENCY_THRESHOLD_S - 1
    conn.jitter = min(0.2, (63 * conn.jitter + max(0.0, excess)) / 64)


def jitter_scale(conn: Connection, mss_ratio: float) -> float:
    """V of (12): 1 without jitter, negative where it exceeds its threshold."""
    threshold = max(0.05, 0.1 * (1 - mss_ratio / 0.1))
    return (threshold - conn.jitter) / threshold
