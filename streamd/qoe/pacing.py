"""How evenly a flow sends, seen through the frames it could carry (metrics of the SQP paper).

A bulk flow is looked at as if it had carried video: time is cut into slots of one frame
interval, and the bytes of n slots following each other, divided by n, are what a frame
encoded at that moment could have been. Source: specification of metrics, section 4; the
SQP paper, figure 15b.
"""

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from streamd.errors import LocalMisuse
from streamd.qoe.percentile import percentile

_LITTLE = 1e-9


class Sent(NamedTuple):
    """A packet of a bulk flow, in the order of sending."""

    sent_at: float
    """Seconds from the begin of the measurement."""
    size: int
    """Bytes on the wire."""
    arrived_at: float | None
    """None: lost."""


class FrameDelay(NamedTuple):
    """Of one simulated frame."""

    delay: float | None
    """Seconds from the start of its slot until its last byte was there; None: it never was."""
    unfinished: bool = False
    """Judged by the end of the measurement alone."""


def windowed_bitrate(slots: Sequence[int], n: int, interval: float) -> list[float]:
    """Bit rate over each `n` slots in a row (bit/s); full windows only.

    `slots` are bytes per slot of `interval` seconds. LocalMisuse unless `n` is positive.
    """
    if n < 1:
        raise LocalMisuse(f"a window of {n} slots")
    return [8 * sum(slots[k : k + n]) / (n * interval) for k in range(len(slots) - n + 1)]


class BitrateSpread(NamedTuple):
    """Of the rates of one window length (bit/s)."""

    mean: float
    p10: float
    p50: float
    p90: float

    @property
    def spread(self) -> float:
        """P90 less P10."""
        return self.p90 - self.p10


def bitrate_spread(rates: Sequence[float]) -> BitrateSpread | None:
    """What is reported of `windowed_bitrate` (section 4.1); None without a full window."""
    p10, p50, p90 = (percentile(rates, percent) for percent in (10, 50, 90))
    if p10 is None or p50 is None or p90 is None:
        return None
    return BitrateSpread(fmean(rates), p10, p50, p90)


def simulated_frame_delay(
    slots: Sequence[int], packets: Sequence[Sent], n: int, interval: float
) -> list[FrameDelay]:
    """Delay of the frames that `slots` could have been, written in order into what was sent.

    The last byte of frame k is the smallest stream position that holds all frames up to k
    and was sent at or after the start of slot k. A lost packet counts as there when the
    next received one is. A frame of no bytes waits for the next one that has some.
    """
    sizes = [sum(slots[k : k + n]) / n for k in range(len(slots) - n + 1)]
    there = _arrivals(packets)
    ends: list[int] = []
    for packet in packets:
        ends.append((ends[-1] if ends else 0) + packet.size)
    delays: list[FrameDelay] = []
    wanted, at = 0.0, 0
    for number, size in enumerate(sizes):
        start = number * interval
        if not size:
            following = next((k for k in range(number + 1, len(sizes)) if sizes[k]), None)
            end = len(slots) if following is None else following
            delays.append(FrameDelay((end - number) * interval, following is None))
            continue
        wanted += size
        while at < len(ends) and (
            ends[at] < wanted - _LITTLE or packets[at].sent_at < start - _LITTLE
        ):
            at += 1
        arrived = there[at] if at < len(ends) else None
        delays.append(FrameDelay(None if arrived is None else arrived - start))
    return delays


def _arrivals(packets: Sequence[Sent]) -> list[float | None]:
    """When each packet's bytes were there, for a reliable transport above."""
    there: list[float | None] = [None] * len(packets)
    following: float | None = None
    for number in range(len(packets) - 1, -1, -1):
        arrived = packets[number].arrived_at
        following = following if arrived is None else arrived
        there[number] = following
    return there


class RealDelay(NamedTuple):
    """Parts of a completed frame's way (s)."""

    wait: float
    """Encoded to first packet sent."""
    network: float
    """First packet sent to last one received."""
    transport: float
    """Encoded to last packet received: the sum."""


def real_frame_delay(encoded_at: float, first_sent_at: float, last_received_at: float) -> RealDelay:
    """Section 4.3; seconds of one clock."""
    return RealDelay(
        first_sent_at - encoded_at, last_received_at - first_sent_at, last_received_at - encoded_at
    )
