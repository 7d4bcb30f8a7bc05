"""Picture metrics on planes of luma: motion and detail, PSNR, SSIM, the mean of VMAF scores.

The definitions, in plain Python: they are what the faster tools that look at whole films
(libavfilter, numpy) are held against. A plane is a sequence of rows of equal length.
Source: specification of metrics, section 7; ITU-T P.910; Wang et al. 2004 (SSIM).
"""

from collections.abc import Sequence
from math import exp, hypot, log10
from statistics import fmean, pstdev
from typing import Final, NamedTuple

from streamd.errors import LocalMisuse

Plane = Sequence[Sequence[float]]

PEAK: Final = 255.0
BEST_PSNR: Final = 100.0
"""Of identical pictures (dB), and the most any pair gets."""
_K1: Final = 0.01
_K2: Final = 0.03
_SIDE: Final = 11
_SIGMA: Final = 1.5


def full_range(plane: Plane) -> list[list[float]]:
    """Limited-range luma (16 to 235) stretched to 0 to 255."""
    return [[(value - 16) * 255 / 219 for value in row] for row in plane]


def spatial_information(plane: Plane) -> float:
    """SI: standard deviation of the Sobel magnitude over the inner pixels."""
    rows, columns = _size(plane)
    found = []
    for y in range(1, rows - 1):
        above, here, below = plane[y - 1], plane[y], plane[y + 1]
        for x in range(1, columns - 1):
            left = above[x - 1] + 2 * here[x - 1] + below[x - 1]
            right = above[x + 1] + 2 * here[x + 1] + below[x + 1]
            top = above[x - 1] + 2 * above[x] + above[x + 1]
            bottom = below[x - 1] + 2 * below[x] + below[x + 1]
            found.append(hypot(right - left, bottom - top))
    return pstdev(found)


def temporal_information(before: Plane, after: Plane) -> float:
    """TI: standard deviation over all pixels of the difference of two pictures."""
    return pstdev(_differences(before, after))


def mean_square_error(reference: Plane, decoded: Plane) -> float:
    """Of two planes of one size; LocalMisuse if they differ in it."""
    return fmean(difference * difference for difference in _differences(reference, decoded))


def psnr(mse: float, peak: float = PEAK) -> float:
    """dB of a mean square error; at most `BEST_PSNR`."""
    if mse <= 0:
        return BEST_PSNR
    return min(BEST_PSNR, 10 * log10(peak * peak / mse))


class SequencePsnr(NamedTuple):
    """PSNR of several frames (dB)."""

    mean: float
    """Mean of the frames' values."""
    of_mean: float
    """Of the mean square error over all frames: what ffmpeg calls average."""
    identical: int


def sequence_psnr(errors: Sequence[float]) -> SequencePsnr | None:
    """From the mean square error of each frame; None of no frames."""
    if not errors:
        return None
    return SequencePsnr(
        fmean(psnr(mse) for mse in errors), psnr(fmean(errors)), sum(mse <= 0 for mse in errors)
    )


def ssim(reference: Plane, decoded: Plane) -> float:
    """Mean SSIM over the area an 11x11 Gaussian window fits in; at least 11x11 pixels."""
    rows, columns = _size(reference)
    if (rows, columns) != _size(decoded) or min(rows, columns) < _SIDE:
        raise LocalMisuse(f"SSIM of {columns}x{rows} and {_size(decoded)[::-1]}")
    weights = _window()
    values = [
        _ssim_at(reference, decoded, x, y, weights)
        for y in range(rows - _SIDE + 1)
        for x in range(columns - _SIDE + 1)
    ]
    return fmean(values)


def vmaf_harmonic_mean(scores: Sequence[float]) -> float | None:
    """1 / mean(1 / (score + 1)) - 1; None of no scores."""
    return 1 / fmean(1 / (score + 1) for score in scores) - 1 if scores else None


def _ssim_at(a: Plane, b: Plane, x0: int, y0: int, weights: list[list[float]]) -> float:
    mean_a = mean_b = square_a = square_b = product = 0.0
    for y, row in enumerate(weights):
        for x, weight in enumerate(row):
            va, vb = a[y0 + y][x0 + x], b[y0 + y][x0 + x]
            mean_a += weight * va
            mean_b += weight * vb
            square_a += weight * va * va
            square_b += weight * vb * vb
            product += weight * va * vb
    c1, c2 = (_K1 * PEAK) ** 2, (_K2 * PEAK) ** 2
    variance_a, variance_b = square_a - mean_a**2, square_b - mean_b**2
    covariance = product - mean_a * mean_b
    return ((2 * mean_a * mean_b + c1) * (2 * covariance + c2)) / (
        (mean_a**2 + mean_b**2 + c1) * (variance_a + variance_b + c2)
    )


def _window() -> list[list[float]]:
    middle = _SIDE // 2
    line = [exp(-((n - middle) ** 2) / (2 * _SIGMA**2)) for n in range(_SIDE)]
    total = sum(line) ** 2
    return [[a * b / total for b in line] for a in line]


def _differences(before: Plane, after: Plane) -> list[float]:
    if _size(before) != _size(after):
        raise LocalMisuse(f"planes of {_size(before)[::-1]} and {_size(after)[::-1]} pixels")
    return [
        b - a
        for row_a, row_b in zip(before, after, strict=True)
        for a, b in zip(row_a, row_b, strict=True)
    ]


def _size(plane: Plane) -> tuple[int, int]:
    """Rows and columns."""
    return len(plane), len(plane[0]) if plane else 0
