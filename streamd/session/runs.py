"""A run of packets of one frame, recognised as a whole.

A sender's run and the kernel's GRO keep consecutive fragments of one frame
together. Then most of their headers is the same bytes, and the rest counts up.
So one `struct` call cuts the whole run, and a few comparisons over all packets
replace parsing each. Whatever does not match exactly is no run and is handled
packet by packet, so nothing is accepted here that would not be accepted there.

Of the 24 bytes of RTP header and video extension, 4 to 19 are the same in all
fragments of a frame: timestamp, SSRC, extension header, flags, frame id.
"""

import struct
from functools import lru_cache
from typing import NamedTuple

from streamd.wire.rtp import FIRST_BYTE_EXTENSION, MARKER
from streamd.wire.video_ext import FLAG_KEYFRAME, HEADER_SIZE

_PACKET = "BBH16sHH"
"""First byte, second byte, sequence number, the common part, fragment, fragments."""
_FIELDS = 7
"""Of `_PACKET`, with the payload."""
_last = struct.Struct("!" + _PACKET).unpack_from
_common = struct.Struct("!IIHHBBH").unpack
_MIN_PACKETS = 2
_MAX_PACKETS = 128


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
    marker: bool
    """The last packet ends the frame."""
    payloads: list[bytes]
    payload_bytes: int


@lru_cache(256)
def _layout(packets: int, size: int) -> struct.Struct:
    """Packets of `size` bytes each, one after the other."""
    return struct.Struct("!" + f"{_PACKET}{size - HEADER_SIZE}s" * packets)


def match_run(data: bytes, size: int) -> Run | None:
    """The run in `data`, datagrams of `size` bytes each but the last; None if it is none.

    Neither sequence numbers nor markers may wrap or stand inside of it.
    """
    before, rest = divmod(len(data) - 1, size)
    if rest + 1 < HEADER_SIZE or not _MIN_PACKETS <= before + 1 <= _MAX_PACKETS:
        return None
    fields = _layout(before, size).unpack_from(data)
    first, second, seq, common, fragment, fragments, _ = fields[:_FIELDS]
    head = (FIRST_BYTE_EXTENSION, common, fragments)
    start = before * size
    first, kind, number, *end = _last(data, start)
    after = fragment + before
    marker = after + 1 == fragments
    if (
        (first, end[0], end[2]) != head
        or number != seq + before
        or end[1] != after
        or after >= fragments
        or second >= MARKER
        or kind != (second | MARKER if marker else second)
        or fields[0::_FIELDS] != (FIRST_BYTE_EXTENSION,) * before
        or fields[1::_FIELDS] != (second,) * before
        or fields[2::_FIELDS] != tuple(range(seq, number))
        or fields[3::_FIELDS] != (common,) * before
        or fields[4::_FIELDS] != tuple(range(fragment, after))
        or fields[5::_FIELDS] != (fragments,) * before
    ):
        return None
    timestamp, ssrc, profile, words, element, flags, frame_id = _common(common)
    if profile != 0xBEDE or words != 2 or element != 0x16:
        return None
    payloads = [*fields[6::_FIELDS], data[start + HEADER_SIZE :]]
    return Run(
        second,
        seq,
        timestamp,
        ssrc,
        flags >= FLAG_KEYFRAME,
        frame_id,
        fragment,
        fragments,
        marker,
        payloads,
        len(data) - HEADER_SIZE * (before + 1),
    )
