"""RTP payload formats: a frame's bitstream into payloads and back.

Each format has `cut` (bitstream to payloads), `join` (all payloads of a frame, in order, to
bitstream) and `describe` (what one payload tells of its place in the frame, for streams
that carry no header extension of ours). Payloads of a peer are checked; what contradicts
itself is a WireError.
"""

from typing import Final, NamedTuple, Protocol

from streamd.errors import LocalMisuse

PICTURE_IDS: Final = 1 << 15
"""Picture ids have 15 bits in VP8 and VP9."""


class Part(NamedTuple):
    """What a payload tells of itself."""

    start: bool
    """It begins a frame."""
    end: bool | None
    """It ends one; None where only the RTP marker tells."""
    keyframe: bool
    """It belongs to a key frame, as far as this payload alone shows."""
    picture_id: int | None = None
    temporal_id: int = 0
    spatial_id: int = 0


class PayloadFormat(Protocol):
    """One RTP payload format."""

    name: str
    overhead: int
    """Most bytes a payload has on top of the bitstream in it."""

    def cut(self, data: bytes, *, keyframe: bool, picture_id: int, size: int) -> list[bytes]:
        """Payloads of at most `size` bytes; `picture_id` may be unwrapped.

        Raises LocalMisuse where `size` leaves no room beside the overhead.
        """

    def join(self, parts: list[bytes]) -> bytes:
        """The bitstream. Raises WireError."""

    def describe(self, payload: bytes) -> Part:
        """Of one payload. Raises WireError."""


def pieces(data: bytes, size: int) -> list[bytes]:
    """`data` in as few pieces of at most `size` bytes as will do; at least one.

    Raises LocalMisuse where `size` is not positive.
    """
    if size < 1:
        raise LocalMisuse(f"no room for a payload: {size} bytes beside the descriptor")
    return [data[at : at + size] for at in range(0, len(data), size)] or [b""]
