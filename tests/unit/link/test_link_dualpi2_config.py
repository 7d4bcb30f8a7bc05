"""DualPI2's parameters: the defaults of each mode, limits, and what is refused."""

import sys

import pytest

from streamd.errors import ConfigError
from streamd.link.dualpi2_config import WEAK_GAIN, DualPi2Config, resolve


def test_linux_is_the_default_with_linux_defaults() -> None:
    p = resolve(DualPi2Config())
    assert (p.mode, p.limit_packets, p.limit_bytes) == ("linux", 10_000, sys.maxsize)
    assert (p.target, p.tupdate, p.k, p.wc, p.step) == (0.015, 0.016, 2.0, 10.0, 0.001)
    assert (p.alpha, p.beta) == (41 / 256, 819 / 256)
    assert (p.likelihood, p.update, p.l_min_len, p.ramp) == ("random", "clock", -1, 0.0)


def test_rfc_has_the_ramp_and_the_counter() -> None:
    p = resolve(DualPi2Config(mode="rfc", packets=100))
    assert (p.limit_packets, p.limit_bytes) == (sys.maxsize, 150_000)
    assert (p.tupdate, p.alpha, p.beta) == (0.015, 0.15, 3.0)
    assert (p.step, p.ramp, p.l_min_len, p.likelihood) == (0.0008, 0.0004, 1, "recur")


def test_the_forks_profiles() -> None:
    plain = resolve(DualPi2Config(mode="mahimahi"))
    n = resolve(DualPi2Config(mode="mahimahi-n"))
    m = resolve(DualPi2Config(mode="mahimahi-m"))
    assert (plain.alpha, plain.beta, plain.mtu, plain.update) == (0.16, 3.2, 1500, "clock")
    assert n.alpha == pytest.approx(0.16 / 274.878)
    assert n.beta == pytest.approx(3.2 / 274.878)
    assert (n.mtu, n.update, n.judge_next) == (1504, "traffic", False)
    assert (m.alpha, m.mtu, m.update, m.judge_next) == (0.16, 1504, "traffic", True)
    assert (n.limit_bytes, plain.l_min_len) == (15_040_000, 1)


def test_the_gain_scales_both_gains() -> None:
    p = resolve(DualPi2Config(mode="mahimahi", gain=WEAK_GAIN, alpha=0.2, beta=4.0))
    assert p.alpha == pytest.approx(0.2 / 274.878)
    assert p.beta == pytest.approx(4.0 / 274.878)
    assert p.gain == WEAK_GAIN


def test_bytes_and_packets_together_take_the_tighter_limit() -> None:
    p = resolve(DualPi2Config(mode="rfc", packets=100, bytes=60_000))
    assert p.limit_bytes == 60_000
    p = resolve(DualPi2Config(mode="rfc", packets=10, bytes=60_000))
    assert p.limit_bytes == 15_000
    p = resolve(DualPi2Config(packets=10, bytes=60_000))
    assert (p.limit_packets, p.limit_bytes) == (10, 60_000)
    p = resolve(DualPi2Config(bytes=60_000))
    assert (p.limit_packets, p.limit_bytes) == (sys.maxsize, 60_000)


def test_the_time_shift_follows_the_target_unless_given() -> None:
    assert resolve(DualPi2Config(target=0.02)).tshift == 0.04
    assert resolve(DualPi2Config(target=0.02, tshift=0.05)).tshift == 0.05


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (DualPi2Config(mode="cake"), "unknown mode 'cake'; there are linux, rfc, mahimahi"),  # type: ignore[arg-type]
        (DualPi2Config(ramp=0.001), "ramp applies in mode rfc, not in linux"),
        (DualPi2Config(mode="rfc", step_packets=1), "step_packets applies in mode linux"),
        (DualPi2Config(mode="rfc", drop_at="enqueue"), "drop_at applies in mode linux"),
        (DualPi2Config(packets=0), "packets must be above 0, got 0"),
        (DualPi2Config(target=-0.1), "target must be above 0, got -0.1"),
        (DualPi2Config(alpha=-1.0), "alpha must be at least 0, got -1.0"),
        (DualPi2Config(step=float("nan")), "step must be finite, got nan"),
        (DualPi2Config(wc=100), "wc must be between 0 and 100 percent, got 100"),
        (DualPi2Config(l_min_len=-2), "l_min_len must be at least -1, got -2"),
    ],
)
def test_what_is_out_of_range_or_place_is_refused(config: DualPi2Config, message: str) -> None:
    with pytest.raises(ConfigError, match=f"dualpi2: {message}"):
        resolve(config)
