"""Pictures from any file or device PyAV opens, scaled, padded and at a constant rate.

Theory of operation.  A source is read in *passes*: from the first picture to
the end, once, or again and again.  Between passes the file is rewound; where
that does not lead back to the first picture (pipes, raw streams, devices) it is
opened anew.  Packets that do not decode are counted and left out; a pass that
gives no picture at all is an error, never an endless loop.

With a wanted frame rate, each picture has a slot, its time times the rate,
rounded.  A slot takes the first picture that belongs to it, later ones of the
same slot are dropped, an empty slot repeats the picture before it.  That needs
no look ahead, so a camera's picture is handed on when it arrives.

Knows nothing of encoders. Not to be used by two threads at once.
"""

import itertools
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import av.filter

from streamd.errors import ConfigError, MediaError, StartupError

PIXEL_FORMAT = "yuv420p"
FALLBACK_FPS = 30.0
PLAUSIBLE_FPS = (1.0, 300.0)
"""Containers without a rate report their clock's frequency, 1000 or 90000 Hz."""
MAX_GAP_S = 10.0
"""A longer jump of the time stamps is a broken file, not a still picture."""
MAX_FAILURES = 100
"""Consecutive packets that fail before a pass is given up."""
OPEN_TIMEOUT_S = 10.0
"""For opening and for each read; without it a dead network source blocks for ever."""


class FileSource:
    """A file or device as a `model.FrameSource`; pictures are `av.VideoFrame` in yuv420p.

    Names: a path, a URL FFmpeg knows, or `FORMAT:NAME` for a device or a format
    that cannot be recognised (`v4l2:/dev/video0`, `lavfi:testsrc2=rate=30`).
    """

    def __init__(
        self,
        name: str,
        *,
        fps: float | None = None,
        size: tuple[int, int] | None = None,
        loop: bool = False,
    ) -> None:
        """`size` (width, height) scales and letterboxes; None keeps the size, made even.

        Raises StartupError when nothing can be shown from `name`, ConfigError
        when fps or size make no sense.
        """
        check_wanted(fps, size)
        self._reader = _Reader(name, loop)
        first, _ = self._reader.peek()
        self.fps = fps or self._reader.fps
        self.width, self.height = size or (even(first.width), even(first.height))
        self._scaler = PictureScaler(self.width, self.height)
        self._convert = fps is not None
        self._slot = 0
        self._held: av.VideoFrame | None = None

    @property
    def corrupt_frames(self) -> int:
        """Packets and pictures left out so far because they did not decode."""
        return self._reader.corrupt_frames

    def read(self) -> av.VideoFrame:
        """The next picture. EOFError at the end, MediaError when the source failed."""
        if not self._convert:
            return self._scaler.fit(self._reader.take()[0])
        slot = self._slot
        while int((ahead := self._reader.peek())[1] * self.fps + 0.5) < slot:
            self._reader.take()
        if self._held is None or int(ahead[1] * self.fps + 0.5) == slot:
            self._held = self._scaler.fit(self._reader.take()[0])
        self._slot += 1
        return self._held

    def close(self) -> None:
        """Close the file; reading after that finds the end. May be called twice."""
        self._reader.close()


class _Reader:
    """Decoded pictures with their time in seconds from the first one, over all passes."""

    def __init__(self, name: str, loop: bool) -> None:
        self._name = name
        self._loop = loop
        self.corrupt_frames = 0
        self._ahead: tuple[av.VideoFrame, float] | None = None
        self._first_pts: int | None = None
        self._origin: float | None = None
        self._pass_start = 0.0
        self._time = 0.0
        self._open()
        self.fps = _frame_rate(self._stream)
        try:
            self._first_pts = self.peek()[0].pts
        except (EOFError, MediaError) as error:
            self.close()
            reason = str(error) or "it holds no picture that decodes"
            raise StartupError(f"cannot read video from {name}: {reason}") from None

    def peek(self) -> tuple[av.VideoFrame, float]:
        """The next picture without taking it; raises as `FileSource.read`."""
        if self._ahead is None:
            self._ahead = self._fetch()
        return self._ahead

    def take(self) -> tuple[av.VideoFrame, float]:
        """The next picture, once."""
        taken = self.peek()
        self._ahead = None
        return taken

    def close(self) -> None:
        self._container.close()
        self._pictures: Iterator[av.VideoFrame] = iter(())
        self._ahead = None
        self._loop = False

    def _fetch(self) -> tuple[av.VideoFrame, float]:
        picture = next(self._pictures, None)
        if picture is None:
            if not self._loop:
                raise EOFError
            picture = self._rewind()
        return picture, self._stamp(picture)

    def _stamp(self, picture: av.VideoFrame) -> float:
        """Seconds on a clock that never runs backwards and makes no wild jumps."""
        step = 1 / self.fps
        if self._origin is None:
            self._origin = picture.time or 0.0
            self._time = self._pass_start
        elif picture.pts is None:
            self._time += step
        else:
            time = self._pass_start + picture.time - self._origin
            gap = time - self._time
            self._time += gap if 0 <= gap <= MAX_GAP_S else step
        return self._time

    def _rewind(self) -> av.VideoFrame:
        """Start the next pass; returns its first picture."""
        self._pass_start = self._time + 1 / self.fps
        try:
            self._container.seek(self._stream.start_time or 0, stream=self._stream)
            self._begin_pass()
            picture = next(self._pictures, None)
        except av.FFmpegError:
            picture = None
        if picture is None or picture.pts != self._first_pts:
            self._reopen()
            picture = next(self._pictures, None)
        if picture is None:
            raise MediaError(f"{self._name} holds no picture that decodes any more")
        return picture

    def _reopen(self) -> None:
        self._container.close()
        try:
            self._open()
        except StartupError as error:
            raise MediaError(str(error)) from None

    def _open(self) -> None:
        self._container = _open_container(self._name)
        if not self._container.streams.video:
            self._container.close()
            raise StartupError(f"cannot read video from {self._name}: it has no video stream")
        self._stream = self._container.streams.video[0]
        self._begin_pass()

    def _begin_pass(self) -> None:
        self._origin = None
        self._pictures = self._decode_pass()

    def _decode_pass(self) -> Iterator[av.VideoFrame]:
        failures = 0
        packets = self._container.demux(self._stream)
        while failures < MAX_FAILURES:
            try:
                packet = next(packets, None)
            except av.FFmpegError as error:
                if isinstance(error, OSError):
                    raise MediaError(f"{self._name}: {reason_of(error)}") from None
                packets = self._container.demux(self._stream)
                failures += 1
                continue
            if packet is None:
                return
            pictures = self._decode(packet)
            failures = 0 if pictures else failures + 1
            yield from pictures
        raise MediaError(f"{self._name}: {failures} packets in a row did not decode")

    def _decode(self, packet: "av.Packet[Any]") -> list[av.VideoFrame]:
        try:
            pictures = packet.decode()
        except EOFError:
            return []
        except av.FFmpegError:
            self.corrupt_frames += 1
            return []
        sound = [picture for picture in pictures if not picture.is_corrupt]
        self.corrupt_frames += len(pictures) - len(sound)
        return sound


