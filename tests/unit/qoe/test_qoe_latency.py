"""A shown frame's latency is the sum of its parts."""

import pytest

from streamd.errors import LocalMisuse
from streamd.qoe.frames import FrameRecord
from streamd.qoe.latency import latency_parts


def shown() -> FrameRecord:
    return FrameRecord(
        7,
        10.000,
        encode_start=10.001,
        encode_end=10.006,
        first_sent=10.008,
        last_sent=10.020,
        first_arrived=10.028,
        completed_at=10.041,
        decode_start=10.042,
        decoded_at=10.045,
        displayed_at=10.060,
    )


def test_the_parts_follow_each_other_and_sum_to_the_whole() -> None:
    parts = latency_parts(shown())
    assert parts is not None
    expected = (0.001, 0.005, 0.002, 0.012, 0.021, 0.001, 0.003, 0.015)
    assert parts == pytest.approx(expected, abs=1e-9)
    # captured at 10.000, shown at 10.060
    assert parts.total == pytest.approx(0.060, abs=1e-9)


def test_a_frame_never_shown_has_no_latency() -> None:
    record = shown()
    record.displayed_at = None
    assert latency_parts(record) is None


def test_a_negative_part_is_a_fault_and_no_delay() -> None:
    record = shown()
    record.completed_at = 10.019
    with pytest.raises(LocalMisuse, match=r"frame 7: network took -0\.001000 s"):
        latency_parts(record)
