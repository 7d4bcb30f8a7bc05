"""The abs-capture-time header extension element: when a frame was captured, on an NTP clock.

Registered as `URI`. The data are 8 bytes, an NTP timestamp (Q32.32 seconds
since 1900) of the capture system's clock, or 16: then a signed Q32.32 follows,
what the sender believes must be added to its own NTP clock (that of its sender
reports) to get the capture system's. A sender that captures leaves it out.
"""

import struct
from typing import Final, NamedTuple

from streamd.errors import LocalMisuse, WireError
from streamd.wire.buffer import Buffer
from streamd.wire.extension import ONE_BYTE_MAX_ID, decode_elements
from streamd.wire.ntp import ntp_to_unix

URI: Final = "http://www.webrtc.org/experiments/rtp-hdrext/abs-capture-time"
ELEMENT_ID: Final = 4
"""Of our streams; 1 and 3 are in `video_ext`."""
SHORT_SIZE: Final = 8
LONG_SIZE: Final = 16

_SHORT = struct.Struct("!Q")
_LONG = struct.Struct("!Qq")
_Q32 = 2.0**32


class CaptureTime(NamedTuple):
    """A capture time as it is on the wire."""

    ntp: int
    """64-bit NTP timestamp of the capture system's clock."""
    clock_offset: int | None = None
    """The capture system's clock minus the sender's, in 2^-32 s; None: not told."""

    def sender_unix(self) -> float:
        """Capture time on the sender's clock (Unix seconds)."""
        return ntp_to_unix(self.ntp) - (self.clock_offset or 0) / _Q32


def encode_capture_time(capture: CaptureTime) -> bytes:
    """The element's data, 8 or 16 bytes; LocalMisuse if a value does not fit."""
    try:
        if capture.clock_offset is None:
            return _SHORT.pack(capture.ntp)
        return _LONG.pack(*capture)
    except struct.error as error:
        raise LocalMisuse(f"{capture} does not fit: {error}") from None


def decode_capture_time(value: bytes) -> CaptureTime:
    """The element's data read; WireError unless there are 8 or 16 bytes."""
    if len(value) == SHORT_SIZE:
        return CaptureTime(*_SHORT.unpack(value))
    if len(value) == LONG_SIZE:
        return CaptureTime(*_LONG.unpack(value))
    raise WireError("abs_capture_time", f"element of {len(value)} bytes, 8 or 16 expected")


def pack_capture_element(capture: CaptureTime, element_id: int = ELEMENT_ID) -> bytes:
    """The whole element in the one-byte form (RFC 8285 section 4.2), unpadded."""
    if not 1 <= element_id <= ONE_BYTE_MAX_ID:
        raise LocalMisuse(f"element id {element_id}, 1 to {ONE_BYTE_MAX_ID} expected")
    value = encode_capture_time(capture)
    return bytes((element_id << 4 | len(value) - 1,)) + value


def parse_capture_time(
    data: Buffer, ext_start: int, payload_start: int, element_id: int = ELEMENT_ID
) -> CaptureTime | None:
    """The capture time in the extension `parse_rtp_fast` found; None where there is none.

    Raises WireError on an element of the wrong length or a malformed extension.
    """
    if ext_start == payload_start:
        return None
    profile = data[ext_start] << 8 | data[ext_start + 1]
    for identifier, value in decode_elements(profile, data, ext_start + 4, payload_start):
        if identifier == element_id:
            return decode_capture_time(value)
    return None
