"""RTP congestion control feedback (RFC 8888): one RTCP packet, several block lists.

A packet is: header (PT 205, FMT 11), sender SSRC, block lists, report timestamp.
A list is: media SSRC, begin_seq, num_reports, one 16-bit word per packet, and
two zero bytes where the number of words is odd. The words are kept as they are
on the wire (R in bit 15, ECN in 14-13, arrival time offset in 12-0), because a
report of 64 costs one `struct` call that way and objects per packet do not.

`minus_one` selects the dialect of the public SCReAM BW tool, where num_reports
holds the number of blocks minus 1 (so a list cannot be empty). RFC 8888 with
erratum 8166 means the plain number.
"""

import struct
from dataclasses import dataclass, field
from typing import Final

from streamd.errors import LocalMisuse, WireError
from streamd.wire.buffer import Buffer

RTPFB: Final = 205
"""RTCP packet type of transport-layer feedback (RFC 4585 section 6.1)."""
FMT_CCFB: Final = 11
"""Feedback message type of congestion control feedback (RFC 8888 section 3.1)."""
MAX_BLOCKS: Final = 16384
"""Most blocks one list may hold: a quarter of the sequence space (RFC 8888 section 3.1)."""

BLOCK_RECEIVED: Final = 0x8000
"""The R bit of a block."""
ATO_MASK: Final = 0x1FFF
ATO_OVER_RANGE: Final = 0x1FFE
"""The packet arrived more than 8189/1024 s before the report."""
ATO_UNAVAILABLE: Final = 0x1FFF
"""No arrival time, or one after the report."""

_HEADER = struct.Struct("!BBHI")
_LIST = struct.Struct("!IHH")
_U32 = struct.Struct("!I")
_MAX_WORDS = 0xFFFF
_U32_MASK = 0xFFFFFFFF

_FIRST_BYTE: Final = 0x80 | FMT_CCFB


@dataclass(slots=True)
class BlockList:
    """What the receiver saw of one SSRC: `blocks[i]` is about `begin_seq + i` modulo 2^16."""

    ssrc: int
    begin_seq: int
    blocks: list[int]


@dataclass(slots=True)
class CongestionFeedback:
    """One RFC 8888 packet; `timestamp` is the receiver's clock in 1/65536 s modulo 2^32."""

    sender_ssrc: int
    lists: list[BlockList] = field(default_factory=list)
    timestamp: int = 0


def pack_block(ecn: int, offset: int) -> int:
    """The word of a received packet: its two ECN bits and its arrival time offset (1/1024 s)."""
    return BLOCK_RECEIVED | (ecn & 3) << 13 | offset & ATO_MASK


def unpack_block(block: int) -> tuple[bool, int, int]:
    """(received, ECN bits, arrival time offset in 1/1024 s) of a word."""
    return block >= BLOCK_RECEIVED, block >> 13 & 3, block & ATO_MASK


def offset_from_ticks(report_ticks: int, arrival_ticks: int) -> int:
    """The offset to report for an arrival; both times in 1/65536 s, compared modulo 2^32.

    Truncated to 1/1024 s and saturated at ATO_OVER_RANGE; an arrival after the
    report gives ATO_UNAVAILABLE (RFC 8888 section 3.1).
    """
    ticks = report_ticks - arrival_ticks & _U32_MASK
    if ticks < 0x7FF80:  # 0x1FFE << 6: the usual case first
        return ticks >> 6
    return ATO_OVER_RANGE if ticks < 0x80000000 else ATO_UNAVAILABLE


def arrival_ticks(timestamp: int, block: int) -> int | None:
    """When the packet of a received block arrived: the receiver's clock, 1/65536 s modulo 2^32.

    None where the block has no arrival time. For ATO_OVER_RANGE the true time
    is this or earlier.
    """
    offset = block & ATO_MASK
    if offset == ATO_UNAVAILABLE:
        return None
    return timestamp - (offset << 6) & _U32_MASK


def encode_ccfb(feedback: CongestionFeedback, *, minus_one: bool = False) -> bytes:
    """The RTCP packet of a report; LocalMisuse if a value does not fit its field."""
    try:
        parts = [_encode_list(item, minus_one) for item in feedback.lists]
        parts.append(_U32.pack(feedback.timestamp))
        words = 1 + sum(map(len, parts)) // 4
        if words > _MAX_WORDS:
            raise LocalMisuse(f"feedback of {words} words, an RTCP packet holds {_MAX_WORDS}")
        header = _HEADER.pack(_FIRST_BYTE, RTPFB, words, feedback.sender_ssrc)
    except struct.error as error:
        raise LocalMisuse(f"feedback does not fit its fields: {error}") from None
    return header + b"".join(parts)


def _encode_list(item: BlockList, minus_one: bool) -> bytes:
    blocks = item.blocks
    count = len(blocks)
    if count > MAX_BLOCKS:
        raise LocalMisuse(f"{count} blocks in one list, the limit is {MAX_BLOCKS}")
    if minus_one and not count:
        raise LocalMisuse("an empty list has no num_reports in the blocks-minus-1 form")
    pad = "2x" if count & 1 else ""
    return struct.pack(f"!IHH{count}H{pad}", item.ssrc, item.begin_seq, count - minus_one, *blocks)


def decode_ccfb(
    data: Buffer,
    *,
    minus_one: bool = False,
    start: int = 0,
    end: int | None = None,
) -> CongestionFeedback:
    """The report in `data[start:end]`, which must hold exactly one RTCP packet.

    Raises WireError on anything else than a well-formed RFC 8888 packet.
    """
    if end is None:
        end = len(data)
    if end - start < 12:
        raise WireError("ccfb_truncated", f"{end - start} bytes, at least 12 needed")
    first, packet_type, words, sender_ssrc = _HEADER.unpack_from(data, start)
    if first & 0xDF != _FIRST_BYTE or packet_type != RTPFB:
        raise WireError("ccfb_type", f"first bytes {first:#04x} {packet_type}")
    if words * 4 + 4 != end - start:
        raise WireError("ccfb_length", f"length {words} words in {end - start} bytes")
    tail = end - (_padding(data, start, end) if first & 0x20 else 0) - 4
    feedback = CongestionFeedback(sender_ssrc, [], _U32.unpack_from(data, tail)[0])
    _decode_lists(feedback.lists, data, start + 8, tail, minus_one)
    return feedback


def _padding(data: Buffer, start: int, end: int) -> int:
    """RTCP padding as counted by the last byte (RFC 3550 section 6.4.1)."""
    count = data[end - 1]
    if not count or count % 4 or count > end - start - 12:
        raise WireError("ccfb_padding", f"{count} bytes of padding in {end - start}")
    return count


def _decode_lists(
    lists: list[BlockList],
    data: Buffer,
    position: int,
    tail: int,
    minus_one: bool,
) -> None:
    unpack_from = struct.unpack_from
    while position < tail:
        if tail - position < 8:
            raise WireError("ccfb_list", f"{tail - position} bytes left for a block list")
        ssrc, begin_seq, count = _LIST.unpack_from(data, position)
        count += minus_one
        position += 8
        following = position + (count + 1) // 2 * 4
        if count > MAX_BLOCKS or following > tail:
            raise WireError("ccfb_blocks", f"{count} blocks in {tail - position} bytes")
        lists.append(BlockList(ssrc, begin_seq, list(unpack_from(f"!{count}H", data, position))))
        position = following
