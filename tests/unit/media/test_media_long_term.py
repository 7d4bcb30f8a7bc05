"""Long-term references: repair without a key frame, bit-exact at a decoder that missed frames."""

from collections.abc import Iterator
from typing import Any

import pytest

from streamd.errors import LocalMisuse, MediaError
from streamd.media.clips import ClipSource
from streamd.media.libvpx import VpxEncoder
from streamd.media.pyav_codec import PyavDecoder

CODECS = ("vp9", "vp8")


def planes(pictures: Any) -> list[bytes]:
    return [bytes(plane) for picture in pictures for plane in picture.planes]


@pytest.fixture(params=CODECS)
def encoder(request: pytest.FixtureRequest) -> Iterator[VpxEncoder]:
    made = VpxEncoder(request.param, 352, 288, 30, start_bps=600_000, long_term=True)
    yield made
    made.close()


class Film:
    """Encodes a clip and keeps every frame with what a decoder that missed none shows."""

    def __init__(self, encoder: VpxEncoder) -> None:
        self.encoder = encoder
        self.source = ClipSource("medium")
        self.decoder = PyavDecoder(encoder.codec)
        self.frames: list[bytes | None] = []
        self.shown: list[list[bytes]] = []

    def next(self, *, store: int | None = None, refer: int | None = None) -> None:
        out = self.encoder.encode(
            self.source.read(), target_bps=600_000, keyframe=False, store=store, refer=refer
        )
        self.frames.append(out and out[0])
        self.shown.append([] if out is None else planes(self.decoder.decode(out[0])))


@pytest.mark.parametrize("trial", range(20))
@pytest.mark.parametrize("codec", CODECS)
def test_a_repair_frame_is_bit_exact_whatever_was_lost(codec: str, trial: int) -> None:
    """Target 10 of the codecs' acceptance: ages 3 to 60, one lost frame to all but the stored."""
    encoder = VpxEncoder(codec, 352, 288, 30, start_bps=600_000, long_term=True)
    film = Film(encoder)
    slot, age = trial % 2, 3 * (trial + 1)
    for _ in range(5):
        film.next()
    film.next(store=slot)
    while encoder.stored != slot:
        film.next()
    stored = len(film.frames) - 1
    for _ in range(age):
        film.next()
    film.next(refer=slot)
    while encoder.referred != slot:
        film.next()
    repaired = len(film.frames) - 1
    for _ in range(5):
        film.next()
    encoder.close()
    # what is lost: everything since the stored frame, or only the last before the repair
    lost_from = stored + 1 if trial % 4 < 2 else repaired - 1
    decoder = PyavDecoder(codec)
    for number, data in enumerate(film.frames):
        if data is None or lost_from <= number < repaired:
            continue
        pictures = planes(decoder.decode(data))
        if number >= repaired:
            assert pictures == film.shown[number]
    assert film.shown[repaired]


def test_after_a_repair_the_other_slot_is_not_needed(encoder: VpxEncoder) -> None:
    """A slot the receiver missed must not come back by way of an ordinary frame."""
    film = Film(encoder)
    film.next()
    film.next(store=0)
    kept = len(film.frames)
    film.next(store=1)
    for _ in range(4):
        film.next()
    film.next(refer=0)
    while encoder.referred != 0:
        film.next()
    repaired = len(film.frames) - 1
    for _ in range(20):
        film.next()
    decoder = PyavDecoder(encoder.codec)
    for number, data in enumerate(film.frames):
        if data is not None and not kept <= number < repaired:
            pictures = planes(decoder.decode(data))
            assert pictures == film.shown[number]


def test_what_came_out_is_told(encoder: VpxEncoder) -> None:
    film = Film(encoder)
    film.next(store=1, refer=0)
    # the first frame is a key frame: it refers to nothing and replaces both slots
    assert (encoder.stored, encoder.referred) == (None, None)
    film.next(store=1)
    assert encoder.stored == 1
    film.next()
    assert encoder.stored is None


def test_a_slot_there_is_not_is_refused(encoder: VpxEncoder) -> None:
    with pytest.raises(LocalMisuse, match="slot 2"):
        encoder.encode(ClipSource("low").read(), target_bps=1e6, keyframe=False, store=2)


def test_without_long_term_references_nothing_is_stored() -> None:
    encoder = VpxEncoder("vp9", 352, 288, 30, start_bps=600_000)
    source = ClipSource("low")
    for _ in range(3):
        encoder.encode(source.read(), target_bps=1e6, keyframe=False, store=0, refer=1)
        assert (encoder.stored, encoder.referred) == (None, None)
    encoder.close()


@pytest.mark.parametrize("codec", CODECS)
def test_repair_frames_are_small(codec: str) -> None:
    """About twice a target frame from a young reference; a key frame is larger."""
    encoder = VpxEncoder(codec, 352, 288, 30, start_bps=600_000, long_term=True)
    film = Film(encoder)
    for _ in range(30):
        film.next()
    sizes = []
    for _ in range(10):
        film.next(store=0)
        for _ in range(5):
            film.next()
        film.next(refer=0)
        if film.frames[-1] is not None and encoder.referred == 0:
            sizes.append(len(film.frames[-1]) * 8 * 30 / 600_000)
        for _ in range(10):
            film.next()
    encoder.close()
    assert len(sizes) >= 8
    assert sorted(sizes)[len(sizes) // 2] < 3.0


def test_a_decoder_that_missed_the_reference_is_not_used(encoder: VpxEncoder) -> None:
    """Before any key frame nothing is decoded: the decoder says so."""
    film = Film(encoder)
    film.next()
    film.next(store=0)
    film.next(refer=0)
    data = film.frames[-1]
    assert data is not None
    with pytest.raises(MediaError):
        PyavDecoder(encoder.codec).decode(data)