class PictureScaler:
    """Pictures of any size and format to yuv420p of one even size, with black bars if need be."""

    def __init__(self, width: int, height: int) -> None:
        self._size = (width, height)
        self._shape: tuple[int, int, str] | None = None

    def fit(self, picture: av.VideoFrame) -> av.VideoFrame:
        """The picture itself where it already fits. Raises MediaError when it cannot be scaled."""
        shape = (picture.width, picture.height, picture.format.name)
        if shape == (*self._size, PIXEL_FORMAT):
            return picture
        try:
            if shape != self._shape:
                self._build(picture)
                self._shape = shape
            self._graph.vpush(picture)
            return self._graph.vpull()
        except av.FFmpegError as error:
            self._shape = None
            raise MediaError(f"cannot scale a picture of {shape}: {reason_of(error)}") from None

    def _build(self, picture: av.VideoFrame) -> None:
        width, height = self._size
        keeps_size = (even(picture.width), even(picture.height)) == self._size
        self._graph = graph = av.filter.Graph()
        if hasattr(graph, "threads"):  # from PyAV 17 on
            graph.threads = 1
        nodes = [
            graph.add_buffer(
                width=picture.width,
                height=picture.height,
                format=picture.format,
                time_base=picture.time_base or Fraction(1, 1000),
            ),
            graph.add("format", PIXEL_FORMAT),
            graph.add("pad", f"{width}:{height}:(ow-iw)/2:(oh-ih)/2"),
            graph.add("buffersink"),
        ]
        if not keeps_size:
            fit = f"{width}:{height}:force_original_aspect_ratio=decrease:force_divisible_by=2"
            nodes.insert(1, graph.add("scale", fit))
        for earlier, later in itertools.pairwise(nodes):
            earlier.link_to(later)
        graph.configure()


def even(length: int) -> int:
    """`length`, or one more where it is odd: 4:2:0 pictures are made of 2x2 blocks."""
    return length + length % 2


def check_wanted(fps: float | None, size: tuple[int, int] | None) -> None:
    """Raises ConfigError for a frame rate or a picture size no source can have."""
    low, high = PLAUSIBLE_FPS
    if fps is not None and not low <= fps <= high:
        raise ConfigError(f"frame rate {fps} is outside {low:g}..{high:g} Hz")
    if size is not None and (min(size) < 2 or size[0] % 2 or size[1] % 2):
        raise ConfigError(f"picture size {size[0]}x{size[1]} must be positive and even")


def _frame_rate(stream: Any) -> float:
    low, high = PLAUSIBLE_FPS
    for rate in (stream.average_rate, stream.guessed_rate):
        if rate and low <= rate <= high:
            return float(rate)
    return FALLBACK_FPS


def _open_container(name: str) -> Any:
    container_format, target = _split_name(name)
    try:
        return av.open(target, "r", format=container_format, timeout=OPEN_TIMEOUT_S)
    except (av.FFmpegError, ValueError) as error:
        raise StartupError(f"cannot open {name}: {reason_of(error)}") from None


def _split_name(name: str) -> tuple[str | None, str]:
    """`FORMAT:NAME`, unless a file has that very name or it is a URL."""
    prefix, colon, rest = name.partition(":")
    if colon and not rest.startswith("//") and not Path(name).exists():
        if prefix in av.formats_available:
            return prefix, rest
    elif name.startswith("/dev/video") and "v4l2" in av.formats_available:
        return "v4l2", name
    return None, name


def reason_of(error: Exception) -> str:
    """FFmpeg's words for what went wrong, without the name of the file."""
    return getattr(error, "strerror", None) or str(error)
