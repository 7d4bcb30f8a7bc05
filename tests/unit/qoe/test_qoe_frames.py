"""Frame status accounting, inter-frame delay, harmonic frame rate."""

import pytest

from streamd.errors import LocalMisuse
from streamd.qoe.frames import (
    FrameLedger,
    FrameStatus,
    InterFrameDelay,
    harmonic_frame_rate,
    inter_frame_delays,
    time_to_first_frame,
)
from streamd.qoe.percentile import percentile


def test_inter_frame_delays_of_four_completions() -> None:
    delays = inter_frame_delays([0.0, 66.0, 33.0, 200.0])
    assert delays == [33.0, 33.0, 134.0]
    assert percentile(delays, 50) == 33.0
    assert inter_frame_delays([1.0]) == []


def test_inter_frame_delay_frame_by_frame() -> None:
    meter = InterFrameDelay()
    assert [meter.on_frame(index, at) for index, at in enumerate([0, 33, 66, 200])] == [
        None,
        33,
        33,
        134,
    ]
    assert meter.frames == 4
    assert meter.delays.percentile(50) == 33.0


def test_a_frame_completed_after_a_later_one_was_rendered_does_not_count() -> None:
    meter = InterFrameDelay()
    meter.on_frame(7, 1.0)
    meter.on_frame(9, 1.5)
    meter.on_rendered(9)
    meter.on_rendered(7)
    assert meter.on_frame(8, 1.75) is None
    assert meter.on_frame(10, 2.0) == 0.5
    assert meter.frames == 3


def test_harmonic_frame_rate_weighs_gaps_by_their_time() -> None:
    assert harmonic_frame_rate([0.1, 0.1, 0.1, 0.7]) == pytest.approx(1.0 / 0.52)
    assert harmonic_frame_rate([0.1, 0.1, 0.1, 0.7]) == pytest.approx(1.92, abs=0.005)
    assert harmonic_frame_rate([]) is None


def test_harmonic_frame_rate_frame_by_frame() -> None:
    meter = InterFrameDelay()
    assert meter.harmonic_fps is None
    meter.on_frame(0, 10.0)
    assert meter.harmonic_fps is None
    for index, at in enumerate([10.1, 10.2, 10.3, 11.0]):
        meter.on_frame(index + 1, at)
    assert meter.harmonic_fps == pytest.approx(1.0 / 0.52)


def test_time_to_first_frame() -> None:
    assert time_to_first_frame(10.0, 10.25) == 0.25
    assert time_to_first_frame(10.0, None) is None


def test_every_captured_frame_has_one_status_and_counts_add_up() -> None:
    ledger = FrameLedger()
    for frame_id in range(10):
        ledger.capture(frame_id, frame_id / 30)
    ledger.decide(0, FrameStatus.RENDERED)
    ledger.decide(1, FrameStatus.LOST)
    ledger.decide(2, FrameStatus.UNDECODABLE)
    ledger.decide(3, FrameStatus.RENDERED)
    counts = ledger.counts()
    assert counts[FrameStatus.RENDERED] == 2
    assert counts[FrameStatus.LOST] == 1
    assert counts[FrameStatus.UNDECODABLE] == 1
    assert counts[FrameStatus.PENDING] == 6
    assert sum(counts.values()) == ledger.captured == 10
    assert list(counts) == [
        "skipped_by_source",
        "dropped_by_encoder",
        "dropped_at_sender",
        "lost",
        "undecodable",
        "dropped_at_receiver",
        "rendered",
        "pending",
    ]


def test_a_frame_is_decided_once() -> None:
    ledger = FrameLedger()
    ledger.capture(5, 0.0)
    assert ledger.decide(5, FrameStatus.LOST) is not None
    assert ledger.decide(5, FrameStatus.RENDERED) is None
    assert ledger.decide(6, FrameStatus.RENDERED) is None
    assert ledger.unknown_count == 2
    assert ledger.counts()[FrameStatus.LOST] == 1
    assert ledger.counts()[FrameStatus.RENDERED] == 0


def test_the_record_carries_the_times_of_its_frame() -> None:
    ledger = FrameLedger()
    ledger.capture(5, 1.0).encode_end = 1.02
    open_record = ledger.get(5)
    assert open_record is not None
    open_record.displayed_at = 1.08
    record = ledger.decide(5, FrameStatus.RENDERED)
    assert record is not None
    assert (record.captured_at, record.encode_end, record.displayed_at) == (1.0, 1.02, 1.08)
    assert ledger.get(5) is None


def test_undecided_frames_are_bounded_and_the_oldest_stays_pending() -> None:
    ledger = FrameLedger(max_open=3)
    for frame_id in range(1000):
        ledger.capture(frame_id, 0.0)
    assert ledger.get(996) is None
    assert ledger.get(997) is not None
    assert ledger.decide(0, FrameStatus.RENDERED) is None
    assert ledger.counts()[FrameStatus.PENDING] == 1000


def test_a_frame_id_cannot_be_captured_twice() -> None:
    ledger = FrameLedger()
    ledger.capture(1, 0.0)
    with pytest.raises(LocalMisuse, match="frame 1"):
        ledger.capture(1, 0.1)
