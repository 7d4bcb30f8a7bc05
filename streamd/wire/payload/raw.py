"""The bitstream as it is: synthetic frames, and the BW tool's video mode."""

from streamd.wire.payload import Part, pieces


class Raw:
    """No descriptor: only the header extension or the marker tell where a frame ends."""

    name = "raw"
    overhead = 0

    def cut(self, data: bytes, *, keyframe: bool, picture_id: int, size: int) -> list[bytes]:
        """See `PayloadFormat`."""
        return pieces(data, size)

    def join(self, parts: list[bytes]) -> bytes:
        """See `PayloadFormat`."""
        return b"".join(parts)

    def describe(self, payload: bytes) -> Part:
        """See `PayloadFormat`."""
        return Part(True, None, False)
