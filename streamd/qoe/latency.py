"""From capture to display: a frame's latency and the parts it is made of.

Source: specification of metrics, section 5.2. All times are of one run clock; those of
another machine are mapped to it first (`streamd.qoe.clocks`).
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from streamd.errors import LocalMisuse
from streamd.qoe.frames import FrameRecord


class LatencyParts(NamedTuple):
    """Consecutive parts of a shown frame's way (s); none can be negative."""

    before_encode: float
    """Captured to the begin of encoding."""
    encode: float
    sender_wait: float
    """Encoded to the first packet sent."""
    pacing: float
    """First packet sent to the last one."""
    network: float
    """Last packet sent to the one that completed the frame received."""
    buffer: float
    """Complete to the begin of decoding: order, jitter buffer."""
    decode: float
    display: float
    """Decoded to shown, or handed to the sink where there is no display."""

    @property
    def total(self) -> float:
        """The glass-to-glass delay (s)."""
        return sum_in_order(self)


def sum_in_order(values: Iterable[float]) -> float:
    """Added one by one: the same on every Python version."""
    total = 0.0
    for value in values:
        total += value
    return total


def latency_parts(record: FrameRecord) -> LatencyParts | None:
    """None for a frame that was not shown, or one whose times are not all known.

    `last_sent` has to be of no later copy than the one that completed the frame. A part
    below 0 is a wrong mapping of clocks or a wrong log, never a delay: LocalMisuse.
    """
    times = _moments(record)
    if times is None:
        return None
    parts = LatencyParts(*(later - earlier for earlier, later in pairwise(times)))
    for name, value in parts._asdict().items():
        if value < 0:
            raise LocalMisuse(f"frame {record.frame_id}: {name} took {value:.6f} s")
    return parts


def _moments(record: FrameRecord) -> list[float] | None:
    moments = (
        *(record.captured_at, record.encode_start, record.encode_end),
        *(record.first_sent, record.last_sent, record.completed_at),
        *(record.decode_start, record.decoded_at, record.displayed_at),
    )
    known = [moment for moment in moments if moment is not None]
    return known if len(known) == len(moments) else None
