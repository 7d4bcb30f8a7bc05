"""The frame clock: captures, encodes and queues one picture per tick.

Ticks lie on a fixed schedule (start + k/fps). A picture is read ahead of its
tick, so that decoding a file is not charged to capture; encoding runs in one
worker thread and the packet loop goes on meanwhile. A tick that comes while the
last picture is still being encoded is skipped and counted: a slow encoder
lowers the frame rate, it never builds a queue. A picture that the encoder fails
on is left out; only when it fails on everything the stream ends.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from streamd.clock import Clock
from streamd.daemon.source_reader import SourceReader
from streamd.errors import MediaError
from streamd.io.pump import Pump
from streamd.io.timer import DeadlineTimer
from streamd.media.adaptive import AdaptiveEncoder
from streamd.media.frame_log import SentLog
from streamd.media.model import EncodedFrame, FrameSource, Picture, VideoEncoder
from streamd.observability import logs
from streamd.session.events import Event
from streamd.session.sender import FramePlan, SenderSession

log = logs.get_logger("streamd.daemon.video")

T = TypeVar("T")

STALL = 1.0
"""A source that takes longer for a picture has stalled (s)."""
MAX_READ_OVER = 300
"""Pictures read over at once: a sender that was suspended for an hour does not read for minutes."""
MAX_FAILURES = 100
"""Pictures in a row the encoder may fail on."""


class FrameClock:
    """Drives source and encoder; `run` ends when the source does or `stop` is called."""

    def __init__(
        self,
        source: FrameSource,
        encoder: VideoEncoder,
        session: SenderSession,
        pump: Pump[Event],
        clock: Clock,
        frame_log: SentLog | None = None,
    ) -> None:
        self._frame_log = frame_log
        self._source = source
        self._encoder = encoder
        self._session = session
        self._pump = pump
        self._clock = clock
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="encoder")
        self._tick = asyncio.Event()
        self._timer = DeadlineTimer(
            asyncio.get_running_loop(), clock, lambda _now: self._tick.set()
        )
        self._stopping = False
        self._stopped = asyncio.Event()
        self._reader: SourceReader | None = None
        self.source_busy = False
        """The stream ended while the source was still at a picture: nobody may close it."""
        self.stalls = 0
        """Times the source took longer than `STALL` for a picture."""
        self.skipped = 0
        """Ticks without a picture because the encoder was still busy."""
        self._adaptive = encoder if isinstance(encoder, AdaptiveEncoder) else None
        self.skipped_ladder = 0
        """Ticks without a picture because the rate allows only part of them."""
        self.skipped_behind = 0
        """Ticks without a picture because the sender's queue was too old."""
        self.encode_seconds = 0.0
        self.encoded = 0
        self._failures = 0
        self._warnings = logs.LimitedLogger(log, clock)

    def stop(self) -> None:
        """End after the present frame, and however long the source takes for the next one."""
        self._stopping = True
        self._stopped.set()
        self._tick.set()

    async def run(self) -> None:
        """Until the source ends. Whatever the codec raises comes out here."""
        period = 1.0 / self._source.fps
        start = self._clock.now()
        tick = 0
        try:
            picture = await self._read()
            while True:
                await self._wait_until(start + tick * period)
                if self._stopping:
                    return
                if self._adaptive is not None and not self._adaptive.wants(tick):
                    self.skipped_ladder += 1
                elif self._session.behind(self._clock.now()):
                    self.skipped_behind += 1
                else:
                    await self._one_frame(picture, max(start + tick * period, start))
                picture = await self._read()
                late = max(0, int((self._clock.now() - start) / period) - tick)
                self.skipped += late
                tick += 1 + late
                # A picture belongs to its tick: those of skipped ticks are never seen.
                for _ in range(min(late, MAX_READ_OVER)):
                    picture = await self._read()
        except EOFError:
            return
        finally:
            self._timer.arm(None)
            self._executor.shutdown(wait=True)
            if self._reader is not None:
                self._reader.close()
            if self._frame_log is not None:
                self._frame_log.close()

    async def _read(self) -> Picture:
        """The next picture; EOFError also when the stream is to end before it came."""
        if self._encoder.inline:
            return self._source.read()
        if self._reader is None:
            self._reader = SourceReader(self._source, asyncio.get_running_loop())
        picture = self._reader.next()
        stopped = asyncio.ensure_future(self._stopped.wait())
        try:
            waiting = {picture, stopped}
            await asyncio.wait(waiting, timeout=STALL, return_when=asyncio.FIRST_COMPLETED)
            if not (picture.done() or stopped.done()):
                self.stalls += 1
                self._warnings.warning("source_stalled", seconds=STALL)
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
        if not picture.done():
            self.source_busy = True
            raise EOFError
        return picture.result()

    async def _one_frame(self, picture: Picture, captured_at: float) -> None:
        plan = self._session.next_frame(now=self._clock.now())
        begin = self._clock.now()
        encoded = await self._encode(picture, plan)
        now = self._clock.now()
        self.encode_seconds += now - begin
        frame = None
        if encoded is not None:
            self.encoded += 1
            frame = EncodedFrame(
                encoded[0],
                encoded[1],
                captured_at,
                now - begin,
                store=self._encoder.stored,
                refer=self._encoder.referred,
            )
        session = self._session
        number, first = session.next_frame_no, session.next_seq
        session.handle_frame(frame, now=now)
        self._pump.wake()
        if frame is not None and session.next_seq > first:
            self._note(number, frame, plan, first, now)

    def _note(
        self, number: int, frame: EncodedFrame, plan: FramePlan, first: int, now: float
    ) -> None:
        """A line in the log of frames; a file that cannot be written ends the log alone."""
        if self._frame_log is None:
            return
        try:
            self._frame_log.add(
                number,
                frame,
                quantizer=getattr(self._encoder, "last_quantizer", -1),
                target_bps=plan.target_bps,
                first_seq=first,
                packets=self._session.next_seq - first,
                now=now,
            )
        except MediaError as error:
            log.error("frame_log_failed", error=str(error))
            self._frame_log = None

    async def _encode(self, picture: Picture, plan: FramePlan) -> tuple[bytes, bool] | None:
        """None for a picture the encoder fails on, as for one it drops to hold its rate."""
        encode = partial(
            self._encoder.encode,
            picture,
            target_bps=plan.target_bps,
            keyframe=plan.keyframe,
            store=plan.store,
            refer=plan.refer,
        )
        try:
            encoded = await self._call(encode)
        except MediaError as error:
            self._failures += 1
            if self._failures >= MAX_FAILURES:
                raise
            self._warnings.warning("frame_not_encoded", error=str(error))
            return None
        self._failures = 0
        return encoded

    async def _call(self, work: Callable[[], T]) -> T:
        """In the worker thread; inline where that is cheaper than the hand-over."""
        if self._encoder.inline:
            return work()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, work)

    async def _wait_until(self, deadline: float) -> None:
        self._tick.clear()
        if self._stopping or self._clock.now() >= deadline:
            return
        self._timer.arm(deadline)
        await self._tick.wait()
