"""Congestion events at the end of a report (spec 7).

Theory of operation. A CE mark raises an event at most once per reaction
interval (the smaller of 30 ms and the round-trip time). A queue-delay average
above half of the target raises a virtual CE, so that the sender yields to a
growing queue also where nothing marks. Loss events come from `loss.py`.

Differences from the reference: none.
"""

from streamd.cc.scream import constants as c
from streamd.cc.scream.alpha import update_alpha
from streamd.cc.scream.delay import update_averages
from streamd.cc.scream.state import Connection


def reaction_interval(conn: Connection) -> int:
    """RI of the spec, in ticks."""
    return min(c.REACTION_INTERVAL, conn.s_rtt)


def rtt_factor(conn: Connection) -> float:
    """max(1, s_rtt/30 ms): long round trips spread a cut over several reactions."""
    return max(1.0, conn.s_rtt / c.REACTION_INTERVAL)


def end_of_report(conn: Connection, t: int) -> bool:
    """(7.1) to (7.8); True: the reference window is to be updated now."""
    interval = reaction_interval(conn)
    if conn.ce_in_feedback and t - conn.last_event > interval:
        conn.ce_event = True
        conn.last_event = t
    conn.ce_in_feedback = False
    update_alpha(conn, t)
    if t - conn.last_qd_avg > interval:
        conn.last_qd_avg = t
        update_averages(conn, t)
    half = conn.qd_target / 2
    if conn.queue_delay_avg > half and t - conn.last_event > interval:
        conn.virtual_ce_event = True
        excess = min(1.0, (conn.queue_delay_avg - half) / half)
        conn.virtual_alpha = excess / rtt_factor(conn)
    if conn.s_rtt_sh_prev > conn.s_rtt_sh and conn.fraction_marked == 1.0:
        conn.ce_event = False  # the queue is already draining
    event = conn.loss_event or conn.ce_event or conn.virtual_ce_event
    if event:
        conn.last_event = t
    if conn.last_window is None:
        conn.last_window = t
    return event or conn.new_frame or t - conn.last_window > interval


def events_handled(conn: Connection, t: int) -> None:
    """After the window update (7.8)."""
    conn.loss_event = conn.ce_event = conn.virtual_ce_event = False
    conn.new_frame = False
    conn.last_window = t
