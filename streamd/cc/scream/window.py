"""The reference window (spec 8).

Theory of operation. The window is cut once per event: by a fixed factor on
loss and on CE with ECT(0), by half of alpha on CE with ECT(1), by half of the
virtual alpha on queue delay. It grows by about one packet per round trip, and
by a few percent more once a long time has passed without an event. Close to
the inflection point, the window at which congestion last began, growth and
L4S cuts are gentler (`scl`). It does not grow much beyond what is in fact in
flight, nor while the encoder already gets its maximum rate.

Differences from the reference: `max_policed` never exceeds its sentinel (there
it grows without bound and in the end pins the window to its minimum, public
issue 75 of the reference).
"""

from collections.abc import Sequence

from streamd.cc.filters import total
from streamd.cc.scream import constants as c
from streamd.cc.scream.competing import update_target
from streamd.cc.scream.delay import jitter_scale
from streamd.cc.scream.events import rtt_factor
from streamd.cc.scream.pacing import update_pacing
from streamd.cc.scream.rate import allocate
from streamd.cc.scream.state import Connection, Stream


def update_window(conn: Connection, streams: Sequence[Stream], t: int) -> None:
    """One pass of (8): react to the events noted, grow, and share the rate."""
    conn.qd_min = min(conn.qd_min, conn.queue_delay)
    span = c.POST_CONGESTION_RTTS * conn.s_rtt
    conn.post_scale = min(1.0, max(0.0, (t - conn.last_congestion) / span))
    total_target = total(s.target_bps for s in streams)
    update_pacing(conn, streams, total_target)
    if t - conn.last_slow > c.SLOW_INTERVAL:
        conn.last_slow = t
        _slow_update(conn, streams, total_target, t)
    mss_ratio = conn.mss_eff / conn.ref_wnd
    scale = _trend_scale(conn, mss_ratio)
    headroom_scale = max(0.0, scale)
    conn.window_headroom = c.MIN_WINDOW_HEADROOM + headroom_scale * (
        conn.config.max_window_headroom - c.MIN_WINDOW_HEADROOM
    )
    near = _inflection_scale(conn)
    _reduce(conn, total_target, near, scale, t)
    if t - conn.last_rtt_tick > conn.s_rtt:
        conn.last_rtt_tick = t
        conn.loss_event_rate = 0.98 * conn.loss_event_rate + 0.02 * conn.event_in_rtt
        conn.event_in_rtt = False
    increase = _increase(conn, mss_ratio, near, scale)
    _grow(conn, increase, total_target)
    _bound(conn)
    conn.bytes_newly_acked = conn.bytes_newly_acked_ce = 0
    allocate(conn, streams, mss_ratio)


def _slow_update(conn: Connection, streams: Sequence[Stream], total_target: float, t: int) -> None:
    """(8.3), every 50 ms."""
    if conn.config.competing_flows:
        update_target(conn)
    history = conn.in_flight_history
    del history[0]
    history.append(conn.max_bif)
    if total_target > 0.95 * conn.total_max_bps:
        full_rate = conn.total_max_bps / 8 * (conn.rtt_s + 0.001)
        limit = max(max(history), conn.max_bif, 1.5 * conn.rel_frame_high * full_rate)
        conn.ref_wnd = min(conn.ref_wnd, int(limit))
    if t - conn.started > c.IN_FLIGHT_WARM_UP:
        conn.max_bif_prev = conn.max_bif
        conn.max_bif = 0
    weight = total(s.priority for s in streams)
    conn.rel_frame_high = total(s.priority * s.rel_frame_high for s in streams) / weight


def _trend_scale(conn: Connection, mss_ratio: float) -> float:
    """1 while the queue delay is steady, towards 0 (or below) as it swings."""
    return conn.latency_scale if conn.head else jitter_scale(conn, mss_ratio)


def _inflection_scale(conn: Connection) -> float:
    """scl of (8.5): 0.1 at the inflection point, 1 from an eighth away."""
    distance = 8 * (conn.ref_wnd - conn.ref_wnd_i) / conn.ref_wnd_i
    return min(1.0, max(0.1, distance * distance))


