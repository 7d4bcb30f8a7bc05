"""An encoder that takes fewer or smaller pictures where the rate is too low for all of them."""

from typing import Protocol

from streamd.media.ladder import Ladder
from streamd.media.model import Picture, VideoEncoder


class ResizableEncoder(VideoEncoder, Protocol):
    """An encoder that tells its quantizer and can change its size."""

    width: int
    height: int
    last_quantizer: int
    """Of the last frame, 0 to 63."""

    def resize(self, width: int, height: int) -> None:
        """Encode pictures of this size from now on."""


class AdaptiveEncoder:
    """Wraps an encoder with the ladder (`model.VideoEncoder`)."""

    inline = False

    def __init__(self, encoder: ResizableEncoder, fps: float, *, resizes: bool) -> None:
        """`resizes`: a change of size needs no key frame."""
        self._encoder = encoder
        self._fps = fps
        self._tick = 0
        self.ladder = Ladder(encoder.width, encoder.height, resizes=resizes)
        self.skipped = 0
        """Pictures left out to halve the frame rate."""

    @property
    def long_term(self) -> bool:
        return self._encoder.long_term

    @property
    def stored(self) -> int | None:
        return self._encoder.stored

    @property
    def referred(self) -> int | None:
        return self._encoder.referred

    @property
    def last_quantizer(self) -> int:
        """Of the last frame, 0 to 63."""
        return self._encoder.last_quantizer

    def wants(self, tick: int) -> bool:
        """Whether the picture of this tick is to be encoded; ticks count from the start."""
        self._tick = tick
        wanted = self.ladder.wants(tick)
        self.skipped += not wanted
        return wanted

    def encode(
        self,
        picture: Picture,
        *,
        target_bps: float,
        keyframe: bool,
        store: int | None = None,
        refer: int | None = None,
    ) -> tuple[bytes, bool] | None:
        """As `model.VideoEncoder.encode`; the rate holds however many pictures are left out."""
        encoder, ladder = self._encoder, self.ladder
        if (encoder.width, encoder.height) != ladder.size:
            encoder.resize(*ladder.size)
        out = encoder.encode(
            ladder.fit(picture),
            # rate control counts pictures: each stands for so many
            target_bps=target_bps * ladder.rung.every,
            keyframe=keyframe,
            store=store,
            refer=refer,
        )
        if out is not None:
            now = self._tick / self._fps
            ladder.on_frame(len(out[0]), encoder.last_quantizer, target_bps, now)
        return out

    def close(self) -> None:
        """Free the encoder."""
        self._encoder.close()
