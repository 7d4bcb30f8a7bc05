"""Reads pictures in a thread of its own that nobody has to wait for.

A file on a dead network, a pipe nobody writes to or a camera that hangs blocks its reader
for as long as it likes. The stream waits for the picture, not for the thread: it can end
meanwhile, and the thread ends with the process.
"""

import asyncio
import queue
import threading
from contextlib import suppress

from streamd.media.model import FrameSource, Picture


class SourceReader:
    """One picture at a time, in order."""

    def __init__(self, source: FrameSource, loop: asyncio.AbstractEventLoop) -> None:
        self._source = source
        self._loop = loop
        self._wanted: queue.SimpleQueue[asyncio.Future[Picture] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="source", daemon=True)
        self._thread.start()

    def next(self) -> asyncio.Future[Picture]:
        """The next picture; raises what the source's `read` does."""
        future: asyncio.Future[Picture] = self._loop.create_future()
        self._wanted.put(future)
        return future

    def close(self) -> None:
        """No more pictures: the thread ends when its read returns."""
        self._wanted.put(None)

    def _run(self) -> None:
        while (future := self._wanted.get()) is not None:
            try:
                picture, error = self._source.read(), None
            # Whatever it is belongs to whoever waits for the picture.
            except Exception as raised:
                picture, error = None, raised
            # A loop that is closed has nobody waiting any more.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(_settle, future, picture, error)


def _settle(future: "asyncio.Future[Picture]", picture: Picture, error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(picture)
    else:
        future.set_exception(error)
