"""Frames into RTP packets.

Every packet of a frame carries the capture time as RTP timestamp (90 kHz) and,
unless switched off, the 12-byte video extension that names frame and fragment;
the last one carries the marker. Sequence number and timestamp start where the
configuration says (at random by default, RFC 3550 section 5.1).
"""

import math
from dataclasses import dataclass

from streamd.media.model import EncodedFrame
from streamd.session.queue import MediaPacket
from streamd.wire.abs_capture_time import CaptureTime, pack_capture_element
from streamd.wire.ntp import unix_to_ntp
from streamd.wire.payload.formats import FORMATS
from streamd.wire.rtp import HEADER_SIZE, MARKER, pack_header
from streamd.wire.video_ext import (
    FLAG_KEYFRAME,
    MAX_FRAGMENTS,
    pack_reference,
    pack_video_header,
    pack_video_header_with,
)
from streamd.wire.video_ext import HEADER_SIZE as VIDEO_HEADER_SIZE

RTP_CLOCK = 90_000
CAPTURE_INTERVAL = 0.5
"""Between capture times told (s)."""
CAPTURE_BYTES = 12
"""What telling one adds to a packet; all of that frame are cut smaller by as much."""
PAYLOAD_TYPES = {"vp8": 96, "h264": 97, "vp9": 98, "synthetic": 99}
"""Dynamic payload types (RFC 3551 section 3) by codec; the BW tool uses 98 for everything."""


@dataclass(frozen=True, slots=True)
class StreamIdentity:
    """What the RTP header of a stream starts from."""

    ssrc: int
    payload_type: int = PAYLOAD_TYPES["vp9"]
    first_seq: int = 0
    first_timestamp: int = 0
    """RTP timestamp of session time 0."""
    video_extension: bool = True
    capture_times: bool = False
    """Capture times are told, every half second and on key frames (abs-capture-time)."""
    payload: str = "raw"
    """Payload format by its name in `wire.payload.formats`."""


class Packetizer:
    """Numbers and cuts the frames of one stream."""

    def __init__(self, identity: StreamIdentity, *, unix_offset: float = 0.0) -> None:
        """`unix_offset`: Unix time minus session time (s), for capture times."""
        self._identity = identity
        self._unix_offset = unix_offset
        self._told_at = -math.inf
        """Capture of the last frame whose time was told."""
        self._seq = identity.first_seq
        self._frame_no = 0
        self._form = FORMATS[identity.payload]
        self.header_size = VIDEO_HEADER_SIZE if identity.video_extension else HEADER_SIZE

    @property
    def next_seq(self) -> int:
        """Unwrapped sequence number of the next packet."""
        return self._seq

    @property
    def next_frame(self) -> int:
        """Unwrapped id of the next frame."""
        return self._frame_no

    def rtp_time(self, at: float) -> int:
        """Unwrapped RTP timestamp of a session time (s)."""
        return self._identity.first_timestamp + int(at * RTP_CLOCK)

    def packetize(
        self, frame: EncodedFrame, *, payload: int, now: float, refers: int | None = None
    ) -> list[MediaPacket]:
        """Cut a frame into packets of at most `payload` bytes after header and extension, or
        of one byte of the bitstream where not even that fits.

        `refers`: the frame it is predicted from, where that is not the one before.

        A frame too large for the 16-bit fragment count is cut coarser.
        """
        form, size = self._form, len(frame.data)
        payload = max(payload, form.overhead + 1)
        told = self._tell_capture(frame)
        if told:
            payload = max(form.overhead + 1, payload - CAPTURE_BYTES)
        if size > MAX_FRAGMENTS * (payload - form.overhead):
            payload = -(-size // MAX_FRAGMENTS) + form.overhead
        parts = form.cut(
            frame.data, keyframe=frame.keyframe, picture_id=self._frame_no, size=payload
        )
        count = len(parts)
        rtp_time = self.rtp_time(frame.captured_at)
        headers = self._headers(frame.keyframe, rtp_time, count, refers, told)
        ssrc, seq = self._identity.ssrc, self._seq
        packets = []
        last = count - 1
        for index in range(count):
            body = headers[index] + parts[index]
            packets.append(MediaPacket(ssrc, seq + index, rtp_time, index == last, body, now))
        self._seq += count
        self._frame_no += 1
        return packets

    def _tell_capture(self, frame: EncodedFrame) -> bytes:
        """The element with its capture time, if that is due; else nothing."""
        identity, at = self._identity, frame.captured_at
        if not (identity.capture_times and identity.video_extension):
            return b""
        if not frame.keyframe and at - self._told_at < CAPTURE_INTERVAL:
            return b""
        self._told_at = at
        return pack_capture_element(CaptureTime(unix_to_ntp(at + self._unix_offset)))

    def _headers(
        self, keyframe: bool, timestamp: int, count: int, refers: int | None, told: bytes
    ) -> list[bytes]:
        """`told`: an element for the first packet alone."""
        identity = self._identity
        kind, ssrc, seq = identity.payload_type, identity.ssrc, self._seq
        seconds = [kind] * (count - 1) + [kind | MARKER]
        if not identity.video_extension:
            return [pack_header(seconds[i], seq + i, timestamp, ssrc) for i in range(count)]
        flags = FLAG_KEYFRAME if keyframe else 0
        frame_no = self._frame_no
        elements = b"" if refers is None else pack_reference(refers)
        if elements:
            headers = [
                pack_video_header_with(
                    elements, seconds[i], seq + i, timestamp, ssrc, flags, frame_no, i, count
                )
                for i in range(count)
            ]
        else:
            headers = [
                pack_video_header(seconds[i], seq + i, timestamp, ssrc, flags, frame_no, i, count)
                for i in range(count)
            ]
        if told:
            headers[0] = pack_video_header_with(
                elements + told, seconds[0], seq, timestamp, ssrc, flags, frame_no, 0, count
            )
        return headers
