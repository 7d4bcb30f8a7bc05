"""L4S alpha: gains, interval, and what it counts."""

import pytest
from scream_parts import connection

from streamd.cc.scream.alpha import update_alpha


def test_rises_with_an_eighth() -> None:
    conn = connection()
    conn.delivered, conn.marked = 10, 10
    update_alpha(conn, 65 + 656)
    assert conn.alpha == pytest.approx(1 / 8 + 7 / 8 * 0.1)
    assert conn.fraction_marked == 1.0
    assert (conn.delivered, conn.marked) == (0, 0)


def test_decays_with_a_128th_whatever_the_fraction() -> None:
    conn = connection()
    conn.delivered, conn.marked = 100, 1
    update_alpha(conn, 65 + 656)
    assert conn.alpha == pytest.approx(0.1 * 127 / 128)


def test_waits_for_ten_milliseconds() -> None:
    conn = connection()
    conn.delivered = conn.marked = 4
    update_alpha(conn, 65 + 655)
    assert conn.alpha == 0.1
    assert conn.delivered == 4


def test_a_short_round_trip_shortens_the_wait() -> None:
    conn = connection()
    conn.s_rtt = 100
    conn.delivered = conn.marked = 4
    update_alpha(conn, 65 + 101)
    assert conn.alpha == pytest.approx(0.2125)


def test_is_zero_without_l4s() -> None:
    conn = connection(l4s=False)
    conn.delivered = conn.marked = 4
    update_alpha(conn, 65 + 656)
    assert conn.alpha == 0.0
