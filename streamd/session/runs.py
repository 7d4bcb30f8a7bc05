"""A run of packets of one frame, recognised as a whole.

A sender's run and the kernel's GRO keep consecutive fragments of one frame
together. Then every header follows from the first one, and one comparison per
packet replaces parsing it. Whatever does not match exactly is no run and is
handled packet by packet, so nothing is accepted here that would not be there.
"""

from typing import NamedTuple

from streamd.wire.rtp import FIRST_BYTE_EXTENSION, MARKER
from streamd.wire.video_ext import FLAG_KEYFRAME, HEADER_SIZE, VIDEO_PACKET, pack_video_header

_unpack = VIDEO_PACKET.unpack_from
_FOLLOWS_RTP = (0xBEDE, 2, 0x16)
"""Of the video extension: profile, words, element."""


class Run(NamedTuple):
    """Packets from `seq` on, carrying fragments from `fragment` on of one frame."""

    payload_type: int
    seq: int
    timestamp: int
    ssrc: int
    keyframe: bool
    frame_id: int
    fragment: int
    fragments: int
    """Of the whole frame."""
    payloads: list[bytes]

    @property
    def marker(self) -> bool:
        """The last packet ends the frame."""
        return self.fragment + len(self.payloads) == self.fragments


def match_run(data: bytes, size: int) -> Run | None:
    """The run in `data`, datagrams of `size` bytes each but the last; None if it is none."""
    total = len(data)
    last = (total - 1) // size * size
    if not last or total - last < HEADER_SIZE:
        return None
    first, second, seq, timestamp, ssrc, *follows, flags, frame_id, index, count = _unpack(data, 0)
    if first != FIRST_BYTE_EXTENSION or second >= MARKER or tuple(follows) != _FOLLOWS_RTP:
        return None
    number = index
    payloads = [data[HEADER_SIZE:size]]
    for start in range(size, total, size):
        number += 1
        # A marker stands on the last fragment and nowhere else.
        kind = second | MARKER if start == last and number + 1 == count else second
        step = number - index
        expected = pack_video_header(
            kind, seq + step, timestamp, ssrc, flags, frame_id, number, count
        )
        body = start + HEADER_SIZE
        if data[start:body] != expected:
            return None
        payloads.append(data[body : start + size])
    if number >= count:
        return None
    keyframe = flags >= FLAG_KEYFRAME
    return Run(second, seq, timestamp, ssrc, keyframe, frame_id, index, count, payloads)
