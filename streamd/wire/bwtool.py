"""What is particular to the public SCReAM BW tool's end of the wire, and only that.

One UDP port carries, towards the receiver: RTP of payload type 98 (marker on
the last packet of a frame, or the video extension of `video_ext`), and text
lines, told by a second byte of exactly 0x7F. Towards the sender: bare RFC 8888
packets whose num_reports is the number of blocks minus 1, and datagrams of one
byte that keep a NAT open. There is no other RTCP.
"""

from typing import Final

from streamd.errors import WireError
from streamd.wire.buffer import Buffer
from streamd.wire.ccfb import BlockList, CongestionFeedback, decode_ccfb, encode_ccfb

PAYLOAD_TYPE: Final = 98
MEDIA_SSRC: Final = 100
"""Of every RTP packet; the receiver reports under it whatever a packet says."""
RTCP_SENDER_SSRC: Final = 10
MTU: Final = 1200
"""Most payload bytes per packet; 12 of header, or 24 with the video extension, come on top."""

TEXT_SECOND_BYTE: Final = 0x7F
"""Payload type 127 without marker: the datagram is a line of text, not RTP."""
TEXT_OFFSET: Final = 2
KEEPALIVE: Final = b"\x00"
"""The reference sends whatever is in its buffer; only the length of one byte means anything."""
KEEPALIVE_INTERVAL: Final = 0.5
"""Seconds without feedback after which the receiver sends a keep-alive; also one at its start."""

REPORT_BLOCKS: Final = 64
"""Blocks per list (`-nreported`)."""
ACK_DIFF: Final = 32
"""Packets after which a report is due (`-ackdiff`, half of REPORT_BLOCKS)."""
REPORT_INTERVAL: Final = 0.04
"""Seconds after which a report is due while packets arrive."""
FIRST_REPORT_INTERVAL: Final = 0.2
"""REPORT_INTERVAL until FIRST_REPORT_PERIOD after the first packet."""
FIRST_REPORT_PERIOD: Final = 0.1
MAX_REPORT_BYTES: Final = 900
"""Lists are added to a report while it is shorter than this."""
RECEIVER_RESET: Final = 2.0
"""Seconds without RTP after which the receiver begins afresh."""


def is_keepalive(size: int) -> bool:
    """Whether a datagram of `size` bytes is a keep-alive: to be ignored by either end."""
    return size == 1


def is_text(data: Buffer, start: int, end: int) -> bool:
    """Whether the datagram `data[start:end]` is a line of text for the receiver's terminal."""
    return end - start > 1 and data[start + 1] == TEXT_SECOND_BYTE


def text_line(data: Buffer, start: int, end: int) -> str:
    """The text of such a datagram; WireError if it is none.

    It goes to a terminal, so what is not printable ASCII becomes "?".
    """
    if not is_text(data, start, end):
        raise WireError("bwtool_text", f"{end - start} bytes are no text line")
    raw = bytes(data[start + TEXT_OFFSET : end]).rstrip(b"\0\r\n")
    return "".join(chr(byte) if 32 <= byte < 127 else "?" for byte in raw)


def encode_report(lists: list[BlockList], timestamp: int) -> bytes:
    """A report as the reference sender wants it.

    `timestamp` in 1/65536 s. The last block of each list should be a received
    packet: the reference runs its control loop at that block only if it is.
    """
    return encode_ccfb(CongestionFeedback(RTCP_SENDER_SSRC, lists, timestamp), minus_one=True)


def decode_report(data: Buffer, start: int = 0, end: int | None = None) -> CongestionFeedback:
    """A report of the reference receiver; WireError on bad bytes."""
    return decode_ccfb(data, minus_one=True, start=start, end=end)
