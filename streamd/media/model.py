"""What the sender and receiver need of a source, an encoder and a decoder.

Protocols and values only: the real ones are in `media.pyav` and
`media.libvpx`, the statistical one is in `media.synthetic`.
"""

from collections.abc import Sequence
from typing import Any, Protocol

Picture = Any
"""A decoded picture: an `av.VideoFrame` with real codecs, None with the synthetic one."""


class EncodedFrame:
    """One encoded frame, before it is cut into packets."""

    __slots__ = ("captured_at", "data", "encode_seconds", "keyframe", "refer", "store")

    def __init__(
        self,
        data: bytes,
        keyframe: bool,
        captured_at: float,
        encode_seconds: float = 0.0,
        *,
        store: int | None = None,
        refer: int | None = None,
    ) -> None:
        """`captured_at` in seconds of the session clock.

        `store`: the long-term reference slot it replaced. `refer`: the slot it was
        predicted from alone.
        """
        self.data = data
        self.keyframe = keyframe
        self.captured_at = captured_at
        self.encode_seconds = encode_seconds
        self.store = store
        self.refer = refer


class FrameSource(Protocol):
    """Pictures at a constant frame rate."""

    fps: float
    width: int
    height: int

    def read(self) -> Picture:
        """The next picture. Raises EOFError at the end of a source that is not looped."""

    def close(self) -> None:
        """Release the file or device."""


class VideoEncoder(Protocol):
    """Encodes one picture at a time at a rate that may change with every call."""

    inline: bool
    """True: encoding costs nothing worth a thread (the synthetic codec)."""

    @property
    def long_term(self) -> bool:
        """It keeps two pictures beside the last one, in slots 0 and 1."""

    @property
    def stored(self) -> int | None:
        """The slot the last frame that came out replaced; a key frame replaces both."""

    @property
    def referred(self) -> int | None:
        """The slot that frame was predicted from alone."""

    def encode(
        self,
        picture: Picture,
        *,
        target_bps: float,
        keyframe: bool,
        store: int | None = None,
        refer: int | None = None,
    ) -> tuple[bytes, bool] | None:
        """The bitstream of one frame and whether it is a key frame.

        `store`: this frame shall replace that slot. `refer`: it shall be predicted from that
        slot alone; it replaces none. An encoder without long-term slots ignores both.

        None: the encoder dropped this frame to hold the rate, which is normal;
        nothing is sent and the next frame predicts from the last one sent.
        What was asked for and dropped is asked for again by the encoder itself.
        """

    def close(self) -> None:
        """Free the encoder; further use is an error."""


class VideoDecoder(Protocol):
    """Decodes whole frames in order."""

    inline: bool

    def decode(self, data: bytes) -> Sequence[Picture]:
        """Pictures of one encoded frame; raises MediaError on a damaged one."""

    def close(self) -> None:
        """Free the decoder."""
