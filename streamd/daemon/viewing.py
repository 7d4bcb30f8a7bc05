"""What is done with shown pictures, in a thread of its own: it may be slow, the stream may not.

At most `MAX_WAITING` pictures wait; what comes then is left out of every sink and counted. A
sink that fails is closed and the others go on.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from streamd.errors import MediaError, StartupError
from streamd.media.model import Picture
from streamd.media.sinks import Shown, Sink
from streamd.observability import logs
from streamd.session.events import FrameReady

log = logs.get_logger("streamd.daemon.viewer")

MAX_WAITING = 120
"""Four seconds at 30 per second, 18 MB in CIF."""


class Viewers:
    """The sinks of one receiver."""

    def __init__(self, sinks: Sequence[Sink]) -> None:
        self._sinks = list(sinks)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="viewer")
        self._waiting = 0
        self.left_out = 0
        """Pictures no sink got because the sinks were too slow."""

    def stream_started(self, codec: str) -> None:
        """Pictures from here on are of another stream."""
        if self._sinks:
            self._thread.submit(self._each_started, codec)

    def show(self, frame: FrameReady, picture: Picture, now: float) -> None:
        """Hand a picture over that was decoded at `now` (s)."""
        if not self._sinks:
            return
        if self._waiting >= MAX_WAITING:
            self.left_out += 1
            return
        self._waiting += 1
        shown = Shown(
            frame.frame_no,
            frame.rtp_time,
            frame.data,
            frame.keyframe,
            picture,
            frame.completed_at,
            now,
            frame.captured_unix,
        )
        self._thread.submit(self._each_show, shown)

    def close(self) -> None:
        """Wait for what was handed over, and close every sink."""
        self._thread.shutdown(wait=True)
        for sink in self._sinks:
            self._end(sink)
        self._sinks = []

    def _each_started(self, codec: str) -> None:
        for sink in list(self._sinks):
            try:
                sink.stream_started(codec)
            except (MediaError, StartupError) as error:
                self._drop(sink, error)

    def _each_show(self, shown: Shown) -> None:
        for sink in list(self._sinks):
            try:
                sink.show(shown)
            except (MediaError, StartupError) as error:
                self._drop(sink, error)
        self._waiting -= 1

    def _drop(self, sink: Sink, error: Exception) -> None:
        log.error("sink_failed", sink=type(sink).__name__, error=str(error))
        self._sinks.remove(sink)
        self._end(sink)

    def _end(self, sink: Sink) -> None:
        try:
            sink.close()
        except MediaError as error:
            log.error("sink_failed", sink=type(sink).__name__, error=str(error))
