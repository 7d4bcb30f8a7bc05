"""RTP payload format for VP8 (RFC 7741): one partition index, a 15-bit picture id.

The descriptor (section 4.2): a byte X R N S R PID, by X a byte I L T K, by I a picture id
of 7 or 15 bits, by L TL0PICIDX, by T or K a byte with temporal layer and key index. A
key frame shows in the lowest bit of the frame's first byte.
"""

from streamd.errors import WireError
from streamd.wire.payload import PICTURE_IDS, Part, pieces

_X, _S, _PARTITION = 0x80, 0x10, 0x07
_I, _L, _T, _K = 0x80, 0x40, 0x20, 0x10


class Vp8:
    """One VP8 frame, cut without regard to its partitions."""

    name = "vp8"
    overhead = 4

    def cut(self, data: bytes, *, keyframe: bool, picture_id: int, size: int) -> list[bytes]:
        """See `PayloadFormat`."""
        tail = bytes((_I,)) + (0x8000 | picture_id % PICTURE_IDS).to_bytes(2, "big")
        parts = pieces(data, size - self.overhead)
        return [bytes((_X | (_S if not n else 0),)) + tail + part for n, part in enumerate(parts)]

    def join(self, parts: list[bytes]) -> bytes:
        """See `PayloadFormat`. All parts have one picture id, and partitions only go up."""
        bodies: list[bytes] = []
        picture, partition = None, 0
        for payload in parts:
            start, picture_id, _ = _descriptor(payload)
            before, partition = partition, payload[0] & _PARTITION
            begins = bool(payload[0] & _S) and not partition
            if begins == bool(bodies):
                raise WireError("vp8_payload", "a frame begins at its first part alone")
            if begins:
                picture = picture_id
            elif picture_id != picture:
                raise WireError("vp8_payload", f"picture {picture_id} within {picture}")
            if partition < before:
                raise WireError("vp8_payload", f"partition {partition} behind {before}")
            bodies.append(payload[start:])
        if not bodies:
            raise WireError("vp8_payload", "no parts")
        return b"".join(bodies)

    def describe(self, payload: bytes) -> Part:
        """See `PayloadFormat`."""
        start, picture_id, temporal_id = _descriptor(payload)
        begins = bool(payload[0] & _S) and not payload[0] & _PARTITION
        keyframe = begins and start < len(payload) and not payload[start] & 1
        return Part(begins, None, keyframe, picture_id, temporal_id)


def _descriptor(payload: bytes) -> tuple[int, int | None, int]:
    """(length, picture id, temporal id). Raises WireError."""
    picture_id, temporal_id = None, 0
    try:
        at = 1
        if payload[0] & _X:
            more = payload[at]
            at += 1
            if more & _I:
                picture_id = payload[at] & 0x7F
                if payload[at] & 0x80:
                    picture_id = picture_id << 8 | payload[at + 1]
                    at += 1
                at += 1
            if more & _L:
                at += 1
            if more & (_T | _K):
                temporal_id = payload[at] >> 6 if more & _T else 0
                at += 1
        if at > len(payload) or not payload:
            raise IndexError
    except IndexError:
        raise WireError("vp8_payload", f"{len(payload)} bytes end in the descriptor") from None
    return at, picture_id, temporal_id
