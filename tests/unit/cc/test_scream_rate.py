"""From window to target rate: sharing, discards, the one-shot -1, the drain."""

import pytest
from scream_parts import ListQueue, connection, stream

from streamd.cc.api import Limits
from streamd.cc.scream import frames, pacing, rate
from streamd.cc.scream.config import ScreamConfig
from streamd.cc.scream.state import Stream
from streamd.cc.scream.streams import choose_stream, share_credit


def fill(st: Stream, *items: tuple[int, float]) -> ListQueue:
    queue = st.queue
    assert isinstance(queue, ListQueue)
    queue.items.extend(items)
    return queue


def test_window_over_round_trip_less_margins() -> None:
    conn, st = connection(), stream()
    conn.ref_wnd, conn.mss_eff, conn.rtt_s = 50_000, 1180, 0.039
    rate.allocate(conn, [st], 1180 / 50_000)
    assert st.rate_share == pytest.approx(8 * 50_000 / 0.04 / 1.1 * 1180 / 1200)


def test_small_windows_give_less() -> None:
    conn, st = connection(), stream()
    conn.ref_wnd, conn.mss_eff, conn.rtt_s = 5000, 1180, 0.039
    rate.allocate(conn, [st], 0.236)
    assert st.rate_share == pytest.approx(8 * 5000 / 0.04 * 0.864 / 1.1 * 1180 / 1200)


def test_priority_shares_and_what_one_cannot_use_goes_to_the_others() -> None:
    conn = connection()
    conn.ref_wnd, conn.mss_eff, conn.rtt_s = 55_000, 1180, 0.039
    whole = 8 * 55_000 / 0.04 / 1.1 * 1180 / 1200
    high, low = stream(1.0), stream(0.5)
    rate.allocate(conn, [high, low], 0.01)
    assert high.rate_share == pytest.approx(whole * 2 / 3)
    assert low.rate_share == pytest.approx(whole / 3)
    small = stream(1.0, Limits(1e6, 1e6, 2e6))
    rate.allocate(conn, [small, low], 0.01)
    assert small.rate_share == 2e6
    assert low.rate_share == pytest.approx(whole - 2e6)


def test_target_follows_share_less_queue_adjustment() -> None:
    conn, st = connection(), stream()
    st.rate_share, st.rate_adjust = 6_000_000.0, 0.5
    rate.update_target(conn, st, 100)
    assert st.target_bps == 4_000_000
    assert st.target_h == 4_000_000
    st.rate_share = 1.0
    rate.update_target(conn, st, 100)
    assert st.target_bps == 1_000_000


def test_hysteresis_holds_small_changes() -> None:
    conn, st = connection(), stream()
    conn.config = ScreamConfig(rate_hysteresis=0.2)
    st.target_h = 4_000_000.0
    for share, told in ((4_700_000, 4_000_000), (3_810_000, 4_000_000), (3_790_000, 3_790_000)):
        st.rate_share = float(share)
        rate.update_target(conn, st, 100)
        assert st.target_bps == share
        assert st.target_h == told


def test_an_old_queue_is_thrown_away_at_most_every_quarter_second() -> None:
    conn, st = connection(), stream()
    queue = fill(st, (1000, 0.0), (1000, 0.0))
    rate.check_queue(conn, st, 13107)  # 0.2 s: at the limit
    assert len(queue) == 2
    rate.check_queue(conn, st, 13108 + 16384)
    assert len(queue) == 0
    assert (st.discarded, st.loss_epoch) == (True, True)
    fill(st, (1000, 0.0))
    rate.check_queue(conn, st, 13108 + 2 * 16384)
    assert len(queue) == 1
    rate.check_queue(conn, st, 13109 + 2 * 16384)
    assert len(queue) == 0


def test_minus_one_never_comes_twice_in_a_row() -> None:
    conn, st = connection(), stream()
    st.repair = True
    assert rate.target_bitrate(conn, st, 100) == -1
    st.repair = True
    assert rate.target_bitrate(conn, st, 200) == 1_000_000
    assert rate.target_bitrate(conn, st, 300) == 1_000_000
    st.discarded = True
    assert rate.target_bitrate(conn, st, 400) == -1


def test_drain_halves_the_rate_once_a_minute_and_measures_anew() -> None:
    conn, st = connection(), stream()
    conn.qd_min_slow = 0.008
    minute = 60 * 65536
    assert rate.target_bitrate(conn, st, minute) == 1_000_000
    start = minute + 66
    assert rate.target_bitrate(conn, st, start) == 500_000
    assert rate.target_bitrate(conn, st, start + 16384) == 500_000
    conn.queue_delay = 0.05
    assert rate.target_bitrate(conn, st, start + 16385) == 1_000_000
    assert (conn.qd_min_slow, conn.queue_delay) == (0.0, 0.0)


def test_drained_minus_one_stays_negative() -> None:
    conn, st = connection(), stream()
    conn.qd_min_slow = 0.008
    st.repair = True
    assert rate.target_bitrate(conn, st, 60 * 65536 + 66) == -0.5


