"""Generated traces: the shape the model promises, for every seed, and constant rates."""

import random
from collections import Counter
from itertools import pairwise
from statistics import fmean, stdev

import pytest

from streamd.errors import ConfigError
from streamd.link.generate import (
    LteModel,
    builtin_trace,
    constant_trace,
    lte_trace,
)
from streamd.link.trace import Trace


@pytest.mark.parametrize("seed", range(6))
def test_every_seed_has_the_papers_load(seed: int) -> None:
    trace = lte_trace(random.Random(seed))
    seconds = trace.per_second_bps()
    assert trace.period_ms == 140_000
    assert len(seconds) == 140
    assert fmean(seconds) == pytest.approx(5.8e6, rel=0.01)
    assert stdev(seconds) == pytest.approx(3.1e6, rel=0.02)
    assert 2 <= sum(bps == 0 for bps in seconds) <= 10
    assert max(seconds) < 14.5e6


def test_the_fine_structure_is_bursty() -> None:
    trace = lte_trace(random.Random(1))
    per_ms = Counter(trace.times_ms)
    active = sorted(per_ms)
    gaps = Counter(b - a for a, b in pairwise(active))
    share = {
        name: sum(n for gap, n in gaps.items() if low <= gap <= high) / gaps.total()
        for name, low, high in (("1", 1, 1), ("2", 2, 2), ("3-4", 3, 4), ("5+", 5, 10**6))
    }
    assert 0.27 < len(active) / 140_000 < 0.36
    assert share["1"] == pytest.approx(0.42, abs=0.06)
    assert share["2"] == pytest.approx(0.25, abs=0.06)
    assert share["3-4"] == pytest.approx(0.16, abs=0.04)
    assert share["5+"] == pytest.approx(0.17, abs=0.04)
    # The second mode: rounds of scheduling requests.
    assert min(gaps[8], gaps[9], gaps[10]) > 2 * max(gaps[7], gaps[13])


def test_the_same_seed_gives_the_same_trace_and_another_seed_another() -> None:
    assert lte_trace(random.Random(5)).sha256 == lte_trace(random.Random(5)).sha256
    assert lte_trace(random.Random(5)).sha256 != lte_trace(random.Random(6)).sha256


def test_the_built_in_trace_is_always_the_same_and_has_its_first_outage_at_22_s() -> None:
    trace = builtin_trace("lte")
    assert trace.name == "lte"
    assert trace.sha256 == builtin_trace("lte").sha256
    assert [k for k, bps in enumerate(trace.per_second_bps()) if bps == 0] == [22, 85, 103]


def test_an_unknown_built_in_name_lists_what_there_is() -> None:
    with pytest.raises(ConfigError, match="no built-in trace 'wifi'; there are: lte"):
        builtin_trace("wifi")


def test_other_lengths_and_loads() -> None:
    model = LteModel(seconds=20, mean_bps=2e6, sd_bps=1e6, cap_bps=6e6)
    seconds = lte_trace(random.Random(2), model).per_second_bps()
    assert len(seconds) == 20
    assert fmean(seconds) == pytest.approx(2e6, rel=0.03)
    assert stdev(seconds) == pytest.approx(1e6, rel=0.05)


def test_a_model_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least 10 s, got 9"):
        LteModel(seconds=9)
    with pytest.raises(ConfigError, match="0 < sd < mean < cap"):
        LteModel(sd_bps=6e6)


@pytest.mark.parametrize(
    ("bps", "expected"),
    [(12e6, list(range(1, 1001))), (12e3, [1000]), (36e3, [334, 667, 1000])],
)
def test_a_constant_rate_is_evenly_spaced(bps: float, expected: list[int]) -> None:
    assert list(constant_trace(bps).times_ms) == expected


def test_a_constant_rate_keeps_its_mean() -> None:
    trace = constant_trace(5e6, seconds=3.0)
    assert trace.mean_bps == 5e6
    assert trace.name == "constant-5000000bps"
    assert isinstance(trace, Trace)


@pytest.mark.parametrize(
    ("bps", "seconds"), [(0.0, 1.0), (1e3, 1.0), (float("inf"), 1.0), (1e9, 0.0)]
)
def test_a_rate_without_opportunities_is_refused(bps: float, seconds: float) -> None:
    with pytest.raises(ConfigError, match="gives no delivery opportunity"):
        constant_trace(bps, seconds=seconds)
