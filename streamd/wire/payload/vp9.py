"""RTP payload format for VP9 (RFC 9628), non-flexible mode, one layer out, any layers in.

The descriptor (section 4.2): a byte I P L F B E V Z, then by I a picture id of 7 or 15
bits, by L the layer indices (and in non-flexible mode TL0PICIDX), by F and P up to three
reference indices, by V the scalability structure.
"""

from streamd.errors import WireError
from streamd.wire.payload import PICTURE_IDS, Part, pieces

_I, _P, _L, _F, _B, _E, _V = 0x80, 0x40, 0x20, 0x10, 0x08, 0x04, 0x02
_REFERENCES = 3


class Vp9:
    """One VP9 frame per picture."""

    name = "vp9"
    overhead = 3

    def cut(self, data: bytes, *, keyframe: bool, picture_id: int, size: int) -> list[bytes]:
        """See `PayloadFormat`."""
        number = (0x8000 | picture_id % PICTURE_IDS).to_bytes(2, "big")
        parts = pieces(data, size - self.overhead)
        first = _I | (0 if keyframe else _P)
        last = len(parts) - 1
        return [
            bytes((first | (_B if not n else 0) | (_E if n == last else 0),)) + number + part
            for n, part in enumerate(parts)
        ]

    def join(self, parts: list[bytes]) -> bytes:
        """See `PayloadFormat`. Of several spatial layers each may begin and end in the frame.

        All parts have one picture id, those of a layer one layer too.
        """
        bodies: list[bytes] = []
        picture, layer, open_layer = None, (0, 0), False
        for payload in parts:
            start, picture_id, temporal_id, spatial_id = _descriptor(payload)
            if bool(payload[0] & _B) == open_layer:
                raise WireError("vp9_payload", "a part without its beginning or end")
            if not bodies:
                picture = picture_id
            elif picture_id != picture:
                raise WireError("vp9_payload", f"picture {picture_id} within {picture}")
            if open_layer and (temporal_id, spatial_id) != layer:
                raise WireError("vp9_payload", "a layer changes between its begin and end")
            layer = temporal_id, spatial_id
            open_layer = not payload[0] & _E
            bodies.append(payload[start:])
        if open_layer or not parts:
            raise WireError("vp9_payload", "a frame without its end")
        return b"".join(bodies)

    def describe(self, payload: bytes) -> Part:
        """See `PayloadFormat`."""
        start, picture_id, temporal_id, spatial_id = _descriptor(payload)
        first = payload[0]
        begins = bool(first & _B) and not spatial_id
        keyframe = begins and not first & _P and _is_key(payload[start : start + 1])
        return Part(begins, None, keyframe, picture_id, temporal_id, spatial_id)


def _is_key(head: bytes) -> bool:
    """By the bitstream's first byte (VP9 specification, section 6.2): some never set P."""
    if not head or head[0] >> 6 != 2:
        return False
    # two bits of profile; behind profile 3 one more; then show_existing_frame and frame_type
    return not head[0] & (0x06 if head[0] & 0x30 == 0x30 else 0x0C)


def _descriptor(payload: bytes) -> tuple[int, int | None, int, int]:
    """(length, picture id, temporal id, spatial id). Raises WireError."""
    try:
        return _read(payload)
    except IndexError:
        raise WireError("vp9_payload", f"{len(payload)} bytes end in the descriptor") from None


def _read(payload: bytes) -> tuple[int, int | None, int, int]:
    first, at = payload[0], 1
    picture_id, temporal_id, spatial_id = None, 0, 0
    if first & _I:
        picture_id = payload[at] & 0x7F
        if payload[at] & 0x80:
            picture_id = picture_id << 8 | payload[at + 1]
            at += 1
        at += 1
    if first & _L:
        temporal_id, spatial_id = payload[at] >> 5, payload[at] >> 1 & 7
        at += 1 if first & _F else 2
    if first & _F and first & _P:
        count = 1
        while payload[at] & 1:
            count += 1
            at += 1
            if count > _REFERENCES:
                raise WireError("vp9_payload", "more than three references")
        at += 1
    if first & _V:
        at = _structure(payload, at)
    if at > len(payload):
        raise IndexError
    return at, picture_id, temporal_id, spatial_id


def _structure(payload: bytes, at: int) -> int:
    """Where the scalability structure ends."""
    head = payload[at]
    at += 1
    if head & 0x10:
        at += 4 * ((head >> 5) + 1)
    if head & 0x08:
        groups = payload[at]
        at += 1
        for _ in range(groups):
            at += 1 + (payload[at] >> 2 & 3)
    return at
