"""Whole streams on a virtual clock, with a fixed rate: repair, outages, restarts, wraps."""

import random

import pytest

from streamd.cc.fixed import FixedConfig, FixedController
from streamd.datagram import Address
from streamd.ecn import ECT1
from streamd.errors import LocalMisuse
from streamd.session.events import (
    PeerChanged,
    PeerClosed,
    PeerHeard,
    PeerSilent,
    RateLimited,
    SessionClosed,
    StreamStarted,
)
from streamd.session.packetize import PAYLOAD_TYPES
from streamd.session.rtx import RtxIdentity
from streamd.session.sender import SenderSession
from streamd.testing.pair import RECEIVER, SENDER, OneWay, Pair, new_receiver, new_sender

RATE = 2_000_000
ELSEWHERE: Address = ("192.0.2.7", 5999)


def controller() -> FixedController:
    return FixedController(FixedConfig(rate_bps=RATE), ecn=ECT1)


def make(
    *,
    sender: SenderSession | None = None,
    uplink: OneWay | None = None,
    downlink: OneWay | None = None,
    now: float = 0.0,
    clock: float = 0.0,
) -> Pair:
    return Pair(
        sender or new_sender(controller(), now=now),
        new_receiver(now=now, clock=clock),
        uplink=uplink or OneWay(delay=0.02),
        downlink=downlink or OneWay(delay=0.02),
        now=now,
        clock=clock,
    )


def shown_between(pair: Pair, start: float, end: float) -> int:
    return sum(start <= at < end for at, _ in pair.shown)


def all_accounted(pair: Pair) -> bool:
    """Every frame sent ended at the receiver in exactly one way."""
    sent = pair.sender.stats.frames_key + pair.sender.stats.frames_delta
    stats = pair.receiver.stats
    ends = (
        stats.frames_decoded + stats.frames_undecodable + stats.frames_lost + stats.frames_skipped
    )
    return ends == stats.frames_seen == sent


def test_a_clean_path_delivers_every_frame() -> None:
    pair = make(clock=1234.5)
    pair.run(10.0)
    pair.finish()
    assert pair.sender.stats.frames_key == 1
    assert pair.sender.stats.frames_delta == 500
    assert pair.receiver.stats.frames_decoded == 501
    assert [number for _, number in pair.shown] == list(range(501))
    assert pair.receiver.stats.duplicates == 0
    assert pair.sender.stats.retransmitted_packets == 0
    assert pair.sender.network_loss(now=20.0)[0] == 0
    assert pair.sender.stats.feedback_ignored == {}
    assert pair.sender.stats.invalid == {}
    assert pair.receiver.stats.invalid == {}
    assert pair.sender.stats.rtt.minimum == pytest.approx(0.04, abs=0.001)
    assert pair.sender.stats.rtt.maximum == pytest.approx(0.04, abs=0.001)
    # capture to decoded: 20 ms of path and two thirds of a frame time of pacing
    assert pair.receiver.stats.frame_latency.percentile(50) == pytest.approx(0.0326, abs=0.002)
    assert pair.receiver.freezes.freeze_count == 0
    assert pair.told(SessionClosed) == [SessionClosed(), SessionClosed()]
    assert pair.told(PeerClosed) == [PeerClosed()]
    assert all_accounted(pair)


def test_the_same_arguments_give_the_same_run() -> None:
    def one() -> tuple[list[tuple[float, int]], int]:
        pair = make(uplink=OneWay(loss=0.05, rng=random.Random(3)))
        pair.run(5.0)
        return list(pair.shown), pair.sender.stats.packets

    assert one() == one()


@pytest.mark.parametrize("seed", range(5))
def test_one_percent_of_loss_is_repaired(seed: int) -> None:
    rng = random.Random(seed)
    pair = make(
        uplink=OneWay(delay=0.01, loss=0.01, rng=rng),
        downlink=OneWay(delay=0.01, loss=0.01, rng=rng),
    )
    pair.run(30.0)
    pair.finish()
    assert pair.receiver.stats.frames_decoded == 1501
    assert pair.sender.stats.frames_key == 1
    lost, sent = pair.sender.network_loss(now=pair.now)
    dropped = pair.uplink.dropped
    assert sent == pair.sender.stats.packets - pair.sender.stats.retransmitted_packets
    # what the path dropped, less the reports and the copies among it
    assert dropped * 0.8 < lost <= dropped
    assert pair.sender.stats.retransmitted_packets >= lost
    assert all_accounted(pair)


