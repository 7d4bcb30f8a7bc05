"""Freezes by both rules: the worked examples, gap by gap."""

import pytest

from streamd.errors import LocalMisuse
from streamd.qoe.freeze import FreezeDetector, FreezeMode, Tail, to_milliseconds


def _detector(mode: FreezeMode, gaps_ms: list[int], start_ms: int = 1000) -> FreezeDetector:
    detector = FreezeDetector(mode)
    now = start_ms
    detector.on_frame(now / 1000)
    for gap in gaps_ms:
        now += gap
        detector.on_frame(now / 1000)
    return detector


@pytest.mark.parametrize(
    ("mode", "gap", "freezes"),
    [("webrtc", 300, 1), ("formula", 300, 1), ("webrtc", 200, 0), ("formula", 200, 1)],
)
def test_one_long_gap_among_thirty_fps(mode: FreezeMode, gap: int, freezes: int) -> None:
    detector = _detector(mode, [33, 33, 34, 33, 33, 34, gap, 33, 34])
    assert detector.freeze_count == freezes
    assert detector.freeze_duration == freezes * gap / 1000
    assert detector.rendered_frames == 10


@pytest.mark.parametrize(
    ("gap", "frozen"), [(245, False), (246, True), (247, True), (248, False), (249, True)]
)
def test_rounding_makes_the_webrtc_rule_non_monotonic(gap: int, frozen: bool) -> None:
    assert _detector("webrtc", [50] * 5 + [gap]).freeze_count == frozen


@pytest.mark.parametrize(("gap", "frozen"), [(183, False), (184, True)])
def test_the_formula_s_threshold_is_183_3_among_thirty_fps(gap: int, frozen: bool) -> None:
    # avg 33.33, threshold 183.3
    assert _detector("formula", [33, 33, 34, 33, 33, 34, gap]).freeze_count == frozen


@pytest.mark.parametrize(("gap", "frozen"), [(207, False), (208, True)])
def test_the_webrtc_threshold_among_thirty_fps(gap: int, frozen: bool) -> None:
    # both have avg floor(407 / 7) = floor(408 / 7) = 58, threshold 208
    assert _detector("webrtc", [33, 33, 34, 33, 33, 34, gap]).freeze_count == frozen


@pytest.mark.parametrize(("gap", "frozen"), [(200, False), (201, True)])
def test_the_formula_is_strict(gap: int, frozen: bool) -> None:
    assert _detector("formula", [50] * 5 + [gap]).freeze_count == frozen


def test_ten_fps_with_one_gap_of_299_is_no_freeze() -> None:
    assert _detector("webrtc", [100] * 10 + [299]).freeze_count == 0


def test_a_gap_above_five_seconds_is_a_freeze_and_a_pause() -> None:
    detector = _detector("webrtc", [33] * 10 + [6000])
    assert (detector.freeze_count, detector.freeze_duration) == (1, 6.0)
    assert (detector.pause_count, detector.pause_duration) == (1, 6.0)


def test_five_seconds_exactly_are_no_pause() -> None:
    assert _detector("webrtc", [33] * 10 + [5000]).pause_count == 0


def test_a_known_pause_is_no_freeze_and_leaves_the_window_alone() -> None:
    detector = _detector("webrtc", [33, 33, 34, 33, 33])
    detector.on_source_pause()
    now = 1.166 + 2.0
    assert not detector.on_frame(now)
    assert (detector.pause_count, detector.pause_duration) == (1, 2.0)
    # (33+33+34+33+33+221) // 6 = 64, threshold 214: the 2000 are not in the window.
    assert detector.on_frame(now + 0.221)
    assert detector.freeze_duration == 0.221


def test_a_pause_before_the_first_frame_means_nothing() -> None:
    detector = FreezeDetector()
    detector.on_source_pause()
    detector.on_frame(5.0)
    detector.on_frame(5.033)
    assert (detector.pause_count, detector.rendered_frames) == (0, 2)


