"""Base delay, queue-delay averages, latency difference and jitter."""

import pytest
from scream_parts import connection

from streamd.cc.scream import delay
from streamd.cc.scream.state import INFINITE

SLOT = 655360


def test_average_rises_by_a_quarter_and_falls_at_once() -> None:
    conn = connection()
    conn.queue_delay = 0.040
    delay.update_averages(conn, 2100)
    assert conn.queue_delay_avg == pytest.approx(0.010)
    delay.update_averages(conn, 4200)
    assert conn.queue_delay_avg == pytest.approx(0.0175)
    conn.queue_delay = 0.001
    delay.update_averages(conn, 6300)
    assert conn.queue_delay_avg == pytest.approx(0.001)


def test_slow_minimum_is_taken_off_and_may_make_it_negative() -> None:
    conn = connection()
    conn.qd_min = 0.016
    conn.queue_delay = 0.001
    delay.update_averages(conn, 65 + 100 * conn.s_rtt + 1)
    assert conn.qd_min_slow == pytest.approx(0.002)
    assert conn.qd_min == 1000.0
    assert conn.queue_delay_avg == pytest.approx(-0.001)


def test_slow_minimum_falls_at_once() -> None:
    conn = connection()
    conn.qd_min_slow, conn.qd_min = 0.02, 0.003
    delay.update_averages(conn, 65 + 100 * conn.s_rtt + 1)
    assert conn.qd_min_slow == 0.003


def test_latency_scale_reaches_zero_at_ten_milliseconds_of_swing() -> None:
    conn = connection()
    for step in range(400):
        delay.track_extremes(conn, 0.0, 0.05)
        delay.update_averages(conn, 65 + 2000 * step)
    assert conn.latency_scale == 0.0
    for step in range(400):
        delay.track_extremes(conn, 0.001, 0.001)
        delay.update_averages(conn, 900_000 + 2000 * step)
    assert conn.latency_scale > 0.99


def test_jitter_scale_of_the_older_profile() -> None:
    conn = connection("2026-03-04")
    assert delay.jitter_scale(conn, 0.02) == pytest.approx((0.08 - 0.05) / 0.08)
    assert delay.jitter_scale(conn, 0.1) == pytest.approx(0.0)
    conn.queue_delay = 0.03
    delay.update_averages(conn, 2100)
    assert conn.jitter == pytest.approx((63 * 0.05 + 2) / 64)
    conn.queue_delay = 10.0
    for step in range(50):
        delay.update_averages(conn, 4200 + 2100 * step)
    assert conn.jitter == 0.2


def test_base_delay_comes_back_after_five_hundred_seconds() -> None:
    conn = connection()
    conn.current_min_owd = conn.base_owd = 100
    delay.close_base_slot(conn, SLOT)
    for slot in range(2, 51):
        conn.current_min_owd = 400
        delay.close_base_slot(conn, slot * SLOT)
        assert conn.base_owd == 100
    conn.current_min_owd = 400
    delay.close_base_slot(conn, 51 * SLOT)
    assert conn.base_owd == 400
    assert len(conn.base_slots) == 50


def test_refresh_is_due_after_490_seconds_without_a_low_delay() -> None:
    conn = connection()
    conn.last_refresh = 1000
    conn.current_min_owd = 5
    delay.close_base_slot(conn, 1000 + 490 * 65536)
    assert conn.last_refresh == 1000
    conn.current_min_owd = 5
    delay.close_base_slot(conn, 1001 + 490 * 65536)
    assert conn.last_refresh == 1001 + 490 * 65536


def test_reset_forgets_everything_measured() -> None:
    conn = connection()
    conn.base_owd = conn.current_min_owd = 7
    conn.base_slots.append(7)
    conn.qd_min_slow = 0.1
    delay.reset_base(conn)
    assert conn.base_owd == conn.current_min_owd == INFINITE
    assert conn.base_slots == []
    assert conn.qd_min_slow == 0.0