def _reduce(conn: Connection, total_target: float, near: float, scale: float, t: int) -> None:
    """(8.6): the first of loss, CE, virtual CE."""
    if conn.loss_event:
        _note_inflection(conn, t, loss=True)
        factor = c.POLICED_LOSS_BETA if conn.policed else conn.config.loss_beta
    elif conn.ce_event:
        _note_inflection(conn, t, loss=False)
        factor = (
            _ce_factor(conn, total_target, near, scale, t) if conn.l4s else conn.config.ecn_beta
        )
    elif conn.virtual_ce_event:
        _note_inflection(conn, t, loss=False)
        cut = conn.virtual_alpha / 2
        if _below_acked_rate(conn, total_target):
            cut *= 0.25
        factor = 1 - cut / rtt_factor(conn)
    else:
        return
    conn.ref_wnd = max(conn.ref_wnd_min, int(conn.ref_wnd * factor))
    conn.last_congestion = t
    conn.post_scale = 0.0
    conn.event_in_rtt = True


def _ce_factor(conn: Connection, total_target: float, near: float, scale: float, t: int) -> float:
    """Back-off on CE with ECT(1): half of alpha, gentler near the inflection point."""
    cut = conn.alpha / 2
    if _below_acked_rate(conn, total_target):
        cut *= 0.25
    cut /= rtt_factor(conn)
    if conn.queue_delay < conn.qd_target / 4:
        cut *= max(0.25, near)
        cut *= min(1.0, max(0.25, scale))
    idle = c.IDLE_CONGESTION_RTTS * max(conn.s_rtt, c.VIRTUAL_RTT)
    if t - conn.last_congestion > idle:
        conn.ref_wnd = min(conn.ref_wnd, conn.max_bif_prev)
    return 1 - cut


def _below_acked_rate(conn: Connection, total_target: float) -> bool:
    """Profile `head`: the target has fallen well below what gets through."""
    return conn.head and total_target < c.ACKED_RATE_FRACTION * conn.total_acked_bps


def _note_inflection(conn: Connection, t: int, *, loss: bool) -> None:
    """Remember the window at which congestion began."""
    if conn.head:
        if not conn.i_blocked:
            conn.ref_wnd_i = conn.ref_wnd
            conn.i_blocked = True
        return
    if t - conn.last_record <= (c.DEADLOCK_TIME if loss else conn.s_rtt):
        return
    conn.last_record = t
    window = conn.ref_wnd
    if conn.records:
        conn.records = [*conn.records[1:], window]
    else:
        conn.records = [window] * 3
    conn.ref_wnd_i = sorted(conn.records)[1]
    if not loss and t - conn.last_congestion > 5 * conn.s_rtt:
        conn.records = [window] * 3


def _increase(conn: Connection, mss_ratio: float, near: float, scale: float) -> float:
    """(8.8), bytes; `mss_ratio` and `near` are those before the reduction."""
    increase = (conn.bytes_newly_acked - conn.bytes_newly_acked_ce) * mss_ratio
    increase *= max(0.25, near)
    increase *= min(1.0, conn.rtt_s / c.VIRTUAL_RTT_S)
    increase *= min(1.0, max(0.1, scale))
    growth = conn.config.increase_factor * conn.ref_wnd / conn.mss_eff
    return increase * (1 + growth * conn.post_scale * near)


def _grow(conn: Connection, increase: float, total_target: float) -> None:
    """(8.9): within what is in flight, and only below the maximum rate."""
    in_flight = max(conn.max_bif, conn.max_bif_prev)
    allowed = conn.mss_eff + conn.config.inflight_headroom * in_flight
    conn.app_limited = allowed < conn.ref_wnd
    candidate = conn.ref_wnd + int(increase + 0.5)
    if candidate <= allowed and total_target < conn.total_max_bps:
        if candidate > conn.ref_wnd:
            conn.i_blocked = False
        conn.ref_wnd = candidate


def _bound(conn: Connection) -> None:
    """(8.10)"""
    if conn.head:
        conn.ref_wnd = min(int(conn.max_policed), conn.ref_wnd)
    conn.ref_wnd = max(conn.ref_wnd, conn.ref_wnd_min)
    if conn.config.max_total_bps:
        limit = int(conn.config.max_total_bps * conn.rtt_s / 8)
        conn.ref_wnd = max(conn.ref_wnd_min, min(conn.ref_wnd, limit))
