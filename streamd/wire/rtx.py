"""Retransmission payload format (RFC 4588 section 4): a copy as a packet of its own stream.

The copy has an SSRC, payload type and numbering of its own; header extension,
timestamp and marker are the original's. Its payload is the original sequence number
(OSN, 2 bytes) and the original payload.
"""

from typing import Final

from streamd.errors import WireError
from streamd.wire.buffer import Buffer
from streamd.wire.rtp import MARKER, RtpFields, parse_rtp_fast

OSN_SIZE: Final = 2


def wrap(data: bytes, *, ssrc: int, payload_type: int, seq: int) -> bytes:
    """The retransmission packet for the RTP packet `data`; `seq` may be unwrapped."""
    start = parse_rtp_fast(data, 0, len(data))[6]
    return b"".join(
        (
            data[:1],
            bytes((data[1] & MARKER | payload_type,)),
            (seq & 0xFFFF).to_bytes(2, "big"),
            data[4:8],
            ssrc.to_bytes(4, "big"),
            data[12:start],
            data[2:4],
            data[start:],
        )
    )


def original_seq(data: Buffer, fields: RtpFields) -> int:
    """The sequence number of the packet this is a copy of. Raises WireError if there is none."""
    start, end = fields[6:]
    if end - start < OSN_SIZE:
        raise WireError("rtx_truncated", f"{end - start} bytes of payload, 2 needed")
    return data[start] << 8 | data[start + 1]


def unwrap(data: bytes, fields: RtpFields, *, ssrc: int, payload_type: int) -> bytes:
    """The original packet out of a copy as `parse_rtp_fast` read it. Raises WireError."""
    original_seq(data, fields)
    start = fields[6]
    return b"".join(
        (
            data[:1],
            bytes((data[1] & MARKER | payload_type,)),
            data[start : start + OSN_SIZE],
            data[4:8],
            ssrc.to_bytes(4, "big"),
            data[12:start],
            data[start + OSN_SIZE :],
        )
    )
