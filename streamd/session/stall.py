"""When a receiver asks for a key frame: decoding has stalled and cannot go on by itself.

Before the first picture it asks almost at once; later it gives repair the time to
fill the gap. While nothing helps it asks again, each time after twice as long:
more key frames are the last thing a full link needs.
"""

from streamd.session.frames import FrameAssembler

FIRST_PATIENCE = 0.1
STALL_PATIENCE = 0.3
"""Stall before the first request (s): without and with a picture shown before."""
INTERVAL = 0.5
MAX_INTERVAL = 2.0
"""Between requests (s): at first, and at most after doubling."""


class StallWatch:
    """Asked now and then; says when a request is due."""

    __slots__ = ("_interval", "_last")

    def __init__(self) -> None:
        self._interval = 0.0
        self._last = 0.0

    def on_progress(self) -> None:
        """A picture was decoded, or a stream began: the next stall is a new one."""
        self._interval = 0.0

    def request_due(self, assembler: FrameAssembler, now: float) -> bool:
        """Whether to ask now; counts as asked."""
        patience = STALL_PATIENCE if assembler.started else FIRST_PATIENCE
        if assembler.stalled_for(now) < patience:
            return False
        if self._interval and now - self._last < self._interval:
            return False
        self._last = now
        self._interval = min(MAX_INTERVAL, max(INTERVAL, 2 * self._interval))
        return True
