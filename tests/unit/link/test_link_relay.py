"""The relay over virtual time: sides, peers, batches, charges, ECN, record."""

import math

import pytest

from streamd.datagram import Datagram, Transmit
from streamd.link.droptail import SPEC as DROPTAIL
from streamd.link.droptail import DropTailConfig
from streamd.link.dualpi2 import SPEC as DUALPI2
from streamd.link.dualpi2 import DualPi2Config
from streamd.link.path import PathConfig, build_path
from streamd.link.record import PacketRecord
from streamd.link.relay import MAX_SEGMENTS, Relay
from streamd.link.trace import Trace

SENDER = ("192.0.2.1", 1000)
OTHER = ("192.0.2.9", 9999)
RECEIVER = ("192.0.2.2", 2000)
TICK = Trace([1], name="12 Mbps")


def make(
    up: PathConfig | None = None,
    down: PathConfig | None = None,
    *,
    far: tuple[object, ...] | None = RECEIVER,
    record: PacketRecord | None = None,
) -> Relay:
    return Relay(
        build_path(up or PathConfig(), seed="up", now=0.0),
        build_path(down or PathConfig(), seed="down", now=0.0, link_last=True),
        far=far,
        record=record,
    )


def gram(
    data: bytes,
    address: tuple[object, ...] = SENDER,
    *,
    at: float = 0.0,
    ecn: int | None = 1,
    size: int = 0,
    dscp: int = 0,
) -> Datagram:
    return Datagram(data, address, ecn, at, size, dscp)


def poll_all(relay: Relay, now: float) -> list[tuple[str, Transmit]]:
    out: list[tuple[str, Transmit]] = []
    while (item := relay.poll_transmit(now=now)) is not None:
        out.append(item)
    return out


def test_what_enters_near_leaves_far_and_back() -> None:
    relay = make()
    relay.handle_near([gram(b"media", dscp=46)], now=0.0)
    ((side, transmit),) = poll_all(relay, 0.0)
    assert (side, transmit.address) == ("far", RECEIVER)
    assert (transmit.segments, transmit.ecn, transmit.dscp) == ([b"media"], 1, 46)
    relay.handle_far([gram(b"report", RECEIVER, ecn=0)], now=0.1)
    ((side, transmit),) = poll_all(relay, 0.1)
    assert (side, transmit.address) == ("near", SENDER)
    assert (transmit.segments, transmit.ecn) == ([b"report"], 0)
    assert relay.next_timeout() is None
    assert relay.held_packets == 0


def test_delays_are_kept_in_both_directions_and_the_earlier_deadline_wins() -> None:
    relay = make(PathConfig(delay=0.010), PathConfig(delay=0.003))
    relay.handle_near([gram(b"a")], now=0.0)
    assert relay.next_timeout() == 0.010
    relay.handle_far([gram(b"b", RECEIVER, at=0.001)], now=0.001)
    assert relay.next_timeout() == 0.004
    assert poll_all(relay, 0.0039) == []
    assert [side for side, _ in poll_all(relay, 0.004)] == ["near"]
    assert relay.next_timeout() == 0.010
    relay.handle_timeout(now=0.010)
    assert relay.next_timeout() == 0.010
    assert [side for side, _ in poll_all(relay, 0.010)] == ["far"]


def test_a_batch_is_one_transmit_cut_where_size_codepoint_or_dscp_change() -> None:
    relay = make()
    batch = [
        gram(b"aabbcc", size=2),
        gram(b"d"),
        gram(b"ee"),
        gram(b"ff", ecn=0),
        gram(b"gg", ecn=0, dscp=8),
        gram(b"hhh", ecn=0, dscp=8),
    ]
    relay.handle_near(batch, now=0.0)
    runs = [t.segments for _, t in poll_all(relay, 0.0)]
    assert runs == [[b"aa", b"bb", b"cc", b"d"], [b"ee"], [b"ff"], [b"gg"], [b"hhh"]]
    assert relay.uplink_counters.received_packets == 8
    assert relay.uplink_counters.sent_packets == 8
    assert relay.uplink_counters.transmits == 5
    assert relay.uplink_counters.received_bytes == relay.uplink_counters.sent_bytes == 16


