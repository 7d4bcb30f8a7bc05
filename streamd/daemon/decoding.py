"""Decoding: frames in order through one worker thread, results back to the session.

At most BACKLOG frames wait. When decoding cannot keep up, the newest is refused
like a damaged one: the session then waits for the next key frame instead of
falling further and further behind.

Which codec a stream has is the sender's choice. One that this installation
cannot decode is logged and its frames count as undecodable; the receiver stays
for the next stream.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from streamd.clock import Clock
from streamd.daemon.viewing import Viewers
from streamd.errors import MediaError, StartupError
from streamd.media.factory import open_decoder
from streamd.media.model import Picture, VideoDecoder
from streamd.observability import logs
from streamd.session.events import FrameReady
from streamd.session.receiver import ReceiverSession

log = logs.get_logger("streamd.daemon.decoder")

BACKLOG = 64
"""Frames that may wait for the decoder: two seconds at 30 per second."""


def load_decoder(codec: str) -> None:
    """Load what decodes this codec now: in the middle of packets it takes too long.

    StartupError if this installation cannot decode it.
    """
    open_decoder(codec).close()


class DecodePump:
    """One decoder, replaced when the stream's codec changes."""

    def __init__(
        self,
        session: ReceiverSession,
        clock: Clock,
        *,
        enabled: bool,
        viewers: Viewers | None = None,
    ) -> None:
        """`enabled` False: frames are only counted as decoded, for measurements without video.

        `viewers` get what is shown.
        """
        self._viewers = viewers or Viewers(())
        self._session = session
        self._clock = clock
        self._enabled = enabled
        self._decoder: VideoDecoder | None = None
        self._codec: str | None = None
        self._queue: asyncio.Queue[FrameReady | str | None] = asyncio.Queue()
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="decoder")
        self._finishing = False
        self.refused = 0
        """Frames the decoder had no time for."""
        self.errors = 0
        """Frames the decoder found damaged."""

    @property
    def codec(self) -> str:
        """The codec in use; empty before the first stream."""
        return self._codec or ""

    def use(self, codec: str) -> None:
        """Frames from here on are of this codec."""
        self._codec = codec
        if not self._enabled:
            return
        if self._decoder is None:
            self._decoder = _open(codec)
            self._viewers.stream_started(codec)
        else:
            self._queue.put_nowait(codec)

    def put(self, frame: FrameReady) -> None:
        """Decode this frame when its turn comes."""
        if not self._enabled:
            self._session.handle_decoded(frame.frame_no, 1, now=self._clock.now())
        elif self._decoder is None:
            self._done(frame, ())
        elif self._decoder.inline and self._queue.empty():
            self._done(frame, self._decode(self._decoder, frame))
        elif self._queue.qsize() < BACKLOG and not self._finishing:
            self._queue.put_nowait(frame)
        else:
            self.refused += 1
            self._done(frame, ())

    def finish(self) -> None:
        """No more frames: `run` ends after those that wait, what still comes is refused."""
        self._finishing = True
        self._queue.put_nowait(None)

    async def run(self) -> None:
        """Until `finish`."""
        loop = asyncio.get_running_loop()
        try:
            while (item := await self._queue.get()) is not None:
                if isinstance(item, str):
                    self._close_decoder()
                    self._decoder = _open(item)
                    self._viewers.stream_started(item)
                elif self._decoder is None:
                    self._done(item, ())
                else:
                    pictures = await loop.run_in_executor(
                        self._executor, self._decode, self._decoder, item
                    )
                    self._done(item, pictures)
        finally:
            self._executor.shutdown(wait=True)
            self._close_decoder()
            self._viewers.close()

    def _done(self, frame: FrameReady, pictures: Sequence[Picture]) -> None:
        now = self._clock.now()
        if pictures and pictures[-1] is not None:
            self._viewers.show(frame, pictures[-1], now)
        self._session.handle_decoded(frame.frame_no, len(pictures), now=now)

    def _decode(self, decoder: VideoDecoder, frame: FrameReady) -> Sequence[Picture]:
        try:
            pictures = decoder.decode(frame.data)
        except MediaError as error:
            self.errors += 1
            log.debug("frame_damaged", error=str(error))
            return ()
        return pictures

    def _close_decoder(self) -> None:
        if self._decoder is not None:
            self._decoder.close()
            self._decoder = None


def _open(codec: str) -> VideoDecoder | None:
    try:
        return open_decoder(codec)
    except StartupError as error:
        log.error("codec_missing", codec=codec, error=str(error))
        return None
