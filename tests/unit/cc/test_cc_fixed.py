"""The fixed controller: one rate whatever happens, and honest counts of what is in flight."""

import math
import random

import pytest

from streamd.cc.api import FeedbackReport, Limits, SentPacket, StreamReport
from streamd.cc.fixed import MAX_TRACKED, SPEC, FixedConfig, FixedController
from streamd.ecn import CE, ECT1
from streamd.session.queue import MediaPacket, PacketQueue

LIMITS = Limits(100_000, 1_000_000, 5_000_000)


def controller() -> tuple[FixedController, PacketQueue]:
    made = FixedController(FixedConfig(rate_bps=1_200_000), ecn=ECT1)
    queue = PacketQueue()
    made.add_stream(7, queue=queue, limits=LIMITS, now=0.0)
    return made, queue


def sent(seq: int, at: float, *, size: int = 1000) -> SentPacket:
    return SentPacket(7, seq, size, 0, False, at)


def feedback(
    *, acked: tuple[SentPacket, ...] = (), lost: tuple[SentPacket, ...] = ()
) -> FeedbackReport:
    report = FeedbackReport(0.0, 0.0)
    stream = StreamReport(7, 0, True)
    stream.acked.extend(acked)
    stream.lost.extend(lost)
    report.streams.append(stream)
    return report


def test_the_decision_is_the_configured_rate_with_pacing_headroom() -> None:
    made, _ = controller()
    decision = made.decision(7, now=5.0)
    assert decision.target_bps == 1_200_000
    assert decision.pacing_bps == 1_800_000
    assert decision.cwnd_bytes == math.inf
    assert (decision.mss_bytes, decision.ecn) == (1200, ECT1)
    assert not decision.keyframe_wanted
    assert not decision.loss_epoch


def test_packets_are_paced_at_one_and_a_half_times_the_rate() -> None:
    made, _ = controller()
    assert made.on_packet_sent(sent(0, 0.0, size=1125), now=0.0) == 0.005


def test_it_serves_its_streams_in_order_and_is_never_blocked() -> None:
    made, queue = controller()
    other = PacketQueue()
    made.add_stream(8, queue=other, limits=LIMITS, now=0.0)
    assert made.select(now=0.0) is None
    other.push(MediaPacket(8, 0, 0, False, b"x", 0.0))
    assert made.select(now=0.0) == 8
    queue.push(MediaPacket(7, 0, 0, False, b"x", 0.0))
    assert made.select(now=0.0) == 7
    assert made.may_send(7, 10**9, now=3.0) == 3.0


def test_in_flight_falls_with_every_acknowledgement_and_loss() -> None:
    made, _ = controller()
    packets = [sent(seq, 0.0) for seq in range(3)]
    for packet in packets:
        made.on_packet_sent(packet, now=0.0)
    assert made.stats(7).bytes_in_flight == 3000
    made.on_feedback(feedback(acked=(packets[0],), lost=(packets[1],)), now=0.25)
    stats = made.stats(7)
    assert stats.bytes_in_flight == 1000
    assert (stats.bytes_lost, stats.packets_lost) == (1000, 1)
    assert stats.srtt == 0.25


def test_a_late_acknowledgement_of_a_lost_packet_counts_once() -> None:
    made, _ = controller()
    packet = sent(0, 0.0)
    made.on_packet_sent(packet, now=0.0)
    made.on_feedback(feedback(lost=(packet,)), now=1.0)
    made.on_feedback(feedback(acked=(packet,)), now=2.0)
    assert made.stats(7).bytes_in_flight == 0


def test_a_spurious_retransmission_is_in_flight_once() -> None:
    made, _ = controller()
    packet = sent(0, 0.0)
    made.on_packet_sent(packet, now=0.0)
    packet.transmissions = 2
    made.on_packet_sent(packet, now=1.0)
    assert made.stats(7).bytes_in_flight == 1000
    made.on_feedback(feedback(acked=(packet,)), now=2.0)
    stats = made.stats(7)
    assert stats.bytes_in_flight == 0
    # which of the two was acknowledged is not known: no round-trip sample
    assert stats.srtt is None


def test_packets_nobody_speaks_of_again_do_not_pile_up() -> None:
    made, _ = controller()
    for seq in range(MAX_TRACKED + 5):
        made.on_packet_sent(sent(seq, 0.0, size=1), now=0.0)
    assert made.stats(7).bytes_in_flight == 16_384
    made.forget_unacked(7, now=1.0)
    assert made.stats(7).bytes_in_flight == 0


def test_marks_are_counted_and_answered_with_nothing() -> None:
    made, _ = controller()
    packet = sent(0, 0.0)
    packet.ecn = CE
    made.on_packet_sent(packet, now=0.0)
    made.on_feedback(feedback(acked=(packet,)), now=0.1)
    assert made.stats(7).packets_ce == 1
    assert made.decision(7, now=1.0).target_bps == 1_200_000


@pytest.mark.parametrize("rtts", [(0.5,), (0.5, 0.25)])
def test_the_smoothed_round_trip(rtts: tuple[float, ...]) -> None:
    made, _ = controller()
    for seq, rtt in enumerate(rtts):
        packet = sent(seq, 0.0)
        made.on_packet_sent(packet, now=0.0)
        made.on_feedback(feedback(acked=(packet,)), now=rtt)
    assert made.stats(7).srtt == {1: 0.5, 2: 0.46875}[len(rtts)]


def test_its_entry_builds_it() -> None:
    built = SPEC.build(SPEC.config_type(), ecn=ECT1, rng=random.Random(1), now=0.0)
    built.add_stream(7, queue=PacketQueue(), limits=LIMITS, now=0.0)
    assert built.decision(7, now=0.0).target_bps == 1_000_000
    assert built.next_timeout() is None
