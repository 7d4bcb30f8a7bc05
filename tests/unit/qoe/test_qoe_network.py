"""Delay, loss, ECN, jitter and fairness: the worked examples."""

import pytest

from streamd.errors import LocalMisuse
from streamd.qoe.network import (
    EcnCounts,
    InterarrivalJitter,
    LossCount,
    RelativeDelay,
    fairness_over_windows,
    fate_known_until,
    jain_fairness,
    network_loss,
    normalised_throughput,
    relative_delays,
    residual_loss,
    rtt_sample,
)
from streamd.qoe.percentile import percentile


def test_queue_delay_is_relative_to_the_smallest() -> None:
    assert relative_delays([25, 27, 40]) == [0, 2, 15]
    assert relative_delays([]) == []


def test_queue_delay_of_a_long_run() -> None:
    meter = RelativeDelay()
    assert meter.percentile(50) is None
    for delay in (27, 40, 25):
        meter.add(delay)
    assert [meter.percentile(percent) for percent in (0, 50, 100)] == [0, 2, 15]


def test_rtt_is_without_the_holding_time() -> None:
    assert rtt_sample(1.000, 1.060, 0.015) == pytest.approx(0.045, abs=1e-12)
    assert rtt_sample(1.0, 1.5) == 0.5


def test_network_loss_is_not_undone_by_repair() -> None:
    sent = {packet: packet / 100 for packet in range(1000)}
    arrived = {packet: at + 0.02 for packet, at in sent.items() if packet % 100}
    loss = network_loss(sent, arrived, end=20.0)
    assert loss == LossCount(10, 1000)
    assert loss.ratio == 0.010


def test_residual_loss_counts_what_no_copy_brought() -> None:
    captured = {packet: packet / 100 for packet in range(1000)}
    available = {packet: at + 0.2 for packet, at in captured.items() if packet != 500}
    loss = residual_loss(captured, available)
    assert loss == LossCount(1, 1000)
    assert loss.ratio == 0.001


def test_content_after_the_playout_limit_is_missing() -> None:
    captured = {1: 0.0, 2: 0.0, 3: 0.0}
    assert residual_loss(captured, {1: 1.0, 2: 1.001}) == LossCount(2, 3)
    assert residual_loss(captured, {1: 1.0, 2: 1.001}, playout_limit=0.5) == LossCount(3, 3)


def test_packets_of_unknown_fate_are_left_out() -> None:
    sent = {1: 8.0, 2: 8.999, 3: 9.0, 4: 9.9}
    assert network_loss(sent, {}, end=10.0) == LossCount(2, 2)
    assert network_loss(sent, {}, end=10.0, median_rtt=0.4) == LossCount(1, 1)
    assert fate_known_until(10.0, 0.4) == pytest.approx(8.4)
    assert fate_known_until(10.0, 0.1) == 9.0


def test_late_is_received_until_a_second_after_the_end() -> None:
    sent = {1: 5.0, 2: 5.0}
    assert network_loss(sent, {1: 10.999, 2: 11.0}, end=10.0) == LossCount(1, 2)


def test_loss_of_nothing_is_not_available() -> None:
    assert network_loss({}, {}, end=10.0).ratio is None


def test_ce_and_bleaching() -> None:
    counts = EcnCounts()
    counts.add(1, 70)
    counts.add(3, 20)
    counts.add(0, 6)
    counts.add(None, 4)
    assert counts.ce_ratio == 20 / 90
    assert counts.ce_ratio == pytest.approx(0.2222, abs=5e-5)
    assert counts.bleaching_ratio(sent_ecn=1) == 0.0625
    assert counts.bleaching_ratio(sent_ecn=0) is None
    assert counts.unreadable == 4


def test_ecn_of_nothing_is_not_available() -> None:
    counts = EcnCounts()
    counts.add(0)
    assert counts.ce_ratio is None
    assert EcnCounts().bleaching_ratio(sent_ecn=1) is None


def test_interarrival_jitter() -> None:
    jitter = InterarrivalJitter()
    pairs = zip((0, 20, 40, 60), (100, 121, 140, 166), strict=True)
    values = [jitter.add(sent, arrived) for sent, arrived in pairs]
    assert values == pytest.approx([0.0, 0.0625, 0.12109375, 0.488525390625])
    assert jitter.jitter == values[-1]


@pytest.mark.parametrize(
    ("rates", "index"),
    [
        ([10, 10], 1.0),
        ([8, 2], 0.7353),
        ([6, 3, 1], 0.7246),
        ([10, 0], 0.5),
        ([7], 1.0),
        ([0, 0], None),
        ([], None),
    ],
)
def test_jain_fairness(rates: list[float], index: float | None) -> None:
    expected = None if index is None else pytest.approx(index, abs=5e-5)
    assert jain_fairness(rates) == expected


def test_weighted_jain_fairness() -> None:
    assert jain_fairness([8, 2], [4, 1]) == 1.0
    with pytest.raises(LocalMisuse):
        jain_fairness([8, 2], [4])
    with pytest.raises(LocalMisuse):
        jain_fairness([8, 2], [4, 0])


def test_fairness_of_windows_takes_flows_active_all_through() -> None:
    found = fairness_over_windows([[8, 2], [10, 10, None], [None, 7], [0, 0], []])
    assert found == [pytest.approx(0.7353, abs=5e-5), 1.0, 1.0, None, None]
    known = [value for value in found if value is not None]
    # 0.7353, 1, 1: a fifth of the way from the first to the second
    assert percentile(known, 10) == pytest.approx(0.7353 + 0.2 * 0.2647, abs=5e-5)


def test_normalised_throughput() -> None:
    assert normalised_throughput(3e6, 12e6, 2) == 0.5
    assert normalised_throughput(3e6, 0, 2) is None
