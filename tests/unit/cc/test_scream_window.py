"""The reference window: cuts, growth, bounds, and the cap that lets it run for weeks."""

import pytest
from scream_parts import connection, stream

from streamd.cc.scream.config import ScreamConfig
from streamd.cc.scream.delay import update_averages
from streamd.cc.scream.state import Connection
from streamd.cc.scream.window import update_window

T = 2_000_000


def settled(profile: str = "head", *, l4s: bool = True) -> Connection:
    """A window of 50 packets of 1000 bytes at 50 ms, long after start, nothing in flight."""
    conn = connection(profile, l4s=l4s)
    conn.mss = conn.prev_mss = conn.mss_eff = 1000
    conn.ref_wnd_min = 2424
    conn.ref_wnd = 50_000
    conn.ref_wnd_i = 100_000
    conn.last_congestion = T - 1000
    conn.last_slow = conn.last_rtt_tick = T
    conn.max_bif_prev = 100_000
    return conn


def update(conn: Connection) -> None:
    update_window(conn, [stream()], T)


def test_loss_takes_thirty_percent() -> None:
    conn = settled()
    conn.loss_event = conn.ce_event = True
    update(conn)
    assert conn.ref_wnd == 35_000
    assert conn.ref_wnd_i == 50_000
    assert conn.last_congestion == T
    assert conn.post_scale == 0.0


def test_the_inflection_point_is_held_until_the_window_grows() -> None:
    conn = settled()
    conn.loss_event = True
    update(conn)
    update(conn)
    assert conn.ref_wnd == 24_500
    assert conn.ref_wnd_i == 50_000
    conn.loss_event = False
    conn.bytes_newly_acked = 100_000
    update(conn)
    assert conn.ref_wnd > 24_500
    assert not conn.i_blocked


def test_classic_ce_takes_the_ecn_beta() -> None:
    conn = settled(l4s=False)
    conn.ce_event = True
    update(conn)
    assert conn.ref_wnd == 35_000


def test_l4s_ce_takes_half_of_alpha_over_the_round_trip_factor() -> None:
    conn = settled()
    conn.alpha = 0.4
    conn.ce_event = True
    conn.queue_delay = 0.02  # above a quarter of the target: no gentler cut
    update(conn)
    assert conn.ref_wnd == int(50_000 * (1 - 0.2 / (3277 / 1966)))


def test_l4s_ce_is_gentler_near_the_inflection_point() -> None:
    conn = settled()
    conn.s_rtt = 1000
    conn.alpha = 0.4
    conn.ref_wnd_i = 50_000
    conn.ce_event = True
    update(conn)
    assert conn.ref_wnd == int(50_000 * (1 - 0.2 * 0.25))


def test_l4s_ce_counts_a_quarter_while_the_target_is_far_below_what_arrives() -> None:
    conn = settled()
    conn.s_rtt = 1000
    conn.alpha = 0.4
    conn.queue_delay = 0.02
    conn.total_acked_bps = 1_250_001.0
    conn.ce_event = True
    update(conn)
    assert conn.ref_wnd == int(50_000 * (1 - 0.2 * 0.25))


def test_l4s_ce_after_long_rest_starts_from_what_was_in_flight() -> None:
    conn = settled()
    conn.s_rtt = 1000
    conn.alpha = 0.4
    conn.queue_delay = 0.02
    conn.last_congestion = T - 163_801
    conn.max_bif_prev = 20_000
    conn.ce_event = True
    update(conn)
    assert conn.ref_wnd == 16_000


def test_virtual_ce_takes_half_of_its_alpha() -> None:
    conn = settled()
    conn.s_rtt = 1000
    conn.virtual_alpha = 0.5
    conn.virtual_ce_event = True
    update(conn)
    assert conn.ref_wnd == 37_500


def test_no_cut_goes_below_the_minimum() -> None:
    conn = settled()
    conn.ref_wnd = 3000
    conn.loss_event = True
    update(conn)
    assert conn.ref_wnd == 2424


def test_additive_growth_of_one_packet_per_window() -> None:
    conn = settled()
    conn.last_congestion = T
    conn.bytes_newly_acked = 50_000
    update(conn)
    assert conn.ref_wnd == 51_000


def test_marked_bytes_do_not_grow_the_window() -> None:
    conn = settled()
    conn.last_congestion = T
    conn.bytes_newly_acked = conn.bytes_newly_acked_ce = 50_000
    update(conn)
    assert conn.ref_wnd == 50_000
    assert conn.bytes_newly_acked == conn.bytes_newly_acked_ce == 0


def test_multiplicative_growth_after_a_long_rest() -> None:
    conn = settled()
    conn.last_congestion = 0
    conn.bytes_newly_acked = 50_000
    update(conn)
    assert conn.post_scale == 1.0
    assert conn.ref_wnd == 50_000 + int(1000 * (1 + 0.05 * 50) + 0.5)


def test_no_growth_beyond_twice_the_bytes_in_flight() -> None:
    conn = settled()
    conn.max_bif, conn.max_bif_prev = 20_000, 10_000
    conn.bytes_newly_acked = 50_000
    update(conn)
    assert conn.ref_wnd == 50_000
    assert conn.app_limited


def test_no_growth_at_the_maximum_rate() -> None:
    conn = settled()
    conn.total_max_bps = 1_000_000.0
    conn.bytes_newly_acked = 50_000
    update(conn)
    assert conn.ref_wnd == 50_000


def test_headroom_shrinks_as_the_delay_swings() -> None:
    conn = settled()
    conn.latency_scale = 0.5
    update(conn)
    assert conn.window_headroom == pytest.approx(3.25)


def test_older_profile_takes_the_median_of_three_inflection_points() -> None:
    conn = settled("2026-03-04")
    conn.last_congestion = T - conn.s_rtt
    for window, want in ((50_000, 50_000), (90_000, 50_000), (70_000, 70_000)):
        conn.ref_wnd = window
        conn.last_record = 0
        conn.loss_event = True
        update(conn)
        assert conn.ref_wnd_i == want


def test_older_profile_starts_the_median_anew_on_ce_after_five_round_trips() -> None:
    conn = settled("2026-03-04", l4s=False)
    conn.records = [10_000, 10_000, 10_000]
    conn.last_congestion = T - 5 * conn.s_rtt - 1
    conn.ce_event = True
    update(conn)
    assert conn.ref_wnd_i == 10_000
    assert conn.records == [50_000, 50_000, 50_000]


def test_total_rate_bound() -> None:
    conn = settled()
    conn.config = ScreamConfig(max_total_bps=1_000_000.0)
    update(conn)
    assert conn.ref_wnd == 6250


def test_policer_protection_holds_the_window_and_recovers_slowly() -> None:
    conn = settled()
    conn.max_policed = 40_000.0
    update(conn)
    assert conn.ref_wnd == 40_000
    update_averages(conn, T)
    assert conn.max_policed == pytest.approx(40_040)


def test_a_million_updates_without_congestion_leave_the_window_alone() -> None:
    """The reference's limit grows past 32 bits after 3068 updates and pins the window."""
    conn = settled()
    streams = [stream()]
    t = T
    for update_no in range(1_000_000):
        update_averages(conn, t)
        if update_no % 10_000 == 0:
            update_window(conn, streams, t)
        t += 2000
    update_window(conn, streams, t)
    assert conn.max_policed == 1e8
    assert conn.ref_wnd == 50_000