def test_a_run_stays_within_segments_and_bytes() -> None:
    relay = make()
    relay.handle_near([gram(bytes(130), size=1), gram(bytes(66_000), size=1100)], now=0.0)
    lengths = [len(t.segments) for _, t in poll_all(relay, 0.0)]
    assert lengths == [MAX_SEGMENTS, MAX_SEGMENTS, 2, 59, 1]


def test_empty_datagrams_go_alone() -> None:
    relay = make()
    relay.handle_near([gram(b"x"), gram(b""), gram(b""), gram(b"y")], now=0.0)
    assert [t.segments for _, t in poll_all(relay, 0.0)] == [[b"x"], [b""], [b""], [b"y"]]
    assert relay.uplink_counters.received_packets == 4


@pytest.mark.parametrize(
    ("address", "charged"),
    [
        (("192.0.2.1", 1), 1232),
        (("::ffff:192.0.2.1", 1, 0, 0), 1232),
        (("2001:db8::1", 1, 0, 0), 1252),
    ],
)
def test_each_segment_is_charged_with_its_headers_and_overhead(
    address: tuple[object, ...], charged: int
) -> None:
    relay = make(PathConfig(TICK, overhead_bytes=4, opportunity_bytes=1504))
    relay.handle_near([gram(bytes(2400), address, size=1200)], now=0.0)
    link = relay.uplink.bottleneck
    assert link is not None
    assert link.queue.backlog() == (2, 2 * charged)


def test_the_charge_follows_a_peer_that_moves() -> None:
    relay = make(PathConfig(TICK))
    relay.handle_near([gram(bytes(100))], now=0.0)
    relay.handle_near([gram(bytes(100), ("2001:db8::1", 1, 0, 0), at=2.0)], now=2.0)
    link = relay.uplink.bottleneck
    assert link is not None
    assert link.queue.queues[0].arrived_bytes == 128 + 148


def test_the_queue_sets_ce_and_splits_the_run() -> None:
    config = DualPi2Config(mode="linux", packets=100)
    relay = make(PathConfig(TICK, queue=DUALPI2, queue_config=config))
    relay.handle_near([gram(bytes(1200 * 3), size=1200)], now=0.0)
    runs = poll_all(relay, 0.010)
    # 1228 bytes in opportunities of 1500: dequeued at 1, 1 and 2 ms; only above 1 ms is marked.
    assert [(len(t.segments), t.ecn) for _, t in runs] == [(2, 1), (1, 3)]


def test_an_unknown_codepoint_counts_and_passes_as_not_ect() -> None:
    relay = make()
    relay.handle_near([gram(b"aabb", ecn=None, size=2)], now=0.0)
    ((_, transmit),) = poll_all(relay, 0.0)
    assert transmit.ecn == 0
    assert relay.uplink_counters.ecn_unknown_packets == 2


def test_strangers_are_counted_and_never_answered() -> None:
    relay = make()
    relay.handle_near([gram(b"hello")], now=0.0)
    relay.handle_near([gram(b"aabbc", OTHER, at=0.5, size=2)], now=0.5)
    relay.handle_far([gram(b"x", OTHER, at=5.0)], now=5.0)
    relay.handle_far([gram(b"", OTHER, at=9.0)], now=9.0)
    assert [t.segments for _, t in poll_all(relay, 9.0)] == [[b"hello"]]
    assert relay.uplink_counters.foreign_packets == 3
    assert relay.downlink_counters.foreign_packets == 2
    assert relay.far.address == RECEIVER


def test_the_sender_may_move_after_a_second_of_silence() -> None:
    relay = make()
    relay.handle_near([gram(b"1")], now=0.0)
    relay.handle_near([gram(b"2", OTHER, at=1.0)], now=1.0)
    relay.handle_far([gram(b"back", RECEIVER, at=1.1)], now=1.1)
    sides = [(side, t.address) for side, t in poll_all(relay, 1.1)]
    assert sides == [("far", RECEIVER), ("near", OTHER)]


