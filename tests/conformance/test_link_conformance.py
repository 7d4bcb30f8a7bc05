"""The link against Mahimahi: its traces' statistics, a saturating flow, and a real mm-link's table.

The literal numbers are those of the reference's own descriptions (traces, DualPI2).
"""

import random
from collections import Counter
from statistics import fmean, stdev

import pytest
from dualpi2_vectors import TRACES, load_trace

from streamd.link.bottleneck import TraceLink
from streamd.link.droptail import DropTail, DropTailConfig
from streamd.link.dualpi2 import DualPi2Config, build
from streamd.link.dualpi2_config import WEAK_GAIN
from streamd.link.queue import Packet
from streamd.link.trace import Trace

PAPER_TRACE = "Verizon-LTE-short.up"


def trace_or_skip(name: str) -> Trace:
    trace = load_trace(name)
    if trace is None:
        pytest.skip(f"no {name} in {TRACES} (STREAMD_VECTORS)")
    return trace


@pytest.mark.parametrize(
    ("name", "opportunities", "last_ms", "low", "high", "mean", "sd"),
    [
        ("Verizon-LTE-short.up", 69367, 140000, 0.00, 12.95, 5.946, 3.112),
        ("Verizon-LTE-short.down", 58655, 140000, 0.29, 16.78, 5.027, 3.205),
        ("TMobile-LTE-short.down", 194846, 139986, 1.48, 59.11, 16.653, 9.884),
        ("ATT-LTE-driving.up", 70336, 1012472, 0.00, 1.30, 0.834, 0.406),
        ("Verizon-EVDO-driving.down", 46065, 1062016, 0.00, 3.01, 0.520, 0.465),
    ],
)
def test_conformance_trace_statistics(
    name: str, opportunities: int, last_ms: int, low: float, high: float, mean: float, sd: float
) -> None:
    trace = trace_or_skip(name)
    assert (len(trace), trace.period_ms) == (opportunities, last_ms)
    mbps = [bps / 1e6 for bps in trace.per_second_bps()]
    assert min(mbps) == pytest.approx(low, abs=0.005)
    assert max(mbps) == pytest.approx(high, abs=0.005)
    assert fmean(mbps) == pytest.approx(mean, abs=0.0005)
    assert stdev(mbps) == pytest.approx(sd, abs=0.0005)


def test_conformance_saturating_flow_over_the_papers_trace() -> None:
    """16 Mbps of 1448-byte datagrams, tail drop at 100 packets, TUN accounting: payload per s."""
    queue = DropTail(DropTailConfig(packets=100))
    trace = trace_or_skip(PAPER_TRACE)
    link = TraceLink(queue, trace, base=0.0, opportunity_bytes=1504, repeat=False)
    departed_ms: list[int] = []
    link.sink = lambda packet, at: departed_ms.append(round(at * 1000))
    packets = 0
    while (at := packets * 1448 * 8 / 16e6) < 140:
        link.enqueue(Packet(b"", 1480, 0, at), at)
        packets += 1
    link.advance(140.0)
    stated = {0: (5.832, 3.053), 250: (5.813, 3.014), 500: (5.817, 3.042), 750: (5.821, 3.095)}
    for phase, (mean, sd) in stated.items():
        bins = Counter((ms + phase) // 1000 for ms in departed_ms)
        mbps = [bins[k] * 1448 * 8 / 1e6 for k in range(1 if phase else 0, 140)]
        assert fmean(mbps) == pytest.approx(mean, abs=0.0006)
        assert stdev(mbps) == pytest.approx(sd, abs=0.0006)
    counters = link.counters(140.0)
    assert counters.used_bytes == counters.offered_bytes == 69_367 * 1504


@pytest.mark.parametrize(
    ("ecn", "gain", "delivered", "marked", "p50_ms", "p95_ms"),
    [
        (1, 1.0, 5016, 4999, 29.1, 79.6),
        (2, 1.0, 5016, 680, 29.1, 79.6),
        (0, 1.0, 5018, 0, 28.8, 58.9),
        (1, WEAK_GAIN, 5120, 5103, 109.2, 109.9),
        (0, WEAK_GAIN, 5120, 0, 109.2, 109.9),
    ],
)
def test_conformance_model_of_the_real_mm_link(
    ecn: int, gain: float, delivered: int, marked: int, p50_ms: float, p95_ms: float
) -> None:
    """13 Mbps of 1200-byte packets at 12 Mbps, 10 ms away, 20 seeds, queue drained."""
    runs = [fork_run(ecn, gain, seed) for seed in range(20)]
    assert fmean(run[0] for run in runs) == pytest.approx(delivered, abs=1.5)
    assert fmean(run[1] for run in runs) == pytest.approx(marked, abs=2)
    assert fmean(run[2] for run in runs) == pytest.approx(p50_ms, abs=0.15)
    assert fmean(run[3] for run in runs) == pytest.approx(p95_ms, abs=0.15)


def fork_run(ecn: int, gain: float, seed: int) -> tuple[int, int, float, float]:
    """Delivered, marked, and percentiles of the one-way delay (ms)."""
    config = DualPi2Config(mode="mahimahi", packets=100, mtu=1504, gain=gain, alpha=0.16, beta=3.2)
    queue = build(config, rng=random.Random(seed), now=0.0)
    link = TraceLink(queue, Trace([1], name="12 Mbps"), base=0.0, opportunity_bytes=1504)
    out: list[tuple[float, bool]] = []
    link.sink = lambda packet, at: out.append((at - packet.sent_at, packet.mark is not None))
    for n in range(5417):
        at = n * 1200 * 8 / 13e6
        link.enqueue(Packet(b"", 1204, ecn, at), at)
    link.advance(60.0)
    delays = sorted(1000 * delay + 10 for delay, _ in out)
    marked = sum(mark for _, mark in out)
    return len(out), marked, delays[len(out) // 2], delays[int(0.95 * len(out))]
