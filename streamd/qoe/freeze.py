"""Video freezes, by the rule of WebRTC statistics and by the video paper's printed formula.

Theory of operation
-------------------
Input is the display time of each rendered frame, floored to whole milliseconds.
Each gap d between two of them joins a window of the last 30 gaps.

`webrtc` (as libwebrtc counts freezeCount): with at least 5 gaps in the window,
avg is the mean of the window, the present gap included, rounded down; the gap
is a freeze if d >= max(3 avg, avg + 150). The rounding makes the rule
non-monotonic in d (after five gaps of 50, 246 and 247 are freezes, 248 is not);
that is kept, because numbers are to be comparable.

`formula` (printed in the SCReAM video paper): avg is the exact mean of the gaps
before the present one, at least 1; the gap is a freeze if d > max(3 avg, avg + 150).

The whole gap counts as freeze duration. A gap the source is known to have
caused (muted, paused) is a pause, not a freeze, and does not join the window.
Any other gap over 5 s is a pause beside the freeze it may be.

The gap still open at the end of the run is judged by the same test but counted
apart (`tail`), so that a stream which died does not look free of freezes.
"""

from collections import deque
from math import floor
from typing import Final, Literal, NamedTuple

from streamd.errors import LocalMisuse
from streamd.qoe.percentile import ratio

FreezeMode = Literal["webrtc", "formula"]

WINDOW_GAPS: Final = 30
WEBRTC_MIN_GAPS: Final = 5
FACTOR: Final = 3
MARGIN_MS: Final = 150
PAUSE_MS: Final = 5000

_ROUNDING_MS = 1e-6
"""A nanosecond: 2.3 s times 1000 is 2299.9999999999995 in floats, and means 2300."""


class Tail(NamedTuple):
    """The open gap at the end of a run, if it is a freeze: 0 or 1, and its length in seconds."""

    freeze_count: int
    freeze_duration: float


def to_milliseconds(seconds: float) -> int:
    """Seconds floored to whole milliseconds, up to a nanosecond of rounding error."""
    return floor(seconds * 1000.0 + _ROUNDING_MS)


class FreezeDetector:
    """Counts freezes frame by frame; its state is 30 numbers and a few counters."""

    __slots__ = (
        "_first_ms",
        "_freeze_ms",
        "_gaps",
        "_last_ms",
        "_pause_ms",
        "_paused",
        "_sum",
        "freeze_count",
        "mode",
        "pause_count",
        "rendered_frames",
    )

    def __init__(self, mode: FreezeMode = "webrtc") -> None:
        if mode not in ("webrtc", "formula"):
            raise LocalMisuse(f"freeze mode {mode!r}, must be webrtc or formula")
        self.mode: FreezeMode = mode
        """To be published beside the numbers."""
        self.rendered_frames = 0
        self.freeze_count = 0
        self.pause_count = 0
        self._freeze_ms = 0
        self._pause_ms = 0
        self._gaps: deque[int] = deque()
        self._sum = 0
        self._first_ms = 0
        self._last_ms = 0
        self._paused = False

    def on_frame(self, displayed_at: float) -> bool:
        """A frame was displayed (s); whether the gap before it was a freeze.

        A time before the previous one counts as the same time.
        """
        now_ms = to_milliseconds(displayed_at)
        self.rendered_frames += 1
        if self.rendered_frames == 1:
            self._first_ms = self._last_ms = now_ms
            self._paused = False
            return False
        gap = max(0, now_ms - self._last_ms)
        self._last_ms += gap
        if self._paused or gap > PAUSE_MS:
            self.pause_count += 1
            self._pause_ms += gap
        if self._paused:
            self._paused = False
            return False
        return self._on_gap(gap)

    def on_source_pause(self) -> None:
        """The source is known to be paused or muted: the gap now open is not its fault."""
        self._paused = True

    def tail(self, end: float) -> Tail:
        """The gap open at `end` (s), judged as if a frame came then; changes nothing."""
        gap = to_milliseconds(end) - self._last_ms
        if not self.rendered_frames or self._paused or gap < 0 or not self._is_freeze(gap):
            return Tail(0, 0.0)
        return Tail(1, gap / 1000)

    @property
    def freeze_duration(self) -> float:
        """Total length of the gaps that were freezes (s)."""
        return self._freeze_ms / 1000

    @property
    def pause_duration(self) -> float:
        """Total length of the gaps that were pauses (s)."""
        return self._pause_ms / 1000

    @property
    def freeze_share(self) -> float | None:
        """Freeze duration over the time from the first frame to the last; None below two frames."""
        return ratio(self._freeze_ms, self._last_ms - self._first_ms)

    def _on_gap(self, gap: int) -> bool:
        frozen = self._is_freeze(gap)
        if len(self._gaps) == WINDOW_GAPS:
            self._sum -= self._gaps.popleft()
        self._gaps.append(gap)
        self._sum += gap
        if frozen:
            self.freeze_count += 1
            self._freeze_ms += gap
        return frozen

    def _is_freeze(self, gap: int) -> bool:
        count = len(self._gaps)
        if self.mode == "formula":
            # d > max(3 S/n, S/n + 150), multiplied by n to stay in integers.
            limit = max(FACTOR * self._sum, self._sum + MARGIN_MS * count)
            return count > 0 and gap * count > limit
        total = self._sum + gap
        if count == WINDOW_GAPS:
            total -= self._gaps[0]
        else:
            count += 1
        average = total // count
        return count >= WEBRTC_MIN_GAPS and gap >= max(FACTOR * average, average + MARGIN_MS)
