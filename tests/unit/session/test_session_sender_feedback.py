"""The sender session under feedback: what is believed, what is repaired, and what silence does."""

import pytest
from session_parts import SSRC, report
from session_sender_rig import RATE, Rig, Scripted

from streamd.session.events import Event, PeerHeard, PeerSilent, RateLimited
from streamd.wire.ccfb import BlockList, CongestionFeedback, encode_ccfb

# --- feedback ----------------------------------------------------------------------------------


def test_feedback_acknowledges_and_samples_the_round_trip_without_the_holding_time() -> None:
    rig = Rig()
    rig.frame(1200)
    rig.until(10.0625)
    # received 16/1024 s before the report
    assert rig.feedback(0, [16]) == [PeerHeard()]
    stats = rig.session.stats
    assert stats.feedback_reports == 1
    assert stats.ecn_acked == [0, 1, 0, 0]
    assert stats.rtt.maximum == 0.046875
    assert stats.last_feedback_at == 10.0625


def test_the_metrics_example_of_the_round_trip() -> None:
    rig = Rig(now=1.0)
    rig.frame(1200)
    rig.until(1.06)
    # sent 1.000, arrived 1.020, reported 1.035, received 1.060
    rig.feedback(0, [int(0.015 * 1024)], at=1.035)
    assert rig.session.stats.rtt.maximum == pytest.approx(0.045, abs=0.001)


def test_the_interval_between_reports_is_observed() -> None:
    rig = Rig()
    rig.frames(3, 0.03125)
    for number in range(3):
        rig.feedback(number, [0])
        rig.until(rig.now + 0.0625)
    histogram = rig.session.stats.feedback_interval_histogram
    assert (histogram.count, histogram.sum) == (2, 0.125)


def test_one_round_trip_sample_per_report_by_the_newest_packet() -> None:
    rig = Rig(rate=100_000_000)
    rig.frames(4, 0.0625)
    rig.until(10.25)
    first, second = report(0, [256, 192], at=10.25), report(2, [128, 64], at=10.25)
    both = CongestionFeedback(1, first.lists + second.lists, first.timestamp)
    rig.give(encode_ccfb(both))
    assert rig.session.stats.rtt.count == 1
    assert rig.session.stats.rtt.maximum == 0.0


def test_no_round_trip_sample_by_a_packet_sent_twice_or_held_for_ever() -> None:
    rig = Rig()
    rig.frames(2, 0.0625)
    rig.until(10.25)
    rig.feedback(1, [0])
    rig.until(10.5)
    assert [seq for _, seq in rig.media] == [0, 1, 0]
    rig.feedback(0, [0])
    assert rig.session.stats.rtt.count == 1
    rig.frame()
    rig.until(10.75)
    rig.feedback(2, [0x1FFE])
    assert rig.session.stats.rtt.count == 1


@pytest.mark.parametrize("first", [0, 65_535, 40_000])
def test_feedback_for_packets_never_sent_reaches_nobody(first: int) -> None:
    controller = Scripted()
    rig = Rig(controller=controller, first_seq=first)
    rig.feedback(first, [0])
    assert rig.ignored == {"never_sent": 1}
    rig.frame()
    rig.feedback(first + 1, [0, 0])
    rig.feedback(first - 5, [0])
    assert rig.ignored == {"never_sent": 3}
    assert controller.reports == []
    rig.feedback(first, [0, 0])
    assert rig.ignored == {"never_sent": 4}
    (only,) = controller.reports
    assert [item.seq for item in only.streams[0].acked] == [first]
    assert only.streams[0].end_seq == first


def test_duplicated_and_reordered_reports_are_ignored() -> None:
    controller = Scripted()
    rig = Rig(controller=controller)
    rig.frames(3, 0.0625)
    old = encode_ccfb(report(0, [0], at=10.1875))
    new = encode_ccfb(report(0, [64, 0], at=10.25))
    rig.until(10.25)
    rig.give(new)
    rig.give(new)
    rig.give(old)
    assert rig.ignored == {"duplicate_or_reordered": 2}
    assert len(controller.reports) == 1
    assert rig.session.stats.feedback_reports == 1


def test_a_report_of_another_time_without_news_is_ignored_and_moves_no_clock() -> None:
    controller = Scripted()
    rig = Rig(controller=controller)
    rig.frames(3, 0.0625)
    rig.until(10.25)
    rig.give(encode_ccfb(report(0, [0], at=10.25)))
    for wrong in (5_000.0, 10.25 + 70.0):
        rig.give(encode_ccfb(report(0, [0], at=wrong)))
    assert rig.ignored == {"wrong_time": 2}
    rig.give(encode_ccfb(report(1, [0], at=10.25 + 1 / 64)))
    assert [item.report_time for item in controller.reports] == [10.25, 10.25 + 1 / 64]


def test_a_reordered_report_with_news_is_used() -> None:
    controller = Scripted()
    rig = Rig(controller=controller)
    rig.frames(3, 0.0625)
    rig.until(10.25)
    rig.give(encode_ccfb(report(1, [0], at=10.25)))
    rig.give(encode_ccfb(report(0, [0], at=10.1875)))
    assert rig.ignored == {}
    assert [item.report_time for item in controller.reports] == [10.25, 10.1875]


