"""PSNR and SSIM against the source: libavfilter's numbers, and which pictures are compared."""

from collections.abc import Iterator
from typing import Any

import av
import pytest

from streamd.media.clips import ClipSource
from streamd.media.quality import KeptPictures, QualityMeter, QualitySum, ReferenceFilm
from streamd.qoe.pictures import mean_square_error


def flat(luma: int, width: int = 64, height: int = 48) -> Any:
    picture = av.VideoFrame(width, height, "yuv420p")
    for number, plane in enumerate(picture.planes):
        plane.update(bytes([128 if number else luma]) * plane.buffer_size)
    return picture


def rows(picture: Any) -> list[list[float]]:
    plane = picture.planes[0]
    data = bytes(plane)
    return [
        [float(value) for value in data[at : at + plane.width]]
        for at in range(0, plane.line_size * plane.height, plane.line_size)
    ]


def test_flat_pictures_have_the_error_and_the_similarity_they_must_have() -> None:
    quality = QualityMeter(64, 48).compare(flat(100), flat(110))
    assert quality.mse == pytest.approx(100.0)
    assert quality.psnr == pytest.approx(28.131, abs=5e-4)
    # the worked example of the specification, whatever the window
    assert quality.ssim == pytest.approx(0.995476, abs=5e-6)


def test_real_pictures_have_the_error_of_the_definition() -> None:
    source = ClipSource("high")
    first, second = source.read(), source.read()
    quality = QualityMeter(352, 288).compare(first, second)
    assert quality.mse == pytest.approx(mean_square_error(rows(first), rows(second)), rel=1e-4)
    assert 0.1 < quality.ssim < 0.99


def test_a_picture_of_half_the_size_is_scaled() -> None:
    quality = QualityMeter(64, 48).compare(flat(100), flat(100, 32, 24))
    assert quality.mse == 0.0
    assert quality.ssim == pytest.approx(1.0)


def test_the_pictures_keep_their_own_times() -> None:
    reference, decoded = flat(1), flat(2)
    reference.pts = 77
    QualityMeter(64, 48).compare(reference, decoded)
    assert reference.pts == 77


def test_sums_as_results() -> None:
    total = QualitySum()
    assert total.figures() == {
        "frames_compared_count": 0,
        "psnr_mean_db": None,
        "psnr_of_mean_db": None,
        "ssim_mean": None,
    }
    meter = QualityMeter(64, 48)
    total.add(meter.compare(flat(100), flat(100)))
    total.add(meter.compare(flat(100), flat(110)))
    figures = total.figures()
    assert figures["frames_compared_count"] == 2
    assert figures["psnr_mean_db"] == pytest.approx((100 + 28.131) / 2, abs=5e-4)
    assert figures["psnr_of_mean_db"] == pytest.approx(31.141, abs=5e-4)
    assert total.identical == 1


def test_kept_pictures_are_found_by_number_once() -> None:
    kept = KeptPictures(64, 48)
    kept.sent(5, flat(100))
    assert kept.shown(4, flat(100)) is None
    found = kept.shown(5, flat(100))
    assert found is not None
    assert found.mse == 0.0
    assert kept.shown(5, flat(100)) is None


class Film:
    """Picture n is flat, with a luma of n."""

    fps = 30.0
    width, height = 64, 48

    def __init__(self, length: int = 200) -> None:
        self._pictures: Iterator[int] = iter(range(length))
        self.closed = False

    def read(self) -> Any:
        try:
            return flat(next(self._pictures))
        except StopIteration:
            raise EOFError from None

    def close(self) -> None:
        self.closed = True


def test_a_film_is_read_along_by_timestamp() -> None:
    film = ReferenceFilm(Film)
    begin = 0xFFFFFFFF - 5000  # the timestamp wraps after the first picture
    for index, frame_no in ((0, 0), (1, 1), (4, 2), (50, 3)):
        rtp_time = (begin + index * 3000) & 0xFFFFFFFF
        found = film.shown(frame_no, rtp_time, flat(index))
        assert found is not None
        assert found.mse == 0.0
    # what is over, or far ahead, is not compared
    assert film.shown(4, begin, flat(0)) is None
    assert film.shown(5, (begin + 4000 * 3000) & 0xFFFFFFFF, flat(0)) is None
    assert film.sum.count == 4
    film.close()


def test_without_the_first_frame_nothing_is_compared_until_another_stream() -> None:
    film = ReferenceFilm(Film)
    assert film.shown(3, 9000, flat(3)) is None
    assert film.shown(65_536, 9000 + 3000 * 65_533, flat(3)) is None
    film.stream_started()
    found = film.shown(2 << 16, 77, flat(0))
    assert found is not None
    assert found.mse == 0.0


def test_the_end_of_the_film_is_the_end_of_the_comparison() -> None:
    film = ReferenceFilm(lambda: Film(2))
    assert film.shown(0, 0, flat(0)) is not None
    assert film.shown(1, 6000, flat(2)) is None