def test_what_is_under_way_goes_to_where_the_peer_is_when_it_arrives() -> None:
    relay = make(down=PathConfig(delay=0.1))
    relay.handle_near([gram(b"1")], now=0.0)
    relay.handle_far([gram(b"back", RECEIVER, at=1.0)], now=1.0)
    relay.handle_near([gram(b"2", OTHER, at=1.05)], now=1.05)
    assert ("near", OTHER) in [(side, t.address) for side, t in poll_all(relay, 1.2)]


def test_without_a_known_peer_packets_are_unroutable() -> None:
    relay = make(far=None)
    relay.handle_far([gram(b"xx", RECEIVER)], now=0.0)
    assert relay.downlink_counters.foreign_packets == 1
    relay.handle_near([gram(b"aabb", size=2)], now=0.0)
    assert relay.uplink_counters.unroutable_packets == 2
    assert poll_all(relay, 1.0) == []
    relay.far.set(RECEIVER)
    relay.handle_near([gram(b"cc", at=1.0)], now=1.0)
    assert [t.address for _, t in poll_all(relay, 1.0)] == [RECEIVER]


def test_the_receiver_speaking_first_has_nobody_to_talk_to() -> None:
    relay = make()
    relay.handle_far([gram(b"early", RECEIVER)], now=0.0)
    assert relay.downlink_counters.unroutable_packets == 1
    assert poll_all(relay, 1.0) == []


def test_a_stamp_is_held_between_the_last_one_and_now() -> None:
    relay = make(PathConfig(delay=0.010))
    relay.handle_near([gram(b"1", at=5.0)], now=1.0)
    relay.handle_near([gram(b"2", at=0.5)], now=1.5)
    assert relay.next_timeout() == 1.010
    poll_all(relay, 1.010)
    assert relay.next_timeout() is None


def test_the_kernels_stamp_counts_not_the_time_of_reading() -> None:
    relay = make(PathConfig(TICK, delay=0.005))
    relay.handle_timeout(now=0.0042)
    relay.handle_near([gram(bytes(1472), at=0.0021)], now=0.0042)
    assert relay.next_timeout() == pytest.approx(0.008)


def test_lateness_is_poll_minus_schedule() -> None:
    relay = make(PathConfig(delay=0.010))
    relay.handle_near([gram(b"1"), gram(b"22")], now=0.0)
    poll_all(relay, 0.0102)
    lateness = relay.uplink_counters.lateness
    assert lateness.count == 2
    assert lateness.sum == pytest.approx(0.0004)


def test_the_record_holds_the_uplink_with_marks_and_drops() -> None:
    record = PacketRecord(lambda data: data[:1] == b"m")
    config = PathConfig(TICK, queue=DROPTAIL, queue_config=DropTailConfig(packets=2), delay=0.01)
    relay = make(config, record=record)
    relay.handle_near([gram(b"m" * 1472 * 3, size=1472)], now=0.0)
    relay.handle_near([gram(b"r" * 72, at=0.0015)], now=0.0015)
    poll_all(relay, 1.0)
    relay.handle_far([gram(b"m", RECEIVER, at=1.0)], now=1.0)
    poll_all(relay, 2.0)
    rows = list(record.rows())
    assert [(r.fate, r.size, r.is_media) for r in rows] == [
        ("limit_packets", 1500, True),
        ("delivered", 1500, True),
        ("delivered", 1500, True),
        ("delivered", 100, False),
    ]
    assert record.sojourn_percentiles([0.0, 1.0]) == pytest.approx([0.001, 0.002])


def test_every_packet_is_somewhere() -> None:
    config = PathConfig(
        TICK, queue=DROPTAIL, queue_config=DropTailConfig(packets=20), delay=0.02, loss=0.1
    )
    relay = make(config)
    for n in range(400):
        at = n * 0.0007
        relay.handle_near([gram(bytes(1000), at=at)], now=at)
        poll_all(relay, at)
        counters, path = relay.uplink_counters, relay.uplink
        moved = counters.sent_packets + path.dropped_packets + path.held_packets
        assert moved == counters.received_packets == n + 1
    assert relay.uplink.dropped_packets > 20
    poll_all(relay, math.inf)
    assert relay.held_packets == 0
