"""Section 7 of the specification of metrics, with its numbers."""

import pytest

from streamd.errors import LocalMisuse
from streamd.qoe.pictures import (
    full_range,
    mean_square_error,
    psnr,
    sequence_psnr,
    spatial_information,
    ssim,
    temporal_information,
    vmaf_harmonic_mean,
)

A = [[10, 10, 10, 10], [10, 50, 50, 10], [10, 50, 50, 10], [10, 10, 10, 10]]
B = [[10, 10, 10, 10], [10, 10, 50, 50], [10, 10, 50, 50], [10, 10, 10, 10]]


def flat(value: float, side: int = 12) -> list[list[float]]:
    return [[value] * side for _ in range(side)]


def test_temporal_information_of_a_moved_block() -> None:
    assert temporal_information(A, B) == pytest.approx(20.0)
    assert temporal_information(full_range(A), full_range(B)) == pytest.approx(23.288, abs=5e-4)


def test_spatial_information_of_both() -> None:
    assert spatial_information(A) == pytest.approx(0.0, abs=1e-9)
    assert spatial_information(B) == pytest.approx(21.607, abs=5e-4)


def test_psnr_of_a_small_picture() -> None:
    mse = mean_square_error([[100, 100], [100, 100]], [[100, 102], [104, 100]])
    assert mse == 5
    assert psnr(mse) == pytest.approx(41.141, abs=5e-4)


def test_psnr_of_two_frames_both_ways() -> None:
    found = sequence_psnr([5, 50])
    assert found is not None
    assert found.mean == pytest.approx(36.141, abs=5e-4)
    assert found.of_mean == pytest.approx(33.737, abs=5e-4)
    assert found.identical == 0


def test_identical_pictures_have_100_db_and_are_counted() -> None:
    assert psnr(0.0) == 100.0
    assert psnr(1e-9) == 100.0
    found = sequence_psnr([0.0, 5.0])
    assert found is not None
    assert found.identical == 1
    assert sequence_psnr([]) is None


def test_ten_bit_pictures_have_another_peak() -> None:
    assert psnr(5, 1023) == pytest.approx(53.208, abs=5e-4)


def test_ssim_of_two_constant_pictures() -> None:
    assert ssim(flat(100), flat(110)) == pytest.approx(0.995476, abs=5e-7)
    assert ssim(flat(77), flat(77)) == pytest.approx(1.0)


def test_ssim_falls_with_lost_structure() -> None:
    striped = [[50 + 100 * (x % 2) for x in range(12)] for _ in range(12)]
    assert ssim(striped, flat(100)) < 0.05


def test_planes_of_different_size_cannot_be_compared() -> None:
    with pytest.raises(LocalMisuse):
        mean_square_error(A, flat(1))
    with pytest.raises(LocalMisuse):
        ssim(A, A)


def test_the_harmonic_mean_of_vmaf_scores() -> None:
    assert vmaf_harmonic_mean([0, 100]) == pytest.approx(0.980, abs=5e-4)
    assert vmaf_harmonic_mean([]) is None
