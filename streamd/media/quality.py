"""PSNR and SSIM of what was shown against the source picture of the same moment.

Theory of operation. A frame is compared with the picture it was made of (`by_id` in the
specification of metrics, 7.2), never with the one shown beside it: a skipped frame
misaligns nothing. Where the sender is at hand (the simulator) that picture is kept until
the frame is decoded; a receiver that was given the same film finds it by the frame's
timestamp. libavfilter computes: mean square error of luma, and SSIM of luma over 8x8
blocks, which differs in the third digit from the 11x11 window of the literature. A picture
of another size is scaled to that of the source first.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import av
from av.filter import Graph

from streamd.errors import MediaError
from streamd.media.model import FrameSource, Picture
from streamd.qoe.pictures import BEST_PSNR, psnr

MAX_WAITING = 512
"""Source pictures kept for frames that may still be decoded."""
MAX_AHEAD = 3000
"""Pictures of a film that are read over at once: a timestamp further ahead is damaged."""
RTP_CLOCK = 90_000
_TICK = Fraction(1, 1000)


class Quality(NamedTuple):
    """Of one picture."""

    mse: float
    """Mean square error of luma, 8 bit."""
    ssim: float

    @property
    def psnr(self) -> float:
        """dB."""
        return psnr(self.mse)


class QualityMeter:
    """Compares pictures with references of one size."""

    def __init__(self, width: int, height: int) -> None:
        """Of the references. MediaError where libavfilter lacks the filters."""
        self._size = (width, height)
        self._count = 0
        arguments = f"video_size={width}x{height}:pix_fmt=yuv420p:time_base=1/1000:pixel_aspect=1/1"
        try:
            graph = Graph()
            decoded = graph.add("buffer", arguments)
            reference = graph.add("buffer", arguments)
            both, errors, structure = graph.add("split"), graph.add("psnr"), graph.add("ssim")
            sink = graph.add("buffersink")
            reference.link_to(both)
            decoded.link_to(errors, 0, 0)
            both.link_to(errors, 0, 1)
            errors.link_to(structure, 0, 0)
            both.link_to(structure, 1, 1)
            structure.link_to(sink)
            graph.configure()
        except (av.FFmpegError, ValueError) as error:
            raise MediaError(f"pictures cannot be compared: {error}") from None
        self._graph = graph
        self._decoded, self._reference, self._sink = decoded, reference, sink

    def compare(self, reference: Picture, decoded: Picture) -> Quality:
        """Of yuv420p pictures; MediaError if libavfilter fails."""
        width, height = self._size
        if (decoded.width, decoded.height, decoded.format.name) != (width, height, "yuv420p"):
            decoded = decoded.reformat(
                width=width, height=height, format="yuv420p", interpolation="BICUBIC"
            )
        self._count += 1
        try:
            for picture, entrance in ((decoded, self._decoded), (reference, self._reference)):
                # others number the same picture too
                pts, base = picture.pts, picture.time_base
                picture.pts, picture.time_base = self._count, _TICK
                entrance.push(picture)
                picture.pts = pts
                if base is not None:
                    picture.time_base = base
            found: Any = self._sink.pull().metadata
        except av.FFmpegError as error:
            raise MediaError(f"pictures cannot be compared: {error}") from None
        return Quality(float(found["lavfi.psnr.mse.y"]), float(found["lavfi.ssim.Y"]))


class QualitySum:
    """Over a run."""

    def __init__(self) -> None:
        self.count = 0
        self.identical = 0
        """Pictures without any difference."""
        self._mse = self._psnr = self._ssim = 0.0

    def add(self, quality: Quality) -> None:
        """One more picture."""
        self.count += 1
        self.identical += not quality.mse
        self._mse += quality.mse
        self._psnr += min(BEST_PSNR, quality.psnr)
        self._ssim += quality.ssim

    def figures(self) -> dict[str, float | None]:
        """Result keys; None where nothing was compared."""
        count = self.count
        return {
            "frames_compared_count": count,
            "psnr_mean_db": self._psnr / count if count else None,
            "psnr_of_mean_db": psnr(self._mse / count) if count else None,
            "ssim_mean": self._ssim / count if count else None,
        }


class KeptPictures:
    """References by frame number, where the sender is at hand."""

    def __init__(self, width: int, height: int) -> None:
        self._meter = QualityMeter(width, height)
        self._waiting: dict[int, Picture] = {}
        self.sum = QualitySum()
        self.by_frame: dict[int, Quality] = {}
        """Of every frame compared."""

    def sent(self, frame_no: int, picture: Picture) -> None:
        """This picture became that frame."""
        self._waiting[frame_no] = picture
        if len(self._waiting) > MAX_WAITING:
            del self._waiting[next(iter(self._waiting))]

    def shown(self, frame_no: int, picture: Picture) -> Quality | None:
        """Compare; None if the source picture is not there any more."""
        reference = self._waiting.pop(frame_no, None)
        if reference is None:
            return None
        quality = self._meter.compare(reference, picture)
        self.sum.add(quality)
        self.by_frame[frame_no] = quality
        return quality


class ReferenceFilm:
    """The film the sender streams, read along at the receiver.

    The first frame of a stream has to be its first picture; without that frame nothing of
    the stream is compared. Timestamps tell how many pictures later a frame is.
    """

    def __init__(self, open_film: Callable[[], FrameSource]) -> None:
        """`open_film` opens it from the beginning; it is called once per stream."""
        self._open = open_film
        self._film: FrameSource | None = open_film()
        self._meter: QualityMeter | None = None
        self._begin: int | None = None
        """Timestamp of the first picture; None: unknown."""
        self._next = 0
        self._new = True
        self.last: Quality | None = None
        """Of the picture given last."""
        self.sum = QualitySum()

    def stream_started(self) -> None:
        """The next frame is the first one shown of another stream."""
        self._new = True

    def shown(self, frame_no: int, rtp_time: int, picture: Picture) -> Quality | None:
        """Compare with the picture of that timestamp; None where it is not known."""
        self.last = self._compare(frame_no, rtp_time, picture)
        return self.last

    def _compare(self, frame_no: int, rtp_time: int, picture: Picture) -> Quality | None:
        if self._new:
            self._new = False
            self._begin = None
            if not frame_no & 0xFFFF:
                self._start(rtp_time)
        film, meter = self._film, self._meter
        if self._begin is None or film is None or meter is None:
            return None
        index = round(((rtp_time - self._begin) & 0xFFFFFFFF) * film.fps / RTP_CLOCK)
        if not self._next <= index < self._next + MAX_AHEAD:
            return None
        try:
            while self._next < index:
                film.read()
                self._next += 1
            reference = film.read()
        except EOFError:
            return None
        self._next += 1
        quality = meter.compare(reference, picture)
        self.sum.add(quality)
        return quality

    def close(self) -> None:
        """Close the film."""
        if self._film is not None:
            self._film.close()
            self._film = None

    def _start(self, rtp_time: int) -> None:
        if self._film is None or self._next:
            self.close()
            self._film = self._open()
        self._meter = QualityMeter(self._film.width, self._film.height)
        self._begin, self._next = rtp_time, 0
