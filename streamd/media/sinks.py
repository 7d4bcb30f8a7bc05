"""Where shown pictures go: recordings, comparisons, callbacks.

A recording holds the bitstream as it was received; nothing is encoded again. It can be
played at any moment, also after the process was killed: WebM is written in live clusters of
half a second, MP4 in a fragment per frame. Raw Y4M holds decoded pictures.
"""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

import av

from streamd.errors import ConfigError, MediaError
from streamd.media.model import Picture
from streamd.media.quality import ReferenceFilm

RTP_CLOCK = 90_000
CONTAINERS: dict[str, tuple[str, tuple[str, ...], dict[str, str]]] = {
    ".webm": ("webm", ("vp9", "vp8"), {"live": "1", "cluster_time_limit": "500"}),
    ".mkv": ("matroska", ("vp9", "vp8", "h264"), {"live": "1", "cluster_time_limit": "500"}),
    ".mp4": (
        "mp4",
        ("h264", "vp9"),
        {"movflags": "frag_every_frame+empty_moov+default_base_moof"},
    ),
}
"""By suffix: format, codecs it can hold, options that keep it playable at any moment."""
RAW_SUFFIX = ".y4m"


class Shown(NamedTuple):
    """A frame that was decoded."""

    frame_no: int
    rtp_time: int
    """32-bit media time, 90 kHz."""
    data: bytes
    """Its bitstream."""
    keyframe: bool
    picture: Picture
    completed_at: float = 0.0
    """When its last packet came (s, session clock)."""
    shown_at: float = 0.0
    """When it was decoded."""
    captured_unix: float | None = None
    """Capture time by the sender's wall clock (s), if known."""


class Sink(Protocol):
    """Takes pictures in the order they are shown, from one thread."""

    def stream_started(self, codec: str) -> None:
        """What comes now is of another stream."""

    def show(self, shown: Shown) -> None:
        """One picture. MediaError ends the sink, not the stream."""

    def close(self) -> None:
        """No more pictures; may be called twice."""


class Callback:
    """Hands each picture to a function."""

    def __init__(self, on_picture: Callable[[Shown], object]) -> None:
        self._on_picture = on_picture

    def stream_started(self, codec: str) -> None:
        """See `Sink`."""

    def show(self, shown: Shown) -> None:
        """See `Sink`."""
        self._on_picture(shown)

    def close(self) -> None:
        """See `Sink`."""


class Comparison:
    """Compares with the film the sender streams."""

    def __init__(self, film: ReferenceFilm) -> None:
        self.film = film

    def stream_started(self, codec: str) -> None:
        """See `Sink`."""
        self.film.stream_started()

    def show(self, shown: Shown) -> None:
        """See `Sink`."""
        self.film.shown(shown.frame_no, shown.rtp_time, shown.picture)

    def close(self) -> None:
        """See `Sink`."""
        self.film.close()


def open_recording(path: Path) -> Sink:
    """The recording that `path` names by its suffix; ConfigError for another one."""
    if path.suffix == RAW_SUFFIX:
        return RawRecording(path)
    if path.suffix not in CONTAINERS:
        known = ", ".join((*CONTAINERS, RAW_SUFFIX))
        raise ConfigError(f"record: {path.name} ends in none of {known}")
    return Recording(path)


class _Files:
    """A file per stream: the second one of `film.webm` is `film-2.webm`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._count = 0

    def next(self) -> Path:
        self._count += 1
        if self._count == 1:
            return self._path
        return self._path.with_name(f"{self._path.stem}-{self._count}{self._path.suffix}")


class Recording:
    """The received bitstream in a container."""

    def __init__(self, path: Path) -> None:
        self._files = _Files(path)
        self._form, self._codecs, self._options = CONTAINERS[path.suffix]
        self._codec = ""
        self._container: Any = None
        self._stream: Any = None
        self._begin = self._last = 0

    def stream_started(self, codec: str) -> None:
        """See `Sink`."""
        self.close()
        self._codec = codec

    def show(self, shown: Shown) -> None:
        """See `Sink`. Begins with the first key frame."""
        if self._container is None:
            if not shown.keyframe:
                return
            self._open(shown)
        time = (shown.rtp_time - self._begin) & 0xFFFFFFFF
        if time < self._last or time >= 1 << 31:
            return  # media time does not go back
        self._last = time
        packet = av.Packet(shown.data)
        packet.stream = self._stream
        packet.time_base = Fraction(1, RTP_CLOCK)
        packet.pts = packet.dts = time
        packet.is_keyframe = shown.keyframe
        try:
            self._container.mux(packet)
        except (av.FFmpegError, OSError) as error:
            raise MediaError(f"the recording cannot go on: {error}") from None

    def close(self) -> None:
        """See `Sink`."""
        container, self._container = self._container, None
        if container is not None:
            try:
                container.close()
            except (av.FFmpegError, OSError) as error:
                raise MediaError(f"the recording cannot be ended: {error}") from None

    def _open(self, shown: Shown) -> None:
        if self._codec not in self._codecs:
            held = " and ".join(self._codecs)
            raise MediaError(f"a recording of kind {self._form} holds {held}, not {self._codec}")
        path = self._files.next()
        options = {**self._options, "flush_packets": "1"}
        try:
            self._container = av.open(str(path), "w", format=self._form, options=options)
            self._stream = self._container.add_mux_stream(
                self._codec,
                width=shown.picture.width,
                height=shown.picture.height,
                pix_fmt=shown.picture.format.name,
            )
        except (av.FFmpegError, OSError, ValueError) as error:
            raise MediaError(f"{path}: cannot be recorded: {error}") from None
        self._stream.time_base = Fraction(1, RTP_CLOCK)
        self._begin, self._last = shown.rtp_time, 0


class RawRecording:
    """Decoded pictures as Y4M (4:2:0, 8 bit), of the size of the first."""

    FPS = 30

    def __init__(self, path: Path) -> None:
        self._files = _Files(path)
        self._file: IO[bytes] | None = None
        self._size = (0, 0)

    def stream_started(self, codec: str) -> None:
        """See `Sink`."""
        self.close()

    def show(self, shown: Shown) -> None:
        """See `Sink`."""
        picture = shown.picture
        try:
            if self._file is None:
                self._size = (picture.width, picture.height)
                self._file = self._files.next().open("wb")
                head = (
                    f"YUV4MPEG2 W{picture.width} H{picture.height} F{self.FPS}:1 Ip A1:1 C420mpeg2"
                )
                self._file.write(head.encode() + b"\n")
            if (picture.width, picture.height, picture.format.name) != (*self._size, "yuv420p"):
                picture = picture.reformat(*self._size, format="yuv420p")
            self._file.write(b"FRAME\n")
            for plane in picture.planes:
                data, line = memoryview(plane), plane.line_size
                for row in range(plane.height):
                    self._file.write(data[row * line : row * line + plane.width])
            self._file.flush()
        except OSError as error:
            raise MediaError(f"the recording cannot go on: {error.strerror or error}") from None

    def close(self) -> None:
        """See `Sink`."""
        if self._file is not None:
            self._file.close()
            self._file = None
