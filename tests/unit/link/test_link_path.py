"""Delay, loss, and paths made of nodes."""

import random

import pytest

from streamd.errors import ConfigError
from streamd.link.bottleneck import ConstantRateLink, TraceLink
from streamd.link.droptail import SPEC as DROPTAIL
from streamd.link.droptail import DropTailConfig
from streamd.link.dualpi2 import SPEC as DUALPI2
from streamd.link.dualpi2 import DualPi2Config
from streamd.link.impair import Delay, Loss
from streamd.link.path import Path, PathConfig, build_path
from streamd.link.queue import Packet
from streamd.link.trace import Trace

TICK = Trace([1], name="12 Mbps")


def packet(number: int = 0, size: int = 1500, ecn: int = 0) -> Packet:
    return Packet(bytes([number]), size, ecn)


def taken(path: Path) -> list[tuple[int, float]]:
    out = [(p.data[0], round(p.due * 1000, 6)) for p in path.out]
    path.out.clear()
    return out


def test_an_empty_path_lets_packets_through_at_once() -> None:
    path = Path([])
    path.send(packet(1), 5.0)
    assert path.next_timeout() == 5.0
    assert path.held_packets == 1
    assert taken(path) == [(1, 5000.0)]
    assert path.next_timeout() is None
    assert path.bottleneck is None
    assert path.dropped_packets == 0


def test_a_delay_is_exact_and_keeps_order() -> None:
    path = Path([Delay(0.010)])
    path.send(packet(1), 1.0)
    path.send(packet(2), 1.0025)
    assert path.next_timeout() == 1.010
    path.advance(1.012)
    assert taken(path) == [(1, 1010.0)]
    assert path.held_packets == 1
    path.advance(2.0)
    assert taken(path) == [(2, 1012.5)]
    assert path.next_timeout() is None


@pytest.mark.parametrize("delay", [-0.001, float("inf"), float("nan")])
def test_an_impossible_delay_is_refused(delay: float) -> None:
    with pytest.raises(ConfigError, match="a delay must be at least 0 s"):
        Delay(delay)


@pytest.mark.parametrize("probability", [-0.1, 1.1, float("nan")])
def test_an_impossible_loss_is_refused(probability: float) -> None:
    with pytest.raises(ConfigError, match="a loss probability lies between 0 and 1"):
        Loss(probability, random.Random(0))


def test_loss_is_random_seeded_and_counted_by_codepoint() -> None:
    def survivors(seed: int) -> tuple[list[int], Loss]:
        loss = Loss(0.25, random.Random(seed))
        path = Path([loss])
        for n in range(200):
            path.send(packet(n, ecn=n % 4), 0.0)
        return [p.data[0] for p in path.out], loss

    kept, loss = survivors(1)
    assert kept == survivors(1)[0]
    assert kept != survivors(2)[0]
    assert 20 < sum(loss.lost) < 80
    assert len(kept) + loss.dropped_packets == 200
    assert loss.lost_bytes == 1500 * loss.dropped_packets
    assert min(loss.lost) > 0
    assert (loss.next_timeout(), loss.held_packets) == (None, 0)


def test_certain_loss_and_no_loss() -> None:
    for probability, kept in ((1.0, 0), (0.0, 100)):
        path = Path([Loss(probability, random.Random(0))])
        for n in range(100):
            path.send(packet(n), 0.0)
        assert len(path.out) == kept


def test_the_order_is_link_loss_delay_and_back_delay_loss_link() -> None:
    config = PathConfig(TICK, delay=0.01, loss=0.5)
    out = build_path(config, seed="s", now=0.0)
    back = build_path(config, seed="s", now=0.0, link_last=True)
    assert [type(n) for n in out.nodes] == [TraceLink, Loss, Delay]
    assert [type(n) for n in back.nodes] == [Delay, Loss, TraceLink]
    assert out.bottleneck is out.nodes[0]


def test_packets_cross_link_and_delay_on_schedule_however_late_the_wake_up() -> None:
    path = build_path(PathConfig(TICK, delay=0.0105), seed="s", now=0.0)
    path.send(packet(1), 0.0001)
    path.send(packet(2), 0.0002)
    path.advance(3.0)
    assert taken(path) == [(1, 11.5), (2, 12.5)]


def test_it_sleeps_through_the_delay_behind_the_link() -> None:
    path = build_path(PathConfig(TICK, delay=0.0105), seed="s", now=0.0)
    path.send(packet(1), 0.0001)
    path.send(packet(2), 0.0002)
    assert path.next_timeout() == pytest.approx(0.0115)
    path.advance(0.0115)
    assert taken(path) == [(1, 11.5)]
    assert path.next_timeout() == pytest.approx(0.0125)


def test_a_delay_in_front_feeds_the_link_at_the_right_times() -> None:
    path = build_path(PathConfig(TICK, delay=0.0105), seed="s", now=0.0, link_last=True)
    path.send(packet(1), 0.0)
    path.send(packet(2), 0.0)
    assert path.next_timeout() == pytest.approx(0.0105)
    path.advance(1.0)
    assert taken(path) == [(1, 11.0), (2, 12.0)]


def test_build_path_passes_everything_on() -> None:
    config = PathConfig(
        TICK,
        queue=DUALPI2,
        queue_config=DualPi2Config(packets=7),
        opportunity_bytes=1504,
        overhead_bytes=4,
        subticks=4,
        repeat=False,
    )
    link = build_path(config, seed="s", now=5.0).bottleneck
    assert isinstance(link, TraceLink)
    assert link.queue.describe()["limit_packets"] == 7
    assert link.describe() == {
        "link": "trace",
        "trace": "12 Mbps",
        "trace_sha256": TICK.sha256,
        "opportunity_bytes": 1504,
        "subticks": 4,
        "repeat": False,
    }
    serial = build_path(PathConfig(3e6, overhead_bytes=4), seed="s", now=5.0)
    assert isinstance(serial.bottleneck, ConstantRateLink)
    assert serial.bottleneck.describe()["mtu"] == 1504
    assert serial.overhead_bytes == 4
    assert build_path(PathConfig(), seed="s", now=0.0).nodes == ()


def test_a_negative_overhead_is_refused() -> None:
    with pytest.raises(ConfigError, match="overhead must be at least 0 bytes, got -1"):
        build_path(PathConfig(overhead_bytes=-1), seed="s", now=0.0)


def test_a_watcher_sees_the_drops_of_every_node() -> None:
    config = PathConfig(
        TICK, queue=DROPTAIL, queue_config=DropTailConfig(packets=1), delay=0.01, loss=1.0
    )
    path = build_path(config, seed="s", now=0.0)
    seen: list[tuple[int, str]] = []
    path.watch_drops(lambda p, cause, now: seen.append((p.data[0], cause)))
    path.send(packet(1, 9000), 0.0)
    path.send(packet(2), 0.0)
    path.send(packet(3), 0.0)
    path.advance(1.0)
    assert seen == [(1, "oversize"), (3, "limit_packets"), (2, "loss")]
    assert path.dropped_packets == 3


def test_a_node_outside_a_path_says_so() -> None:
    delay = Delay(0.0)
    delay.enqueue(packet(), 0.0)
    with pytest.raises(AssertionError, match="before it was put into a path"):
        delay.advance(1.0)
