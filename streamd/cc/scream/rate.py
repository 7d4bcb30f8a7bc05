"""From the window to the target rate of each stream (spec 3.4, 3.5, 3.6, 8.11).

Theory of operation. The window over the round-trip time, less a margin, is the
rate for all streams; it is shared by priority, and what one stream cannot use
goes to the others. The queue between encoder and pacer lowers the target while
it is older than half a frame interval (`rate_adjust`, made in `frames.py`),
and is thrown away as a whole when older than its limit.

Differences from the reference: none.
"""

from collections.abc import Sequence

from streamd.cc.filters import total
from streamd.cc.scream import constants as c
from streamd.cc.scream.delay import reset_base
from streamd.cc.scream.state import Connection, Stream


def allocate(conn: Connection, streams: Sequence[Stream], mss_ratio: float) -> None:
    """(8.11): share what the window gives per round trip, by priority."""
    rtt = min(0.2, max(0.001, conn.rtt_s + 0.001))
    left = 8 * conn.ref_wnd / rtt
    left *= 1 - min(0.2, max(0.0, mss_ratio - 0.1))
    left /= c.RATE_MARGIN
    left *= conn.mss_eff / (conn.mss_eff + c.HEADER_OVERHEAD)
    takers = list(streams)
    for stream in takers:
        stream.rate_share = 0.0
    while takers and left > 1:
        weight = total(s.priority for s in takers)
        if weight <= 0.01:
            break
        unused = 0.0
        for stream in takers:
            stream.rate_share += left * stream.priority / weight
            if stream.rate_share > stream.max_bps:
                unused += stream.rate_share - stream.max_bps
                stream.rate_share = stream.max_bps
        takers = [s for s in takers if s.rate_share < s.max_bps]
        left = unused


def update_target(conn: Connection, stream: Stream, t: int) -> None:
    """(3.6): throw away a queue that is too old, then make the target."""
    check_queue(conn, stream, t)
    target = stream.rate_share / (1 + stream.rate_adjust)
    stream.target_bps = target = min(stream.max_bps, max(stream.min_bps, target))
    target *= stream.target_scale
    change = (target - stream.target_h) / stream.target_h
    hysteresis = conn.config.rate_hysteresis
    if change > hysteresis or change < -hysteresis / 4:
        stream.target_h = target


def check_queue(conn: Connection, stream: Stream, t: int) -> None:
    """Throw the waiting packets away when the oldest is older than the limit."""
    stream.checked_at = t
    if stream.last_discard is None:
        stream.last_discard = t
    head_time = stream.head_tick(conn)
    if head_time is None or (t - head_time) / c.TICKS <= conn.config.max_rtp_queue_delay:
        return
    if t - stream.last_discard > c.DISCARD_HOLD:
        stream.last_discard = t
        stream.queue.clear()
        stream.discarded = True
        stream.loss_epoch = True
        stream.target_scale = 1.0


def tick_rates(conn: Connection, streams: Sequence[Stream], t: int) -> None:
    """Every 100 ms (3.2 step 1): rates of each stream and their sums."""
    conn.last_rate = t
    for stream in streams:
        _tick_stream(conn, stream, t)
    conn.total_acked_bps = total(s.acked_bps for s in streams)
    conn.total_rtp_bps = total(s.rtp_avg_bps for s in streams)


def _tick_stream(conn: Connection, stream: Stream, t: int) -> None:
    """(3.5); the first tick only starts the clock."""
    if stream.rate_tick is not None:
        per_second = 8 * c.TICKS / (t - stream.rate_tick)
        stream.acked_bps = stream.acked_bytes * per_second
        stream.lost_bps = stream.lost_bytes * per_second
        old = 0.5 if conn.head else 0.8
        sent_bps = stream.tx_bytes * per_second
        stream.tx_avg_bps = old * stream.tx_avg_bps + (1 - old) * sent_bps
        stream.rtp_history[stream.rtp_tick_count % 4] = stream.rtp_bytes * per_second
        stream.rtp_tick_count += 1
        stream.rtp_avg_bps = total(stream.rtp_history) / 4
        if stream.lost_bytes:
            stream.loss_epoch = True
        if conn.config.adaptive_target_scale and stream.rtp_tick_count > 4:
            _adapt_scale(stream)
    stream.rate_tick = t
    stream.tx_bytes = stream.acked_bytes = stream.lost_bytes = 0
    stream.ce_bytes = stream.rtp_bytes = 0


def _adapt_scale(stream: Stream) -> None:
    scale = stream.target_scale
    if stream.rtp_avg_bps > 0:
        wanted = stream.target_bps * scale / stream.rtp_avg_bps
        stream.target_scale = min(1.1, max(0.8, 0.98 * scale + 0.02 * wanted))


def target_bitrate(conn: Connection, stream: Stream, t: int) -> float:
    """The reference's getTargetBitrate (3.4): -1 once after a discard or loss, else bit/s."""
    wanted = stream.discarded or stream.repair
    stream.discarded = stream.repair = False
    if wanted and not stream.negative:
        stream.negative = True
        rate = -1.0
    else:
        stream.negative = False
        rate = stream.last_positive = stream.target_scale * stream.target_h
    if conn.qd_min_slow > conn.qd_target / 8:
        rate *= _drain(conn, t)
    return rate


def _drain(conn: Connection, t: int) -> float:
    """Base-delay drain: once a minute, send half for five round trips, then measure anew."""
    if t - conn.last_rate_limit > c.DRAIN_INTERVAL:
        conn.last_rate_limit = t
        conn.draining = True
    if not conn.draining:
        return 1.0
    if t - conn.last_rate_limit < max(c.DRAIN_MIN, 5 * conn.s_rtt):
        return 0.5
    conn.draining = False
    reset_base(conn)
    conn.queue_delay = 0.0
    return 1.0
