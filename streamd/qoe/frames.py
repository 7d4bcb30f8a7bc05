"""Frames: what became of each, and how evenly they came."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Final

from streamd.errors import LocalMisuse
from streamd.qoe.percentile import ratio
from streamd.qoe.samples import DEFAULT_CAPACITY, Samples


class FrameStatus(StrEnum):
    """How a captured frame ends: in exactly one of these ways."""

    SKIPPED_BY_SOURCE = "skipped_by_source"
    DROPPED_BY_ENCODER = "dropped_by_encoder"
    DROPPED_AT_SENDER = "dropped_at_sender"
    LOST = "lost"
    """Never complete at the receiver."""
    UNDECODABLE = "undecodable"
    """Complete, but a frame it refers to is missing."""
    DROPPED_AT_RECEIVER = "dropped_at_receiver"
    """Complete and decodable, but superseded or too late."""
    RENDERED = "rendered"
    PENDING = "pending"
    """Undecided when the run ended."""


@dataclass(slots=True)
class FrameRecord:
    """The log of one frame; times in seconds of the run clock, None = has not happened."""

    frame_id: int
    captured_at: float
    encode_start: float | None = None
    encode_end: float | None = None
    size: int = 0
    """Encoded bytes."""
    keyframe: bool = False
    target_bps: float | None = None
    """The encoder's target when the frame was encoded."""
    first_sent: float | None = None
    last_sent: float | None = None
    first_arrived: float | None = None
    completed_at: float | None = None
    """Arrival of the packet that completed it."""
    decode_start: float | None = None
    decoded_at: float | None = None
    displayed_at: float | None = None


MAX_OPEN: Final = 4096
"""Frames undecided at a time; more than a minute at 60 fps."""


class FrameLedger:
    """Counts frames by status so that the counts always add up to the frames captured.

    Only undecided frames are held. Beyond `max_open` of them the oldest is let
    go and stays pending for good.
    """

    __slots__ = ("_closed", "_max_open", "_open", "captured", "unknown_count")

    def __init__(self, max_open: int = MAX_OPEN) -> None:
        self._open: dict[int, FrameRecord] = {}
        self._closed = dict.fromkeys(FrameStatus, 0)
        self._max_open = max_open
        self.captured = 0
        self.unknown_count = 0
        """Attempts to decide a frame that is not open: decided, let go, or never captured."""

    def capture(self, frame_id: int, now: float) -> FrameRecord:
        """A frame was captured; ids are unwrapped and used once (LocalMisuse otherwise)."""
        if frame_id in self._open:
            raise LocalMisuse(f"frame {frame_id} captured twice")
        self.captured += 1
        record = self._open[frame_id] = FrameRecord(frame_id, now)
        if len(self._open) > self._max_open:
            self._close(next(iter(self._open)), FrameStatus.PENDING)
        return record

    def get(self, frame_id: int) -> FrameRecord | None:
        """The record of an undecided frame."""
        return self._open.get(frame_id)

    def decide(self, frame_id: int, status: FrameStatus) -> FrameRecord | None:
        """The frame has ended; its record, or None (and counted) if it is not open."""
        if frame_id not in self._open:
            self.unknown_count += 1
            return None
        return self._close(frame_id, status)

    def counts(self) -> dict[FrameStatus, int]:
        """Frames by status at this moment; the sum is `captured`."""
        counts = dict(self._closed)
        counts[FrameStatus.PENDING] += len(self._open)
        return counts

    def _close(self, frame_id: int, status: FrameStatus) -> FrameRecord:
        self._closed[status] += 1
        return self._open.pop(frame_id)


class InterFrameDelay:
    """Delays between consecutive frames: completed ones, or (variant `rendered`) displayed ones.

    Frames count in the order of their times. With `on_rendered` told, a frame
    completed after a later one was rendered does not count.
    """

    __slots__ = ("_last", "_rendered_id", "delays", "frames")

    def __init__(self, capacity: int = DEFAULT_CAPACITY) -> None:
        self.delays = Samples(capacity)
        """In seconds; median and P95 are its percentiles."""
        self.frames = 0
        self._last = 0.0
        self._rendered_id: int | None = None

    def on_frame(self, frame_id: int, at: float) -> float | None:
        """A frame was completed (or displayed) at `at` (s); its delay to the one before, if any."""
        if self._rendered_id is not None and frame_id < self._rendered_id:
            return None
        self.frames += 1
        delay = at - self._last
        self._last = at
        if self.frames == 1:
            return None
        self.delays.add(delay)
        return delay

    def on_rendered(self, frame_id: int) -> None:
        """A frame went to the display; ids are unwrapped."""
        if self._rendered_id is None or frame_id > self._rendered_id:
            self._rendered_id = frame_id

    @property
    def harmonic_fps(self) -> float | None:
        """Sum of delays over sum of their squares (1/s); None below two frames."""
        return ratio(self.delays.total, self.delays.square_total)


def inter_frame_delays(times: Iterable[float]) -> list[float]:
    """Gaps between consecutive frame times (s), sorted first."""
    ordered = sorted(times)
    return [later - earlier for earlier, later in pairwise(ordered)]


def harmonic_frame_rate(delays: Iterable[float]) -> float | None:
    """Frame rate (1/s) that counts each gap by the time spent in it; None without a gap."""
    total = square_total = 0.0
    for delay in delays:
        total += delay
        square_total += delay * delay
    return ratio(total, square_total)


def time_to_first_frame(stream_start: float, first_displayed: float | None) -> float | None:
    """Seconds from the stream's start to the first frame displayed; None if there was none."""
    return None if first_displayed is None else first_displayed - stream_start
