"""The codec targets 1 to 7: how VP9 and VP8 follow a rate that changes with every frame.

Encoding with one thread is the same at every run and on every machine, so the
figures are compared with the targets' own limits.
"""

from itertools import pairwise
from typing import Any

import pytest

from streamd.bench import codec_figures
from streamd.bench.codec_figures import RateFollowing, figures
from streamd.bench.codec_inputs import built_in, recorded, recorded_folder
from streamd.bench.codec_steps import every_ordered_pair

START = 29
CODECS = ("vp9", "vp8")
EXPECTED = 20
"""Figures with a limit: one of target 1, five of 2, three of 3 and 4, two of 5 and 6, four of 7."""


@pytest.fixture(scope="module")
def drawn() -> dict[str, list[Any]]:
    return {name: built_in(name, start=START) for name in ("medium", "high")}


@pytest.fixture(scope="module")
def filmed() -> dict[str, list[Any]]:
    clips = recorded(recorded_folder(), start=START)
    if not clips:
        pytest.skip(f"no recorded clips in {recorded_folder()} (STREAMD_CLIPS)")
    return clips


def assert_targets_hold(codec: str, following: RateFollowing) -> None:
    bounded = [figure for figure in figures(codec, following) if figure.holds is not None]
    assert len(bounded) == EXPECTED
    missed = [f"{f.key} {f.value:.4g} is not {f.bounds}" for f in bounded if not f.holds]
    assert missed == []


@pytest.mark.parametrize("codec", CODECS)
def test_targets_on_the_built_in_clips(
    codec: str, drawn: dict[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codec_figures, "KEYFRAMES", 5)
    following = RateFollowing()
    for clip in drawn.values():
        following.add_steps(codec, clip)
    following.add_walk(codec, drawn["high"])
    following.add_keyframes(codec, drawn["medium"])
    assert len(following.steps) == 24
    assert following.forced == following.produced == 15
    assert_targets_hold(codec, following)


@pytest.mark.parametrize("codec", CODECS)
def test_targets_on_the_recorded_clips(
    codec: str, filmed: dict[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codec_figures, "KEYFRAMES", 5)
    following = RateFollowing()
    for clip in filmed.values():
        following.add_steps(codec, clip)
    following.add_walk(codec, filmed["carphone"])
    following.add_keyframes(codec, filmed["bikes, no cuts"])
    assert_targets_hold(codec, following)


def test_the_walk_over_rates_meets_every_ordered_pair_once() -> None:
    walk = every_ordered_pair(5)
    pairs = list(pairwise(walk))
    assert len(pairs) == len(set(pairs)) == 20
    assert all(one != other for one, other in pairs)
