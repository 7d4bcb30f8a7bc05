"""The built-in clips as sources: generated while they are first shown, then kept.

A clip is 300 pictures of 352x288; the scenes are in `media.scenes`.  Making a
picture takes one to two milliseconds, so a clip starts at once; after the first
pass its pictures are held (46 MB of raw video) and cost nothing any more.
"""

import itertools
from collections.abc import Iterator
from typing import Any

import av

from streamd.errors import ConfigError, MediaError, StartupError
from streamd.media import scenes
from streamd.media.pyav import PictureScaler, check_wanted, reason_of

CLIPS = tuple(scenes.TEMPORAL_INFORMATION)


class ClipSource:
    """One of the clips "low", "medium" and "high" as a `model.FrameSource`."""

    def __init__(
        self,
        name: str,
        *,
        fps: float | None = None,
        size: tuple[int, int] | None = None,
        loop: bool = True,
    ) -> None:
        """`fps` repeats or leaves out pictures, `size` scales and letterboxes.

        Raises ConfigError for an unknown clip or a senseless size or rate,
        StartupError when this FFmpeg cannot draw the clip.
        """
        if name not in CLIPS:
            raise ConfigError(f"no clip {name!r}; there are {', '.join(CLIPS)}")
        check_wanted(fps, size)
        self.fps = fps or float(scenes.FPS)
        self.width, self.height = size or (scenes.WIDTH, scenes.HEIGHT)
        self._loop = loop
        self._scaler = PictureScaler(self.width, self.height)
        self._closed = False
        self._shown = 0
        self._pictures: list[av.VideoFrame] = []
        self._generator = _generate(name)
        self._at(0)

    def read(self) -> av.VideoFrame:
        """The next picture. EOFError after ten seconds unless looped, and after `close`."""
        # The small term keeps a product like 29.999999 on its picture.
        index = int(self._shown * scenes.FPS / self.fps + 1e-6)
        if self._closed or (index >= scenes.FRAMES and not self._loop):
            raise EOFError
        self._shown += 1
        return self._scaler.fit(self._at(index % scenes.FRAMES))

    def close(self) -> None:
        """Release the pictures; reading after that finds the end. May be called twice."""
        self._closed = True
        self._generator = iter(())
        self._pictures = []

    def _at(self, index: int) -> av.VideoFrame:
        missing = index + 1 - len(self._pictures)
        if missing > 0:
            self._pictures.extend(itertools.islice(self._generator, missing))
        if index >= len(self._pictures):
            raise MediaError(
                f"the clip ended after {len(self._pictures)} of {scenes.FRAMES} pictures"
            )
        return self._pictures[index]


def _generate(name: str) -> Iterator[av.VideoFrame]:
    try:
        container: Any = av.open(scenes.graph(name), "r", format="lavfi")
    except (av.FFmpegError, ValueError) as error:
        raise StartupError(
            f"this FFmpeg cannot draw the clip {name!r}: {reason_of(error)}"
        ) from None
    try:
        with container:
            yield from container.decode(video=0)
    except av.FFmpegError as error:
        raise MediaError(f"drawing the clip {name!r} failed: {reason_of(error)}") from None
