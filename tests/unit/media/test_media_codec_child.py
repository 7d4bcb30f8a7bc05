"""What is measured in a process of its own: memory (target 9) and damage (target 12)."""

from pathlib import Path

import pytest

from streamd.bench.child import run_child

CHILD = "streamd.bench.codec_child"


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
@pytest.mark.parametrize("codec", ["vp9", "vp8"])
def test_ten_thousand_rate_changes_without_growth(codec: str) -> None:
    counts = run_child(CHILD, "memory", codec, "10000")
    assert counts["frames_count"] == 10_000
    assert counts["keyframes_count"] == 1
    assert counts["stream_growth_bytes"] <= 2_000_000
    assert counts["cycle_growth_bytes"] <= 2_000_000


@pytest.mark.parametrize("codec", ["vp9", "vp8"])
def test_damaged_frames_are_refused_or_shown_and_never_fatal(codec: str) -> None:
    counts = run_child(CHILD, "damage", codec, "2000", timeout_s=120.0)
    assert counts["pictures_count"] > 100
    assert counts["refused_count"] > 100
    assert counts["pictures_count"] + counts["refused_count"] <= counts["frames_count"] == 2_000