def test_fewer_than_five_gaps_are_not_judged_by_webrtc() -> None:
    assert _detector("webrtc", [33, 33, 33, 900]).freeze_count == 0
    assert _detector("webrtc", [33, 33, 33, 33, 900]).freeze_count == 1


def test_the_formula_needs_one_earlier_gap() -> None:
    assert _detector("formula", [900]).freeze_count == 0
    assert _detector("formula", [33, 900]).freeze_count == 1


@pytest.mark.parametrize("mode", ["webrtc", "formula"])
def test_the_window_is_thirty_gaps(mode: FreezeMode) -> None:
    # Ten gaps of 100, then thirty of 10: the hundreds have left, so 170 is a freeze in both.
    assert _detector(mode, [100] * 10 + [10] * 30 + [170]).freeze_count == 1
    # With one hundred left in the window of the formula, avg is 13 and 162 no freeze.
    assert _detector("formula", [100] * 10 + [10] * 29 + [163]).freeze_count == 0
    assert _detector("formula", [100] * 10 + [10] * 29 + [164]).freeze_count == 1


def test_no_frame_and_one_frame() -> None:
    detector = FreezeDetector()
    assert (detector.freeze_count, detector.freeze_duration, detector.rendered_frames) == (0, 0, 0)
    assert detector.freeze_share is None
    assert detector.tail(100.0) == Tail(0, 0.0)
    detector.on_frame(3.0)
    assert detector.rendered_frames == 1
    assert detector.freeze_share is None


def test_freeze_share_is_of_the_time_between_first_and_last_frame() -> None:
    detector = _detector("webrtc", [30] * 5 + [450])
    assert detector.freeze_share == 0.75


def test_a_stream_that_died_has_a_tail_freeze() -> None:
    detector = _detector("webrtc", [33] * 60)
    died_at = 1.0 + 60 * 0.033
    assert detector.tail(30.0) == Tail(1, (30000 - 2980) / 1000)
    assert detector.freeze_count == 0
    assert detector.tail(died_at + 0.1) == Tail(0, 0.0)


def test_the_tail_counts_itself_among_the_five_gaps() -> None:
    assert _detector("webrtc", [33] * 4).tail(5.0).freeze_count == 1
    assert _detector("webrtc", [33] * 3).tail(5.0).freeze_count == 0
    assert _detector("formula", [33]).tail(5.0).freeze_count == 1
    assert _detector("formula", []).tail(5.0).freeze_count == 0


def test_the_tail_changes_nothing() -> None:
    detector = _detector("webrtc", [33] * 30)
    assert detector.tail(60.0) == detector.tail(60.0)
    assert not detector.on_frame(1.0 + 31 * 0.033)


def test_a_known_pause_at_the_end_is_no_tail_freeze() -> None:
    detector = _detector("webrtc", [33] * 30)
    detector.on_source_pause()
    assert detector.tail(60.0) == Tail(0, 0.0)


def test_an_end_before_the_last_frame_has_no_tail() -> None:
    assert _detector("webrtc", [33] * 30).tail(0.5) == Tail(0, 0.0)


def test_a_time_that_goes_back_is_a_gap_of_nothing() -> None:
    detector = _detector("webrtc", [33, 33, 33, 33, 33, -500, 533])
    # 10 ms after the latest time seen, not 533 after the one that went back.
    assert detector.freeze_count == 0
    assert detector.freeze_share == 0.0


@pytest.mark.parametrize(
    ("seconds", "milliseconds"),
    [(2.3, 2300), (1.1, 1100), (0.0339999, 33), (0.0333333, 33), (1e6 + 0.001, 1000000001)],
)
def test_times_are_floored_to_milliseconds(seconds: float, milliseconds: int) -> None:
    assert to_milliseconds(seconds) == milliseconds


def test_the_default_mode_is_webrtc_and_others_are_refused() -> None:
    assert FreezeDetector().mode == "webrtc"
    with pytest.raises(LocalMisuse, match="fast"):
        FreezeDetector("fast")  # type: ignore[arg-type]
