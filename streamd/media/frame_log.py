"""A line per frame, as CSV: what the sender encoded, what the receiver showed.

Lines are written as frames come, so a killed process leaves all but the last few. Times are
seconds of the machine's wall clock (Unix), so that two logs of one machine fit together;
the frame number is the same in both, as long as the stream is the first one.
"""

import contextlib
import csv
from pathlib import Path
from typing import IO, Any

from streamd.errors import MediaError, StartupError
from streamd.media.model import EncodedFrame
from streamd.media.quality import Quality, ReferenceFilm
from streamd.media.sinks import Shown

SENT = (
    "frame",
    "captured_unix_s",
    "encoded_unix_s",
    "size_bytes",
    "keyframe",
    "repair",
    "quantizer",
    "target_bps",
    "first_seq",
    "packets",
)
SHOWN = (
    "frame",
    "rtp_time",
    "captured_unix_s",
    "completed_unix_s",
    "shown_unix_s",
    "size_bytes",
    "keyframe",
    "psnr_db",
    "ssim",
)


class _Table:
    """A CSV file that is flushed line by line."""

    def __init__(self, path: Path, columns: tuple[str, ...]) -> None:
        try:
            self._file: IO[str] | None = path.open("w", newline="", encoding="utf-8", buffering=1)
        except OSError as error:
            raise StartupError(f"{path}: cannot be written: {error.strerror or error}") from None
        self._writer: Any = csv.writer(self._file, lineterminator="\n")
        self.add(columns)

    def add(self, row: tuple[object, ...]) -> None:
        try:
            self._writer.writerow(row)
        except (OSError, ValueError) as error:
            self.close()
            raise MediaError(f"the log of frames cannot go on: {error}") from None

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            # what could not be written before cannot be flushed now
            with contextlib.suppress(OSError):
                file.close()


class SentLog:
    """Of a sender."""

    def __init__(self, path: Path, *, unix_offset: float) -> None:
        """`unix_offset`: Unix time minus session time (s). StartupError if it cannot be written."""
        self._table = _Table(path, SENT)
        self._offset = unix_offset

    def add(
        self,
        number: int,
        frame: EncodedFrame,
        *,
        quantizer: int,
        target_bps: float,
        first_seq: int,
        packets: int,
        now: float,
    ) -> None:
        """A frame went to the session at `now`. MediaError when the file cannot be written."""
        self._table.add(
            (
                number,
                f"{frame.captured_at + self._offset:.6f}",
                f"{now + self._offset:.6f}",
                len(frame.data),
                int(frame.keyframe),
                int(frame.refer is not None),
                quantizer if quantizer >= 0 else "",
                round(target_bps),
                first_seq & 0xFFFF,
                packets,
            )
        )

    def close(self) -> None:
        """End the file."""
        self._table.close()


class ShownLog:
    """Of a receiver (`sinks.Sink`); after the comparison it takes the quality from."""

    def __init__(
        self, path: Path, *, unix_offset: float, reference: ReferenceFilm | None = None
    ) -> None:
        """`unix_offset` as in `SentLog`. StartupError if it cannot be written."""
        self._table = _Table(path, SHOWN)
        self._offset = unix_offset
        self._reference = reference

    def stream_started(self, codec: str) -> None:
        """See `Sink`."""

    def show(self, shown: Shown) -> None:
        """See `Sink`."""
        quality: Quality | None = None if self._reference is None else self._reference.last
        captured = shown.captured_unix
        self._table.add(
            (
                shown.frame_no,
                shown.rtp_time,
                "" if captured is None else f"{captured:.6f}",
                f"{shown.completed_at + self._offset:.6f}",
                f"{shown.shown_at + self._offset:.6f}",
                len(shown.data),
                int(shown.keyframe),
                "" if quality is None else f"{quality.psnr:.3f}",
                "" if quality is None else f"{quality.ssim:.5f}",
            )
        )

    def close(self) -> None:
        """See `Sink`."""
        self._table.close()