def test_reports_about_others_are_ignored() -> None:
    controller = Scripted()
    rig = Rig(controller=controller)
    rig.frame()
    # nor do they count as an answer
    assert rig.give(encode_ccfb(report(0, [0], at=10.0, ssrc=99))) == []
    assert rig.give(encode_ccfb(CongestionFeedback(1, [], 0))) == []
    assert rig.give(encode_ccfb(CongestionFeedback(1, [BlockList(SSRC, 0, [])], 0))) == []
    assert rig.ignored == {"foreign_ssrc": 1, "empty": 2}
    assert controller.reports == []


def test_the_controllers_queue_delay_is_sampled_at_each_report() -> None:
    rig = Rig(controller=Scripted())
    rig.frame()
    rig.feedback(0, [0])
    assert rig.session.stats.queue_delay.maximum == 0.0125
    assert rig.session.stats.queue_delay_histogram.count == 1


def test_a_lost_packet_is_sent_again_from_the_front_with_the_same_number() -> None:
    rig = Rig(first_seq=65_534)
    rig.frames(4, 0.0625)
    rig.until(10.25)
    rig.feedback(65_534, [192, None, 64, 0])
    assert [seq for _, seq in rig.media] == [65_534, 65_535, 0, 1, 65_535]
    stats = rig.session.stats
    assert (stats.retransmitted_packets, stats.retransmitted_bytes) == (1, 1224)
    assert (stats.packets, stats.bytes) == (5, 6120)


def test_a_repair_whose_packet_is_acknowledged_meanwhile_is_not_sent() -> None:
    controller = Scripted()
    rig = Rig(controller=controller)
    rig.frames(3, 0.0625)
    controller.may = None
    rig.until(10.25)
    rig.feedback(0, [128, None, 0])
    rig.feedback(1, [100], at=10.26)
    controller.may = 0.0
    rig.frame()
    assert [seq for _, seq in rig.media] == [0, 1, 2, 3]
    assert rig.session.stats.retransmitted_packets == 0


def test_a_restarted_receivers_clock_gives_no_mad_round_trip() -> None:
    rig = Rig()
    for step in range(40):
        rig.until(10.0 + step / 16)
        rig.frame()
        rig.until(rig.now + 1 / 32)
        rig.feedback(step, [16], at=500.0 + rig.now if step < 20 else rig.now - 10.0)
    rtt = rig.session.stats.rtt
    assert (rtt.minimum, rtt.maximum) == (0.015625, 0.015625)
    assert rtt.count == 40
    assert rig.session.network_loss(now=30.0) == (0, 40)


# --- circuit breaker and silence ---------------------------------------------------------------


def test_the_breaker_halves_the_rate_and_the_first_report_lifts_it() -> None:
    rig = Rig()
    rates = {}
    for step in range(0, 160):
        rig.until(10.0 + step / 32)
        rates[step / 32] = rig.frame(100).target_bps
    assert rates[1.46875] == RATE
    assert rates[1.5625] == RATE / 2
    assert rates[1.96875] == RATE / 2
    assert rates[2.0625] == RATE / 4
    assert rates[2.5625] == 150_000
    assert rates[4.96875] == 150_000
    assert rig.session.limit_bps == 150_000
    assert rig.session.stats.breaker_trips == 1
    events = rig.feedback(150, [0])
    assert events == [PeerHeard(), RateLimited(None)]
    assert rig.frame(100).target_bps == RATE


def test_the_breaker_tells_each_step() -> None:
    rig = Rig()
    rig.frame()
    events = rig.until(13.0)
    assert [event.limit_bps for event in events if isinstance(event, RateLimited)] == [
        600_000,
        300_000,
        150_000,
    ]


def test_reports_that_acknowledge_nothing_do_not_lift_the_limit() -> None:
    rig = Rig()
    rig.frames(3, 0.5)
    rig.feedback(0, [64])
    rig.until(11.5)
    rig.frame()
    rig.until(13.5)
    assert rig.session.limit_bps is not None
    rig.feedback(0, [0])
    assert rig.session.limit_bps is not None
    rig.feedback(0, [0, 0])
    assert rig.session.limit_bps is None


def test_a_fixed_rate_is_exempt() -> None:
    rig = Rig(breaker=False)
    rig.frame()
    rig.until(20.0)
    assert rig.frame().target_bps == RATE


def test_a_slow_source_is_not_a_silent_peer() -> None:
    rig = Rig()
    events: list[Event] = []
    for step in range(4):
        rig.frame()
        events += rig.until(rig.now + 0.25)
        events += rig.feedback(step, [0])
        events += rig.until(rig.now + 8.0)
    assert events == [PeerHeard()]
    assert rig.session.stats.breaker_trips == 0


def test_silence_is_told_once_and_its_end() -> None:
    rig = Rig()
    rig.frame()
    events = rig.until(15.0)
    (silent,) = [event for event in events if isinstance(event, PeerSilent)]
    assert 1.0 < silent.seconds <= 1.06
    assert PeerHeard() in rig.feedback(0, [0])
