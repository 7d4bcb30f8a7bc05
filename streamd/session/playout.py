"""From complete frames to shown ones: hand-out in decoding order, latency, freezes.

Numbers handed out never come twice, over any number of streams, and keep the low
16 bits of the frame's own id.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from streamd.errors import WireError
from streamd.qoe.causes import freeze_cause
from streamd.qoe.freeze import FreezeDetector
from streamd.session.clock_offset import ClockOffset
from streamd.session.events import FrameReady
from streamd.session.frames import Frame
from streamd.session.latency import LatencyMeter
from streamd.session.stall import StallWatch
from streamd.session.stats import ReceiverStats, count_reason
from streamd.session.stream import IncomingStream

MAX_PENDING = 1024
"""Frames handed out whose capture time is remembered until they are decoded."""


class _Pending(NamedTuple):
    """A frame the decoder has."""

    captured: float | None
    """Capture time by the sender's wall clock (s)."""
    mended: bool


class _Shown(NamedTuple):
    """The last picture shown."""

    frame_no: int
    captured: float | None
    at: float
    undecodable: int
    """Frames refused until then."""


class Playout:
    """What a receiver does with frames; one for all streams of a session."""

    def __init__(
        self,
        stats: ReceiverStats,
        clock: ClockOffset,
        *,
        freeze_rule: Literal["webrtc", "formula"],
        unix_offset: float,
    ) -> None:
        """`clock`: of the sender. `unix_offset`: Unix time minus session time (s)."""
        self._stats = stats
        self.latency = LatencyMeter(stats, clock, unix_offset=unix_offset)
        self._pending: dict[int, _Pending] = {}
        self._base = 0
        self._last = 0
        self._last_completed: float | None = None
        self._shown: _Shown | None = None
        self.silence = 0.0
        """Longest time without a packet since the last shown picture (s)."""
        self.stall = StallWatch()
        self.freezes = FreezeDetector(mode=freeze_rule)

    def begin(self, *, first: bool) -> None:
        """A stream begins, the `first` of this session or another."""
        if not first:
            self._base = ((self._last >> 16) + 2) << 16
        self.stall.on_progress()

    def completed(self, frame: Frame, now: float) -> None:
        """All fragments of a frame are there."""
        stats = self._stats
        stats.frames_completed += 1
        stats.frames_key += frame.keyframe
        if self._last_completed is not None:
            stats.inter_frame.add(max(0.0, now - self._last_completed))
        self._last_completed = now

    def release(self, stream: IncomingStream, now: float) -> Iterator[FrameReady]:
        """What can be decoded now."""
        for number, frame in stream.assembler.poll(now):
            self._last = frame_no = self._base + number
            captured = stream.captured_unix(frame.rtp_time)
            try:
                data = stream.form.join(frame.payloads())
            except WireError as error:
                count_reason(self._stats.invalid, error.reason)
                self._stats.frames_undecodable += 1
                stream.assembler.break_chain()
                continue
            self._pending[frame_no] = _Pending(captured, frame.mended)
            if len(self._pending) > MAX_PENDING:
                del self._pending[next(iter(self._pending))]
            yield FrameReady(
                frame_no, data, frame.keyframe, now, captured, frame.rtp_time & 0xFFFFFFFF
            )

    def decoded(self, frame_no: int, pictures: int, *, now: float) -> bool:
        """The decoder is done with a frame. False: the present stream's chain is broken."""
        pending = self._pending.pop(frame_no, _Pending(None, False))
        stats = self._stats
        if not pictures:
            stats.frames_undecodable += 1
            return frame_no < self._base - 0x8000
        stats.frames_decoded += 1
        self.stall.on_progress()
        self._show(frame_no, pending.captured, now)
        # Of a stream that is over the clock may be another one.
        if pending.captured is not None and frame_no >= self._base - 0x8000:
            self.latency.shown(pending.captured, mended=pending.mended, now=now)
        return True

    def _show(self, frame_no: int, captured: float | None, now: float) -> None:
        """Look for a freeze before this picture, and for its cause."""
        stats, before = self._stats, self._shown
        self._shown = _Shown(frame_no, captured, now, stats.frames_undecodable)
        silence, self.silence = self.silence, 0.0
        if not self.freezes.on_frame(now) or before is None:
            return
        gap = None
        if captured is not None and before.captured is not None:
            gap = captured - before.captured
        cause = freeze_cause(
            now - before.at,
            refused=stats.frames_undecodable - before.undecodable,
            silence=silence,
            missing=frame_no - before.frame_no - 1,
            captured_gap=gap,
        )
        stats.freezes[cause] += 1
