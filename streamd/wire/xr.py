"""RTCP extended reports (RFC 3611): the two blocks that let a receiver time round trips.

A participant that sends no media says what its clock shows (receiver reference
time, block type 4); who hears it answers how long ago that was (DLRR, block
type 5), as a report block does for sender reports. Other blocks are kept as
they are.
"""

import struct
from dataclasses import dataclass, field
from typing import Final, Self

from streamd.errors import LocalMisuse, WireError
from streamd.wire.buffer import Buffer
from streamd.wire.rtcp_header import pack_packet, pack_values

XR: Final = 207
RECEIVER_REFERENCE_TIME: Final = 4
DLRR: Final = 5

_SSRC = struct.Struct("!I")
_BLOCK = struct.Struct("!BBH")
_NTP = struct.Struct("!Q")
_SUB_BLOCK = struct.Struct("!III")


@dataclass(slots=True)
class ReferenceTime:
    """Receiver reference time report block (RFC 3611 section 4.4)."""

    ntp: int
    """64-bit NTP timestamp of when it was sent."""


@dataclass(slots=True)
class LastReference:
    """Answer to one participant's reference time (RFC 3611 section 4.5)."""

    ssrc: int
    """Whose reference time it was."""
    last_rr: int = 0
    """Middle 32 bits of that NTP timestamp; 0 = none yet."""
    delay: int = 0
    """Since it came, in 1/65536 s."""


@dataclass(slots=True)
class LastReferences:
    """DLRR report block."""

    answers: list[LastReference] = field(default_factory=list)


@dataclass(slots=True)
class OtherBlock:
    """A block streamd has no use for."""

    block_type: int
    type_specific: int
    body: bytes


XrBlock = ReferenceTime | LastReferences | OtherBlock


@dataclass(slots=True)
class ExtendedReport:
    """XR: any number of blocks from one participant."""

    ssrc: int
    blocks: list[XrBlock] = field(default_factory=list)

    @classmethod
    def of_reference_time(cls, ssrc: int, ntp: int) -> Self:
        """The question of one participant: what its clock shows."""
        return cls(ssrc, [ReferenceTime(ntp)])

    @classmethod
    def of_answer(cls, ssrc: int, answer: LastReference) -> Self:
        """The answer to one participant."""
        return cls(ssrc, [LastReferences([answer])])

    def encode(self) -> bytes:
        """The RTCP packet; LocalMisuse if a value does not fit its field."""
        blocks = b"".join(map(_encode_block, self.blocks))
        return pack_packet(XR, 0, pack_values(_SSRC, self.ssrc) + blocks)

    def reference_time(self) -> int | None:
        """The 64-bit NTP timestamp it tells; None where it tells none."""
        for block in self.blocks:
            if isinstance(block, ReferenceTime):
                return block.ntp
        return None

    def answer_to(self, ssrc: int) -> LastReference | None:
        """What it answers to one participant, if anything."""
        for block in self.blocks:
            if isinstance(block, LastReferences):
                for answer in block.answers:
                    if answer.ssrc == ssrc and answer.last_rr:
                        return answer
        return None


def decode_extended_report(data: Buffer, start: int, end: int) -> ExtendedReport:
    """The XR whose body (without header and padding) is `data[start:end]`.

    Raises WireError on a block beyond the end, or one of types 4 and 5 whose length is wrong.
    """
    if end - start < _SSRC.size:
        raise WireError("rtcp_xr", f"body of {end - start} bytes")
    report = ExtendedReport(_SSRC.unpack_from(data, start)[0])
    position = start + _SSRC.size
    while position < end:
        # Bodies are whole words, so the four bytes of a block's header are there.
        block_type, specific, words = _BLOCK.unpack_from(data, position)
        body, following = position + 4, position + 4 + 4 * words
        if following > end:
            raise WireError("rtcp_xr_block", f"ends {following - end} bytes beyond the packet")
        report.blocks.append(_decode_block(data, block_type, specific, body, following))
        position = following
    return report


def _decode_block(data: Buffer, block_type: int, specific: int, start: int, end: int) -> XrBlock:
    size = end - start
    if block_type == RECEIVER_REFERENCE_TIME:
        if size != _NTP.size:
            raise WireError("rtcp_xr_rrtr", f"block of {size} bytes, 8 expected")
        return ReferenceTime(_NTP.unpack_from(data, start)[0])
    if block_type == DLRR:
        if size % _SUB_BLOCK.size:
            raise WireError("rtcp_xr_dlrr", f"block of {size} bytes, 12 for each answer expected")
        return LastReferences(
            [
                LastReference(*_SUB_BLOCK.unpack_from(data, position))
                for position in range(start, end, _SUB_BLOCK.size)
            ]
        )
    return OtherBlock(block_type, specific, bytes(data[start:end]))


def _encode_block(block: XrBlock) -> bytes:
    if isinstance(block, ReferenceTime):
        body, kind, specific = pack_values(_NTP, block.ntp), RECEIVER_REFERENCE_TIME, 0
    elif isinstance(block, LastReferences):
        answers = (pack_values(_SUB_BLOCK, a.ssrc, a.last_rr, a.delay) for a in block.answers)
        body, kind, specific = b"".join(answers), DLRR, 0
    else:
        if len(block.body) % 4:
            raise LocalMisuse(f"XR block of {len(block.body)} bytes, not whole words")
        body, kind, specific = block.body, block.block_type, block.type_specific
    return pack_values(_BLOCK, kind, specific, len(body) // 4) + body
