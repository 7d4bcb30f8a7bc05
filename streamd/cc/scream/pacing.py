"""Packet sizes, the smallest window they need, and pacing (spec 3.2, 8.2, 8.11).

Theory of operation. Packets leave at 1.5 times the media rate, faster by up to
1.5 again while a frame is larger than usual, so that a frame is out well
before the next. The largest packet of the last one to two seconds is the unit
of window growth and of the pacing interval.

Differences from the reference: pacing cannot be switched off.
"""

from collections.abc import Sequence

from streamd.cc.scream import constants as c
from streamd.cc.scream.state import Connection, Stream


def note_size(conn: Connection, size: int) -> None:
    """A packet of this size was queued or sent (3.1, 3.3)."""
    if size > conn.mss:
        conn.mss = size
        if size > conn.mss_eff:
            conn.mss_eff = size
    conn.min_dirty = False
    _raise_minimum(conn, 2)


def tick_mss(conn: Connection, t: int) -> None:
    """Once a second (3.2): forget the sizes of the second before last."""
    conn.last_mss = t
    conn.prev_mss = conn.mss
    conn.mss = c.INITIAL_MSS
    conn.mss_eff = conn.prev_mss
    _raise_minimum(conn, 3)
    conn.min_dirty = True


def _raise_minimum(conn: Connection, packets: int) -> None:
    conn.ref_wnd_min = max(conn.ref_wnd_min_low, packets * conn.mss_eff)
    conn.ref_wnd = max(conn.ref_wnd, conn.ref_wnd_min)


def choose_mss(conn: Connection, t: int) -> int:
    """RTP payload size to cut the next frame into; sets the window minimum for it."""
    config = conn.config
    sizes = config.mss_sizes
    if config.min_packets_in_flight and len(sizes) > 1:
        _step_mss(conn, t)
    size = sizes[conn.mss_choice]
    low = 2 * (size + 12)
    if low != conn.ref_wnd_min_low:
        conn.ref_wnd_min_low = low
        conn.min_dirty = True
    return size


def _step_mss(conn: Connection, t: int) -> None:
    sizes = conn.config.mss_sizes
    rtt_factor = min(1.0, c.VIRTUAL_RTT_S / max(conn.rtt_s, 1e-6))
    share = conn.ref_wnd / conn.config.min_packets_in_flight * rtt_factor
    choice = conn.mss_choice
    if choice + 1 < len(sizes) and share > sizes[choice + 1]:
        if t - conn.mss_changed > c.MSS_HOLD:
            conn.mss_choice = choice + 1
            conn.mss_changed = t
    elif choice and share < sizes[choice - 1]:
        conn.mss_choice = choice - 1
        conn.mss_changed = t


def update_pacing(conn: Connection, streams: Sequence[Stream], total_target: float) -> None:
    """(8.2), before each window update."""
    config = conn.config
    rate = c.MIN_PACING_BPS
    media = max(total_target, conn.total_rtp_bps)
    rate = max(rate, config.pacing_headroom * _frame_scale(streams) * media)
    if config.max_total_bps:
        rate = min(rate, config.pacing_headroom * config.max_total_bps)
    if config.relaxed_pacing and conn.total_max_bps:
        share = total_target / conn.total_max_bps
        if share > 0.8:
            rate /= min(1.0, max(0.2, 1 - (share - 0.8) / 0.2))
    conn.pace_interval = max(c.MIN_PACE_INTERVAL_S, conn.mss_eff * 8 / rate)
    conn.pace_ticks = int(conn.pace_interval * c.TICKS)


def _frame_scale(streams: Sequence[Stream]) -> float:
    """Mean, by target rate, over the streams whose last frame was larger than usual."""
    weight = total = 0.0
    for stream in streams:
        if stream.adaptive_pace > 1:
            weight += stream.target_bps
            total += stream.target_bps * stream.adaptive_pace
    return total / weight if weight else 1.0
