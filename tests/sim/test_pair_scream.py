"""Whole streams on a virtual clock under SCReAM: rates, repair, outages, restarts."""

import random

import pytest

from streamd.cc.api import Controller, Limits
from streamd.cc.scream import SPEC
from streamd.datagram import Address
from streamd.ecn import ECT1, NOT_ECT, Ecn
from streamd.session.events import PeerChanged, StreamStarted
from streamd.session.sender import SenderSession
from streamd.testing.pair import SENDER, OneWay, Pair, new_receiver, new_sender

LIMITS = Limits(150_000, 1_000_000, 20_000_000)
ELSEWHERE: Address = ("192.0.2.7", 5999)


def controller(*, ecn: int = ECT1, now: float = 0.0) -> Controller:
    return SPEC.build(SPEC.config_type(), ecn=Ecn(ecn), rng=random.Random(1), now=now)


def sender(*, ecn: int = ECT1, now: float = 0.0, ssrc: int = 1) -> SenderSession:
    return new_sender(controller(ecn=ecn, now=now), ssrc=ssrc, limits=LIMITS, now=now)


def link(*, loss: float = 0.0, seed: int = 1, mark_above: float | None = 0.001) -> OneWay:
    """12 Mbit/s, 10 ms, 100 ms of queue, a step marker at 1 ms."""
    return OneWay(
        rate_bps=12_000_000,
        max_queue=0.1,
        mark_above=mark_above,
        loss=loss,
        rng=random.Random(seed),
    )


def make(*, uplink: OneWay | None = None, ecn: int = ECT1) -> Pair:
    return Pair(sender(ecn=ecn), new_receiver(), uplink=uplink or link(), downlink=OneWay())


def shown_between(pair: Pair, start: float, end: float) -> int:
    return sum(start <= at < end for at, _ in pair.shown)


def acked_bps(pair: Pair, seconds: float) -> float:
    """Media rate received while time passes."""
    before = pair.receiver.stats.bytes
    pair.run(seconds)
    return (pair.receiver.stats.bytes - before) * 8 / seconds


def test_l4s_fills_the_link_with_a_short_queue_and_loses_nothing() -> None:
    pair = make()
    pair.run(5.0)
    assert acked_bps(pair, 10.0) > 7_500_000
    assert pair.uplink.dropped == 0
    queue_delay = pair.sender.stats.queue_delay.percentile(95)
    assert queue_delay is not None
    assert queue_delay < 0.005
    pair.finish()
    assert pair.receiver.stats.frames_decoded == 751
    assert pair.sender.stats.frames_key == 1
    assert pair.sender.stats.ecn_acked[3] > 500


def test_classic_fills_the_link() -> None:
    pair = make(uplink=link(mark_above=None), ecn=NOT_ECT)
    pair.run(5.0)
    assert acked_bps(pair, 10.0) > 10_000_000
    pair.finish()
    assert pair.receiver.stats.frames_decoded == 751


@pytest.mark.parametrize("seed", range(3))
def test_one_percent_of_loss_is_repaired_and_does_not_spoil_the_delay(seed: int) -> None:
    pair = make(uplink=link(loss=0.01, seed=seed))
    pair.run(5.0)
    # one copy sent for nothing must not look like a shorter path: the rate stays up
    assert acked_bps(pair, 20.0) > 5_000_000
    assert pair.sender.controller_stats().queue_delay == pytest.approx(0.0, abs=0.01)
    pair.finish()
    assert pair.receiver.stats.frames_decoded == 1251
    stats = pair.sender.stats
    assert stats.retransmitted_packets < 1.1 * pair.uplink.dropped
    lost, sent = pair.sender.network_loss(now=pair.now)
    assert lost / sent == pytest.approx(0.01, abs=0.004)


def test_an_outage_of_two_seconds_is_survived() -> None:
    pair = make()
    pair.uplink.cut(5.0, 7.0)
    pair.downlink.cut(5.0, 7.0)
    pair.run(12.0)
    assert shown_between(pair, 7.0, 7.32) > 0
    assert shown_between(pair, 8.0, 12.0) >= 198
    pair.finish()
    stats = pair.receiver.stats
    assert stats.frames_undecodable == 0
    assert stats.frames_decoded + stats.frames_lost + stats.frames_skipped == stats.frames_seen
    assert pair.sender.controller_stats().bytes_in_flight == 0


def test_without_feedback_the_rate_falls_to_the_minimum_and_comes_back() -> None:
    pair = make()
    pair.downlink.cut(5.0, 10.0)
    pair.run(9.9)
    assert pair.sender.limit_bps == 150_000
    pair.run(0.2)
    assert pair.sender.limit_bps is None
    pair.run(4.9)
    assert shown_between(pair, 11.0, 15.0) >= 198


def test_a_restarted_receiver_decodes_again_within_two_seconds() -> None:
    pair = make()
    pair.run(5.0)
    pair.replace_receiver(new_receiver(now=5.0, clock=777.0), clock=777.0)
    pair.run(4.0)
    assert min(at for at, _ in pair.shown if at >= 5.0) < 5.5
    assert shown_between(pair, 7.0, 9.0) >= 99
    # the base delay is not spoiled by the new clock
    assert pair.sender.controller_stats().queue_delay == pytest.approx(0.0, abs=0.01)


def test_a_receiver_restarted_on_another_port_is_found_within_two_seconds() -> None:
    pair = make()
    pair.run(5.0)
    pair.replace_receiver(new_receiver(now=5.0, peer=SENDER), address=ELSEWHERE)
    pair.run(4.0)
    assert PeerChanged(ELSEWHERE) in pair.told(PeerChanged)
    assert min(at for at, _ in pair.shown if at >= 5.1) < 7.0
    assert shown_between(pair, 8.0, 9.0) >= 49


@pytest.mark.parametrize("address", [SENDER, ELSEWHERE])
def test_a_restarted_sender_is_taken_up_within_two_seconds(address: Address) -> None:
    pair = make()
    pair.run(5.0)
    pair.stop_sender()
    pair.run(0.4)
    pair.replace_sender(sender(now=5.4, ssrc=2), address=address)
    pair.run(3.6)
    assert min(at for at, _ in pair.shown if at >= 5.4) < 7.4
    assert shown_between(pair, 8.0, 9.0) == 50
    assert len(pair.told(StreamStarted)) == 2


@pytest.mark.parametrize("seed", range(3))
def test_reordering_costs_copies_but_no_frames_and_no_delay(seed: int) -> None:
    rng = random.Random(seed)
    pair = Pair(
        sender(),
        new_receiver(),
        uplink=OneWay(rate_bps=12_000_000, jitter=0.005, rng=rng),
        downlink=OneWay(jitter=0.005, rng=rng),
    )
    pair.run(5.0)
    assert acked_bps(pair, 10.0) > 5_000_000
    pair.finish()
    assert pair.receiver.stats.frames_decoded == 751
    assert pair.sender.stats.frames_key == 1
    assert pair.receiver.stats.reordered > 1000
    lost, sent = pair.sender.network_loss(now=pair.now)
    assert lost < sent * 0.01
    latency = pair.receiver.stats.frame_latency.percentile(95)
    assert latency is not None
    assert latency < 0.1
