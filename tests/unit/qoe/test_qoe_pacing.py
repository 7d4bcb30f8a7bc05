"""Section 4 of the specification of metrics, with its numbers."""

import pytest

from streamd.errors import LocalMisuse
from streamd.qoe.pacing import (
    Sent,
    bitrate_spread,
    real_frame_delay,
    simulated_frame_delay,
    windowed_bitrate,
)

SLOTS = [0, 0, 3000, 0, 0, 3000]
FPS = 1 / 60
PACKETS = [Sent(3 * FPS, 3000, 3 * FPS), Sent(6 * FPS, 3000, 6 * FPS)]
"""One packet per slot, sent at its very end, on a network without delay."""


def in_slots(n: int, packets: list[Sent] | None = None) -> list[float | None]:
    delays = simulated_frame_delay(SLOTS, PACKETS if packets is None else packets, n, FPS)
    return [None if d.delay is None else round(d.delay / FPS, 6) for d in delays]


def test_windowed_bitrate_of_one_two_and_three_slots() -> None:
    def kbps(n: int) -> list[float]:
        return [round(rate / 1000, 6) for rate in windowed_bitrate(SLOTS, n, FPS)]

    assert kbps(1) == [0, 0, 1440, 0, 0, 1440]
    assert kbps(2) == [0, 720, 720, 0, 720]
    assert kbps(3) == [480, 480, 480, 480]
    assert kbps(7) == []


def test_what_is_reported_of_windows() -> None:
    found = bitrate_spread(windowed_bitrate(SLOTS, 1, FPS))
    assert found is not None
    assert found == pytest.approx((480_000, 0, 0, 1_440_000))
    assert found.spread == pytest.approx(1_440_000)
    even = bitrate_spread(windowed_bitrate(SLOTS, 3, FPS))
    assert even is not None
    assert even == pytest.approx((480_000,) * 4)
    assert even.spread == pytest.approx(0, abs=1e-6)
    assert bitrate_spread([]) is None


def test_a_window_needs_a_slot() -> None:
    with pytest.raises(LocalMisuse):
        windowed_bitrate(SLOTS, 0, FPS)


def test_simulated_frames_of_three_slots_wait_three_two_one_three() -> None:
    assert in_slots(3) == [3, 2, 1, 3]


def test_empty_frames_wait_for_the_next_that_is_not() -> None:
    assert in_slots(2) == [1, 2, 1, 1, 2]


def test_an_empty_frame_with_nothing_after_it_is_flagged() -> None:
    delays = simulated_frame_delay([600, 0], [Sent(0.0, 600, 0.01)], 1, 0.1)
    assert delays[0].delay == 0.01
    assert delays[1].delay == pytest.approx(0.1)
    assert delays[1].unfinished


def test_a_lost_packet_is_there_when_the_next_one_is() -> None:
    lost = [PACKETS[0]._replace(arrived_at=None), PACKETS[1]]
    assert in_slots(3, lost) == [6, 5, 4, 3]
    assert in_slots(3, [PACKETS[0], PACKETS[1]._replace(arrived_at=None)])[3] is None


def test_bytes_sent_before_the_slot_do_not_carry_its_frame() -> None:
    early = [Sent(0.0, 1000, 0.0), Sent(0.25, 1000, 0.25)]
    delays = simulated_frame_delay([1000, 0, 0], early, 1, 0.1)
    assert delays[0].delay == 0.0
    late = simulated_frame_delay([0, 1000], early, 1, 0.1)
    assert late[1].delay == pytest.approx(0.15)


def test_the_parts_of_a_real_frame_add_up() -> None:
    parts = real_frame_delay(1.0, 1.25, 2.0)
    assert parts == (0.25, 0.75, 1.0)
