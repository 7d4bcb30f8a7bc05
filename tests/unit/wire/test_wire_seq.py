"""Serial arithmetic and unwrapping across every wrap the wire has."""

import pytest

from streamd.wire.seq import (
    SeqUnwrapper,
    TimestampUnwrapper,
    Unwrapper,
    nearest,
    seq_diff,
    seq_newer,
    serial_diff,
)


@pytest.mark.parametrize(
    ("a", "b", "difference"),
    [
        (1, 0, 1),
        (0, 65535, 1),
        (65535, 0, -1),
        (32767, 0, 32767),
        (32768, 0, -32768),
        (0, 32768, -32768),
        (5, 5, 0),
    ],
)
def test_sequence_difference_is_the_short_way_round(a: int, b: int, difference: int) -> None:
    assert seq_diff(a, b) == difference
    assert serial_diff(a, b) == difference
    assert seq_newer(a, b) == (difference > 0)


def test_serial_difference_of_other_widths() -> None:
    assert serial_diff(2, 0xFFFFFFFF, 32) == 3
    assert serial_diff(0, 0x800000, 24) == -0x800000


def test_unwrapping_follows_the_previous_value_as_received() -> None:
    unwrapper = SeqUnwrapper()
    received = [65534, 65535, 0, 1, 65535]
    assert [unwrapper.unwrap(seq) for seq in received] == [65534, 65535, 65536, 65537, 65535]


def test_a_late_packet_after_the_first_gives_a_negative_number() -> None:
    unwrapper = SeqUnwrapper()
    assert [unwrapper.unwrap(seq) for seq in (0, 65535, 1)] == [0, -1, 1]


def test_a_step_of_exactly_half_the_range_goes_back() -> None:
    unwrapper = SeqUnwrapper()
    assert [unwrapper.unwrap(seq) for seq in (0, 32768, 65535)] == [0, -32768, -1]


def test_ten_wraps_of_sequence_numbers() -> None:
    unwrapper = SeqUnwrapper()
    start = 54321
    values = [unwrapper.unwrap(number & 0xFFFF) for number in range(start, start + 655360, 1000)]
    assert values == list(range(start, start + 655360, 1000))


def test_rtp_time_wraps_after_13_hours() -> None:
    unwrapper = TimestampUnwrapper()
    assert unwrapper.unwrap(0xFFFFFF00) == 0xFFFFFF00
    assert unwrapper.unwrap(0xB6) == 0x1000000B6


def test_any_width() -> None:
    unwrapper = Unwrapper(24)
    assert [unwrapper.unwrap(value) for value in (0xFFFFFF, 0, 0xFFFFFE)] == [
        0xFFFFFF,
        0x1000000,
        0xFFFFFE,
    ]


def test_reset_takes_the_next_value_as_it_is() -> None:
    unwrapper = SeqUnwrapper()
    unwrapper.unwrap(65535)
    assert unwrapper.unwrap(7) == 65543
    unwrapper.reset()
    assert unwrapper.last is None
    assert unwrapper.unwrap(9) == 9


@pytest.mark.parametrize(
    ("value", "reference", "unwrapped"),
    [
        (0xFFC3, 2, -61),
        (0xFFC3, 65538, 65475),
        (3, 131071, 131075),
        (3, 131075, 131075),
        (32771, 131075, 98307),
    ],
)
def test_nearest_to_a_known_number(value: int, reference: int, unwrapped: int) -> None:
    assert nearest(value, reference) == unwrapped


def test_nearest_of_32_bits() -> None:
    assert nearest(5, 0xFFFFFFFE, 32) == 0x100000005