def test_rate_tick() -> None:
    conn, st = connection(), stream()
    st.acked_bytes = 999_999
    rate.tick_rates(conn, [st], 1000)
    assert (st.acked_bps, st.acked_bytes) == (0.0, 0)
    st.acked_bytes, st.rtp_bytes, st.tx_bytes = 10_000, 20_000, 30_000
    rate.tick_rates(conn, [st], 1000 + 6554)
    assert conn.total_acked_bps == pytest.approx(80_000 * 65536 / 6554)
    assert conn.total_rtp_bps == pytest.approx(160_000 * 65536 / 6554 / 4)
    assert st.tx_avg_bps == pytest.approx(240_000 * 65536 / 6554 / 2)
    assert not st.loss_epoch
    st.lost_bytes = 1
    rate.tick_rates(conn, [st], 1000 + 2 * 6554)
    assert st.loss_epoch


def test_adaptive_scale_follows_an_encoder_that_overshoots() -> None:
    conn, st = connection(), stream()
    conn.config = ScreamConfig(adaptive_target_scale=True)
    for tick in range(200):
        st.rtp_bytes = 25_000
        rate.tick_rates(conn, [st], 6554 * (tick + 1))
    assert st.target_scale == 0.8


def test_frame_statistics() -> None:
    conn, st = connection(), stream()
    st.frame_bytes = 2500
    frames.end_of_frame(conn, st, 1000)
    assert st.frame_period == 0.02
    assert conn.new_frame
    fill(st, (5000, 1000 / 65536))
    st.frame_bytes = 5000
    frames.end_of_frame(conn, st, 1000 + 1311)
    assert st.frame_period == pytest.approx(0.9 * 1311 / 65536 + 0.1 * 0.02)
    # the queue is one interval old, half an interval too old
    want = 0.2 * (1311 / 65536 - st.frame_period / 2) / st.frame_period / 8
    assert st.rate_adjust == pytest.approx(want)
    assert st.adaptive_pace == 1.5
    assert st.frame_bytes == 0


def test_large_frames_are_remembered_by_their_80th_percentile() -> None:
    conn, st = connection(), stream()
    for frame in range(60):
        st.frame_bytes = 2500 if frame % 2 else 5000  # nominal, and twice that
        frames.end_of_frame(conn, st, 1000 + frame * 1311)
        st.large_frame = 0
    assert st.rel_frame_high == pytest.approx(1 + 24 * 0.04, abs=0.05)


def test_pacing_interval_and_its_extremes() -> None:
    conn, st = connection(), stream()
    conn.mss_eff = 1200
    pacing.update_pacing(conn, [st], 2_000_000)
    assert conn.pace_interval == pytest.approx(9600 / 3e6)
    assert conn.pace_ticks == int(9600 / 3e6 * 65536)
    st.adaptive_pace = 1.5
    pacing.update_pacing(conn, [st], 2_000_000)
    assert conn.pace_interval == pytest.approx(9600 / 4.5e6)
    pacing.update_pacing(conn, [st], 1.0)
    assert conn.pace_interval == pytest.approx(9600 / 50_000)
    pacing.update_pacing(conn, [st], 1e12)
    assert conn.pace_interval == 10e-6


def test_relaxed_pacing_near_the_maximum() -> None:
    conn, st = connection(), stream()
    conn.config = ScreamConfig(relaxed_pacing=True)
    conn.mss_eff = 1200
    pacing.update_pacing(conn, [st], 18_000_000)
    assert conn.pace_interval == pytest.approx(9600 / (27e6 / 0.5))


def test_packet_sizes_of_the_last_two_seconds() -> None:
    conn = connection()
    pacing.note_size(conn, 1212)
    assert (conn.mss, conn.mss_eff, conn.ref_wnd_min) == (1212, 1212, 2424)
    pacing.tick_mss(conn, 65536)
    assert (conn.mss, conn.mss_eff, conn.ref_wnd_min) == (100, 1212, 3636)
    assert conn.ref_wnd == 3636
    pacing.note_size(conn, 500)
    assert (conn.mss, conn.mss_eff, conn.ref_wnd_min) == (500, 1212, 2424)
    pacing.tick_mss(conn, 2 * 65536)
    assert conn.mss_eff == 500


def test_smaller_packets_keep_their_number_up() -> None:
    conn = connection()
    conn.config = ScreamConfig(mss_sizes=(400, 800, 1200), min_packets_in_flight=10)
    conn.mss_choice = 2
    conn.rtt_s = 0.025
    conn.ref_wnd = 7999
    assert pacing.choose_mss(conn, 100) == 800
    assert conn.ref_wnd_min_low == 1624
    conn.ref_wnd = 3999
    assert pacing.choose_mss(conn, 200) == 400
    conn.ref_wnd = 8001
    assert pacing.choose_mss(conn, 200 + 655360) == 400
    assert pacing.choose_mss(conn, 201 + 655360) == 800


def test_streams_take_turns_by_credit() -> None:
    conn = connection()
    first, second = stream(1.0), stream(0.5)
    fill(first, (1000, 0.0))
    assert choose_stream([second, first], 100) is first
    fill(second, (1000, 0.0))
    assert choose_stream([first, second], 100) is first
    first.last_tx = 100
    share_credit(conn, [first, second], first, 1000)
    assert second.credit == 500
    assert choose_stream([first, second], 110) is second
    second.last_tx = 110
    share_credit(conn, [first, second], second, 1000)
    assert (first.credit, second.credit) == (2000, 0)
    assert choose_stream([first, second], 120) is first


def test_an_idle_stream_gathers_credit_for_ten_packets_only() -> None:
    conn = connection()
    conn.mss_eff = 1200
    first, idle = stream(1.0), stream(1.0)
    for _ in range(100):
        share_credit(conn, [first, idle], first, 1000)
    assert idle.credit == 12_000
    assert choose_stream([first, idle], 100) is None