@pytest.mark.parametrize("seed", range(3))
def test_copies_in_a_stream_of_their_own_repair_as_well(seed: int) -> None:
    rng = random.Random(seed)
    rtx = RtxIdentity(0x5EEE, PAYLOAD_TYPES["synthetic"] + 10, first_seq=0xFFFA)
    pair = make(
        sender=new_sender(controller(), rtx=rtx),
        uplink=OneWay(delay=0.01, loss=0.01, rng=rng),
        downlink=OneWay(delay=0.01, loss=0.01, rng=rng),
    )
    pair.run(30.0)
    pair.finish()
    stats = pair.receiver.stats
    assert stats.frames_decoded == 1501
    assert pair.sender.stats.frames_key == 1
    assert stats.invalid == pair.sender.stats.invalid == pair.sender.stats.feedback_ignored == {}
    # a copy is only in its own stream, beyond its 16-bit wrap too
    sent = pair.sender.stats.retransmitted_packets
    assert 30 < stats.copies <= sent
    # with numbers of their own it is known which transmission arrived
    lost, _ = pair.sender.network_loss(now=pair.now)
    assert pair.uplink.dropped * 0.8 < lost <= pair.uplink.dropped
    assert all_accounted(pair)


def test_without_repair_losses_end_in_key_frames_and_nothing_broken_is_shown() -> None:
    sender = new_sender(controller(), retransmissions=0)
    pair = make(sender=sender, uplink=OneWay(delay=0.01, loss=0.02, rng=random.Random(9)))
    pair.run(20.0)
    pair.finish()
    stats = pair.receiver.stats
    assert stats.frames_undecodable == 0
    assert stats.frames_lost > 50
    assert stats.frames_decoded > 150
    assert pair.sender.stats.keyframe_requests["receiver"] > 5
    assert all_accounted(pair)


def test_an_outage_of_two_seconds_is_survived() -> None:
    pair = make()
    pair.uplink.cut(5.0, 7.0)
    pair.downlink.cut(5.0, 7.0)
    pair.run(12.0)
    pair.finish()
    assert shown_between(pair, 5.1, 7.0) == 0
    # moving again within a quarter of a second, and at the full frame rate from then on
    assert shown_between(pair, 7.0, 7.25) > 0
    assert shown_between(pair, 7.5, 11.5) == 200
    # and at the latency of before: nothing of the outage is sent again
    latest = pair.receiver.stats.frame_latency.maximum
    assert latest is not None
    assert latest < 0.06
    assert pair.sender.stats.keyframe_requests["unacked"] >= 1
    assert pair.receiver.stats.freezes == {
        "decoder": 0,
        "outage": 1,
        "loss": 0,
        "source": 0,
        "delay": 0,
    }
    silent = pair.told(PeerSilent)
    assert len(silent) == 2
    assert len(pair.told(PeerHeard)) == 4
    assert all_accounted(pair)


def test_feedback_down_halves_the_rate_and_the_first_report_lifts_it() -> None:
    pair = make()
    pair.downlink.cut(5.0, 9.0)
    pair.run(8.9)
    assert pair.sender.limit_bps == 100_000
    limits = [event.limit_bps for event in pair.told(RateLimited) if isinstance(event, RateLimited)]
    assert limits == [1_000_000, 500_000, 250_000, 125_000, 100_000]
    first = next(at for at, _, event in pair.events if isinstance(event, RateLimited))
    assert 6.5 <= first <= 6.6
    # the picture goes on all the time, only poorer
    assert shown_between(pair, 5.495, 8.795) == 165
    pair.run(0.5)
    assert pair.sender.limit_bps is None
    pair.run(1.6)
    pair.finish()
    assert pair.sender.stats.breaker_trips == 1
    # lost reports are not lost packets: hardly anything was sent twice
    assert pair.sender.stats.retransmitted_packets < 10
    assert all_accounted(pair)


@pytest.mark.parametrize("clock", [0.0, 40_000.0])
def test_a_restarted_receiver_decodes_again_within_two_seconds(clock: float) -> None:
    pair = make()
    pair.run(5.0)
    pair.replace_receiver(new_receiver(now=5.0, clock=clock), clock=clock)
    pair.run(3.0)
    again = min(at for at, _ in pair.shown if at >= 5.0)
    assert again < 5.5
    assert pair.receiver.stats.keyframe_requests == 1
    assert pair.sender.stats.frames_key == 2
    assert shown_between(pair, 6.0, 8.0) == 100
    assert pair.sender.stats.rtt.maximum == pytest.approx(0.04, abs=0.001)


def test_a_receiver_restarted_on_another_port_is_found_within_two_seconds() -> None:
    pair = make()
    pair.run(5.0)
    pair.replace_receiver(new_receiver(now=5.0, peer=SENDER), address=ELSEWHERE)
    pair.run(3.0)
    assert pair.sender.peer == ELSEWHERE
    again = min(at for at, _ in pair.shown if at >= 5.1)
    assert again < 7.0
    assert shown_between(pair, 7.0, 8.0) == 50
    assert PeerChanged(ELSEWHERE) in pair.told(PeerChanged)


