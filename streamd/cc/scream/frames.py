"""What each queued packet and each finished frame tells (spec 3.1).

Theory of operation. The interval and the size of frames give the nominal frame
size at the present target. A frame larger than that is paced faster; how large
frames get (80th percentile of a decaying histogram) says how much window to
leave for them at full rate. The age of the queue when a frame is complete
integrates into `rate_adjust`, which lowers the target by up to a third.

Differences from the reference: a frame interval below 1 ms is taken as 1 ms.
Packets discarded to let the base delay be measured anew (6) ask for a key
frame, as other discards do.
"""

from streamd.cc.scream import constants as c
from streamd.cc.scream.rate import update_target
from streamd.cc.scream.state import Connection, Stream


def end_of_frame(conn: Connection, stream: Stream, t: int) -> None:
    """The packet just queued carries the marker."""
    conn.new_frame = True
    if stream.frame_time is not None:
        interval = (t - stream.frame_time) / c.TICKS
        period = 0.9 * interval + 0.1 * stream.frame_period
        stream.frame_period = max(c.MIN_FRAME_PERIOD_S, period)
    stream.frame_time = t
    period = stream.frame_period
    nominal = stream.target_bps * period / 8
    head_time = stream.head_tick(conn)
    age = 0.0 if head_time is None else (t - head_time) / c.TICKS
    error = 0.2 * (age - period / 2) / period
    stream.rate_adjust = min(0.5, max(0.0, stream.rate_adjust + error / 8))
    frame_size = max(stream.queue.bytes_queued, stream.frame_bytes)
    stream.frame_count += 1
    if conn.config.frame_size_headroom and stream.frame_bytes > nominal:
        _note_large_frame(stream, nominal)
    stream.adaptive_pace = 1.0
    if nominal > 500:
        most = conn.config.max_adaptive_pacing
        stream.adaptive_pace = min(most, max(1.0, frame_size / nominal))
    stream.frame_bytes = 0
    update_target(conn, stream, t)


def _note_large_frame(stream: Stream, nominal: float) -> None:
    """Enter a frame above the nominal size and read the percentile."""
    size = stream.frame_bytes
    excess = max(0.0, min(size - nominal, size - stream.large_frame))
    stream.large_frame = size
    bins = stream.histogram
    span = c.HISTOGRAM_SPAN * nominal
    bins[min(c.HISTOGRAM_BINS - 1, int(excess / span * c.HISTOGRAM_BINS))] += 1
    decay = c.HISTOGRAM_DECAY
    bins[:] = [count * decay for count in bins]
    if stream.frame_count <= c.HISTOGRAM_MIN_FRAMES:
        return
    stream.rel_frame_high = 1 + _percentile_bin(bins) * c.HISTOGRAM_SPAN / c.HISTOGRAM_BINS


def _percentile_bin(bins: list[float]) -> int:
    """The bin in which the running sum reaches the percentile."""
    wanted = c.HISTOGRAM_PERCENTILE * sum(bins)
    running = 0.0
    for index, count in enumerate(bins):
        running += count
        if running >= wanted:
            return index
    return len(bins) - 1


def discard_for_refresh(stream: Stream) -> None:
    """(3.1) step 4: let the bottleneck drain so that the base delay can be seen."""
    stream.queue.clear()
    stream.discarded = True
    stream.loss_epoch = True
