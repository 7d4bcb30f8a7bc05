"""Drop-tail: limits, order, counters."""

import random

import pytest

from streamd.errors import ConfigError
from streamd.link.droptail import SPEC, DropTailConfig
from streamd.link.queue import SOJOURN_BOUNDS, Packet, QueueDiscipline


def make(config: DropTailConfig) -> QueueDiscipline:
    return SPEC.build(config, rng=random.Random(0), now=0.0)


def fill(queue: QueueDiscipline, sizes: list[int], *, ecn: int = 0, now: float = 0.0) -> None:
    for size in sizes:
        queue.enqueue(Packet(b"", size, ecn), now)


def test_the_packet_limit_drops_the_arrival() -> None:
    queue = make(DropTailConfig(packets=2))
    dropped: list[tuple[int, str, float]] = []
    queue.on_drop = lambda packet, cause, now: dropped.append((packet.size, cause, now))
    fill(queue, [100, 200, 300], ecn=1, now=4.0)
    assert queue.backlog() == (2, 300)
    assert dropped == [(300, "limit_packets", 4.0)]
    assert queue.queues[0].drops == {"limit_packets": [0, 1, 0, 0], "limit_bytes": [0, 0, 0, 0]}


def test_the_byte_limit_may_be_met_exactly() -> None:
    queue = make(DropTailConfig(bytes=300))
    fill(queue, [100, 200, 1])
    assert queue.backlog() == (2, 300)
    assert queue.queues[0].dropped_for("limit_bytes") == 1
    assert queue.queues[0].dropped_bytes == 1


def test_without_a_limit_there_are_a_thousand_packets() -> None:
    queue = make(DropTailConfig())
    fill(queue, [1] * 1001)
    assert queue.backlog() == (1000, 1000)


def test_packets_leave_in_order_and_are_counted_with_their_sojourn() -> None:
    queue = make(DropTailConfig(packets=5))
    fill(queue, [10], ecn=2, now=1.0)
    fill(queue, [20], ecn=3, now=1.5)
    first, second = queue.dequeue(1.5), queue.dequeue(2.5)
    assert first is not None
    assert second is not None
    assert (first.size, first.arrived_at, first.dequeued_at) == (10, 1.0, 1.5)
    assert (second.size, second.ecn) == (20, 3)
    assert queue.dequeue(3.0) is None
    counters = queue.queues[0]
    assert counters.arrived_by_ecn == counters.departed_by_ecn == [0, 0, 1, 1]
    assert (counters.arrived_packets, counters.departed_packets) == (2, 2)
    assert (counters.queued_packets, counters.queued_bytes) == (0, 0)
    assert counters.sojourn.sum == 1.5
    assert counters.sojourn_max == 1.0
    assert counters.marked_packets == 0


def test_it_says_what_it_is_and_how_long_the_head_waits() -> None:
    queue = make(DropTailConfig(packets=5))
    assert queue.describe() == {"discipline": "droptail", "packets": 5, "bytes": None}
    assert queue.gauges(7.0) == {"delay": 0.0}
    fill(queue, [10], now=1.0)
    assert queue.gauges(7.0) == {"delay": 6.0}
    queue.advance(7.0)
    assert queue.next_timeout() is None
    assert queue.backlog() == (1, 10)


@pytest.mark.parametrize("name", ["packets", "bytes"])
def test_a_limit_below_one_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"droptail: {name} must be at least 1, got 0"):
        DropTailConfig(**{name: 0})


def test_delay_buckets_are_dense_and_have_the_round_bounds() -> None:
    assert SOJOURN_BOUNDS[0] == 1e-5
    assert SOJOURN_BOUNDS[-1] == 10.0
    for decade in range(-5, 1):
        low = 10.0**decade
        assert sum(low * 0.999 < bound < low * 9.99 for bound in SOJOURN_BOUNDS) >= 10
    assert list(SOJOURN_BOUNDS) == sorted(set(SOJOURN_BOUNDS))
    scraped = (0.5, 1, 2, 3, 5, 7, 10, 15, 20, 25, 30, 50, 75, 100, 150, 200, 300, 500)
    assert {ms / 1000 for ms in scraped} <= set(SOJOURN_BOUNDS)
    assert 0.0003 in SOJOURN_BOUNDS