@pytest.mark.parametrize("address", [SENDER, ELSEWHERE])
def test_a_restarted_sender_is_taken_up_within_two_seconds(address: Address) -> None:
    pair = make()
    pair.run(5.0)
    pair.stop_sender()
    pair.at(
        5.4,
        lambda: pair.replace_sender(
            new_sender(controller(), ssrc=0xBEEF, first_seq=40_000, first_timestamp=7, now=5.4),
            address=address,
        ),
    )
    pair.run(4.0)
    again = min(at for at, _ in pair.shown if at >= 5.4)
    assert again < 7.4
    assert shown_between(pair, 8.0, 9.0) == 50
    assert len(pair.told(StreamStarted)) == 2
    numbers = [number for _, number in pair.shown]
    assert numbers == sorted(set(numbers))


def test_a_sender_whose_address_is_rewritten_anew_goes_on_without_a_new_stream() -> None:
    pair = make(uplink=OneWay(delay=0.02, source=("198.51.100.1", 1111)))
    pair.run(5.0)
    pair.uplink.source = ("198.51.100.1", 2222)
    pair.run(5.0)
    assert len(pair.told(StreamStarted)) == 1
    assert pair.receiver.peer == ("198.51.100.1", 2222)
    assert shown_between(pair, 7.0, 10.0) == 150
    assert pair.receiver.stats.invalid["foreign_source"] > 0


def test_a_receiver_behind_another_address_is_answered_there() -> None:
    pair = make(downlink=OneWay(delay=0.02, source=ELSEWHERE))
    pair.sender.set_peer(ELSEWHERE)
    pair.run(2.0)
    assert shown_between(pair, 1.0, 2.0) == 50
    assert pair.uplink.undeliverable == 0


@pytest.mark.parametrize("clock", [0.0, 65_533.0 - 1_000_000.0])
def test_streams_cross_every_wrap(clock: float) -> None:
    # numbers wrap after 10 packets, media time after 2 s, the report clock after 3 s
    now = 1_000_000.0
    first_timestamp = (-int((now + 2.0) * 90_000)) & 0xFFFFFFFF
    pair = make(
        sender=new_sender(controller(), first_seq=65_526, first_timestamp=first_timestamp, now=now),
        uplink=OneWay(loss=0.01, rng=random.Random(2)),
        now=now,
        clock=clock,
    )
    pair.run(10.0)
    pair.finish()
    assert pair.receiver.stats.frames_decoded == 501
    assert pair.sender.stats.rtt.maximum == pytest.approx(0.03, abs=0.002)
    latency = pair.receiver.stats.frame_latency
    assert latency.minimum is not None
    assert latency.minimum > 0.01
    assert latency.percentile(95) == pytest.approx(0.03, abs=0.03)
    assert pair.sender.stats.invalid == pair.receiver.stats.invalid == {}
    assert pair.sender.stats.feedback_ignored == {}
    assert all_accounted(pair)


def test_a_slow_link_marks_and_queues() -> None:
    pair = make(uplink=OneWay(delay=0.01, rate_bps=2_500_000, mark_above=0.001))
    pair.run(5.0)
    pair.finish()
    assert pair.uplink.marked > 100
    assert pair.receiver.stats.ecn[3] == pair.uplink.marked
    assert pair.sender.stats.ecn_acked[3] > 100
    assert shown_between(pair, 1.0, 5.0) == 200


def test_random_marks_leave_packets_alone_that_are_not_ecn_capable() -> None:
    path = OneWay(mark_ratio=1.0, rng=random.Random(1))
    assert path.carry(1200, 0, 1.0) == (1.01, 0)
    assert path.carry(1200, 1, 1.0) == (1.01, 3)
    assert (path.offered, path.marked) == (2, 1)


def test_a_full_queue_drops() -> None:
    path = OneWay(delay=0.0, rate_bps=8 * 1228, max_queue=1.5)
    assert [path.carry(1200, 0, 0.0) for _ in range(3)] == [(1.0, 0), (2.0, 0), None]
    assert path.dropped == 1


def test_chance_needs_a_generator() -> None:
    with pytest.raises(LocalMisuse):
        OneWay(loss=0.1)


def test_a_peer_that_is_absent_at_the_start_is_found() -> None:
    pair = make()
    pair.uplink.cut(0.0, 20.0)
    pair.run(25.0)
    assert min(at for at, _ in pair.shown) < 21.0
    assert pair.sender.peer == RECEIVER
    assert shown_between(pair, 22.0, 25.0) == 150
