"""What the collectors export, line by line."""

import re

import pytest
from observability_fakes import FakeQueue, sender_view
from prometheus_client import CollectorRegistry, generate_latest

from streamd.cc.api import ControllerStats
from streamd.histogram import Histogram
from streamd.io.net import EndpointStats
from streamd.observability import names
from streamd.observability.metrics import (
    LAG_BOUNDS,
    LinkCollector,
    ReceiverCollector,
    SenderCollector,
    SocketCollector,
    new_registry,
)
from streamd.observability.model import PathView, ReceiverView, SocketView
from streamd.session.stats import ReceiverStats, SenderStats


def lines(registry: CollectorRegistry) -> list[str]:
    """Samples as they are scraped."""
    text = generate_latest(registry).decode()
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_a_sender_exports_zeros_from_the_start() -> None:
    registry = CollectorRegistry()
    registry.register(SenderCollector(lambda: sender_view(SenderStats(), ControllerStats())))
    exported = lines(registry)
    for line in (
        "streamd_sender_packets_total 0.0",
        'streamd_sender_frames_total{kind="key"} 0.0',
        'streamd_sender_frames_total{kind="delta"} 0.0',
        'streamd_sender_acknowledged_packets_total{codepoint="ce"} 0.0',
        'streamd_cc_state{state="increase"} 0.0',
        'streamd_cc_state{state="reduce"} 0.0',
        "streamd_cc_last_feedback_timestamp_seconds 0.0",
        'streamd_cc_queue_delay_seconds_bucket{le="0.001"} 0.0',
        'streamd_cc_queue_delay_seconds_bucket{le="+Inf"} 0.0',
        'streamd_session_info{codec="vp9",controller="scream",direction="send"} 1.0',
    ):
        assert line in exported


def test_a_sender_exports_its_counters_in_base_units() -> None:
    stats = SenderStats(packets=7, bytes=8400, frames_key=1, frames_delta=2)
    stats.invalid["not_rtcp"] = 3
    stats.queue_delay_histogram.observe(0.015)
    stats.queue_delay_histogram.observe(0.016)
    cc = ControllerStats(
        target_bps=8e6,
        pacing_bps=12e6,
        cwnd_bytes=25000.0,
        bytes_in_flight=1200,
        srtt=0.025,
        packets_lost=4,
        state="reduce",
        extra={"alpha_ratio": 0.25},
    )
    registry = CollectorRegistry()
    registry.register(SenderCollector(lambda: sender_view(stats, cc)))
    exported = lines(registry)
    for line in (
        "streamd_sender_packets_total 7.0",
        "streamd_sender_bytes_total 8400.0",
        'streamd_sender_frames_total{kind="delta"} 2.0',
        "streamd_cc_target_bytes_per_second 1e+06",
        "streamd_cc_pacing_bytes_per_second 1.5e+06",
        "streamd_cc_congestion_window_bytes 25000.0",
        "streamd_cc_rtt_seconds 0.025",
        "streamd_cc_packets_lost_total 4.0",
        'streamd_cc_state{state="reduce"} 1.0',
        'streamd_cc_state{state="increase"} 0.0',
        'streamd_cc_alpha_ratio{controller="scream"} 0.25',
        'streamd_invalid_packets_total{reason="not_rtcp"} 3.0',
        'streamd_cc_queue_delay_seconds_bucket{le="0.01"} 0.0',
        'streamd_cc_queue_delay_seconds_bucket{le="0.015"} 1.0',
        'streamd_cc_queue_delay_seconds_bucket{le="0.02"} 2.0',
        "streamd_cc_queue_delay_seconds_count 2.0",
        "streamd_cc_queue_delay_seconds_sum 0.031",
    ):
        assert line in exported


def test_what_a_controller_does_not_have_has_no_sample() -> None:
    cc = ControllerStats(cwnd_bytes=None, srtt=None)
    registry = CollectorRegistry()
    registry.register(SenderCollector(lambda: sender_view(SenderStats(), cc)))
    samples = {re.split(r"[ {]", line)[0] for line in lines(registry)}
    assert "streamd_cc_target_bytes_per_second" in samples
    assert not samples & {
        "streamd_cc_congestion_window_bytes",
        "streamd_cc_rtt_seconds",
        "streamd_cc_alpha_ratio",
    }


def test_a_receiver_exports_codepoints_and_freezes() -> None:
    stats = ReceiverStats(packets=10, ecn=[1, 2, 3, 4], ecn_unknown=5, jitter=0.002)
    stats.freezes["outage"] = 2
    view = ReceiverView(stats, "vp9", freeze_seconds=0.75, last_packet_unix=1.5e9)
    registry = CollectorRegistry()
    registry.register(ReceiverCollector(lambda: view))
    exported = lines(registry)
    for line in (
        'streamd_receiver_ecn_packets_total{codepoint="not_ect"} 1.0',
        'streamd_receiver_ecn_packets_total{codepoint="ect1"} 2.0',
        'streamd_receiver_ecn_packets_total{codepoint="ect0"} 3.0',
        'streamd_receiver_ecn_packets_total{codepoint="ce"} 4.0',
        "streamd_receiver_ecn_unknown_packets_total 5.0",
        "streamd_receiver_interarrival_jitter_seconds 0.002",
        'streamd_receiver_freezes_total{cause="outage"} 2.0',
        'streamd_receiver_freezes_total{cause="loss"} 0.0',
        "streamd_receiver_freeze_seconds_total 0.75",
        "streamd_receiver_last_packet_timestamp_seconds 1.5e+09",
    ):
        assert line in exported


def test_what_the_clocks_are_apart_is_exported_once_it_is_known() -> None:
    stats = ReceiverStats()
    registry = CollectorRegistry()
    registry.register(ReceiverCollector(lambda: ReceiverView(stats, "vp9", 0.0, None)))
    assert not [line for line in lines(registry) if "_clock_" in line]
    stats.clock_offset, stats.clock_bound, stats.frames_negative_latency = -1.5, 0.0025, 3
    exported = lines(registry)
    assert "streamd_receiver_clock_offset_seconds -1.5" in exported
    assert "streamd_receiver_clock_error_bound_seconds 0.0025" in exported
    assert "streamd_receiver_frames_negative_latency_total 3.0" in exported


def test_a_link_exports_each_queue_of_each_path() -> None:
    queue = FakeQueue(
        departed_packets=5,
        departed_bytes=6000,
        queued_bytes=1200,
        drops={"limit": [1, 2, 0, 0], "aqm": [0, 0, 0, 0]},
        marks={"step": 3},
    )
    queue.sojourn.observe(0.001)
    queue.sojourn.observe(0.0011)
    path = PathView("uplink", [queue], losses=6, oversize=7, opportunities=9, opportunities_used=8)
    registry = CollectorRegistry()
    registry.register(LinkCollector(lambda: [path], lambda: {"foreign_source": 2}))
    exported = lines(registry)
    key = 'path="uplink",queue="l4s"'
    for line in (
        f"streamd_link_packets_total{{{key}}} 5.0",
        f"streamd_link_bytes_total{{{key}}} 6000.0",
        f"streamd_link_backlog_bytes{{{key}}} 1200.0",
        f'streamd_link_packets_dropped_total{{{key},reason="limit"}} 3.0',
        f'streamd_link_packets_dropped_total{{{key},reason="aqm"}} 0.0',
        'streamd_link_packets_dropped_total{path="uplink",queue="",reason="loss"} 6.0',
        'streamd_link_packets_dropped_total{path="uplink",queue="",reason="oversize"} 7.0',
        'streamd_link_packets_marked_total{cause="step",path="uplink",queue="l4s"} 3.0',
        f'streamd_link_sojourn_seconds_bucket{{le="0.001",{key}}} 1.0',
        f'streamd_link_sojourn_seconds_bucket{{le="0.005",{key}}} 2.0',
        'streamd_link_delivery_opportunities_used_total{path="uplink"} 8.0',
        'streamd_invalid_packets_total{reason="foreign_source"} 2.0',
    ):
        assert line in exported
    # Buckets finer than what is exported are folded into the next one.
    assert not [line for line in exported if 'le="0.0012"' in line]


def test_sockets_export_what_the_system_did_to_them() -> None:
    stats = EndpointStats()
    stats.kernel_drops, stats.truncated, stats.control_truncated = 3, 1, 1
    registry = CollectorRegistry()
    registry.register(SocketCollector(lambda: {"near": SocketView(stats, 425984)}))
    exported = lines(registry)
    assert 'streamd_socket_kernel_drops_total{socket="near"} 3.0' in exported
    assert 'streamd_socket_truncated_reads_total{socket="near"} 2.0' in exported
    assert 'streamd_socket_receive_buffer_bytes{socket="near"} 425984.0' in exported


def test_the_program_exports_its_build_its_process_and_its_lag() -> None:
    lag = Histogram(LAG_BOUNDS)
    lag.observe(0.003)
    exported = lines(new_registry(lag, "abc123"))
    build = next(line for line in exported if line.startswith("streamd_build_info"))
    assert 'revision="abc123"' in build
    assert 'streamd_event_loop_lag_seconds_bucket{le="0.005"} 1.0' in exported
    assert any(line.startswith("process_cpu_seconds_total") for line in exported)
    assert any(line.startswith("python_gc_collections_total") for line in exported)


def test_two_registries_do_not_meet() -> None:
    assert lines(new_registry(Histogram(LAG_BOUNDS)))
    assert lines(new_registry(Histogram(LAG_BOUNDS)))


def test_everything_exported_is_documented() -> None:
    sender, receiver = CollectorRegistry(), CollectorRegistry()
    sender.register(SenderCollector(lambda: sender_view(SenderStats(), ControllerStats())))
    view = ReceiverView(ReceiverStats(), "vp9", 0.0, None)
    receiver.register(ReceiverCollector(lambda: view))
    link = CollectorRegistry()
    link.register(LinkCollector(list))
    link.register(SocketCollector(dict))
    program = new_registry(Histogram(LAG_BOUNDS))
    exported = {
        family.name: family.type
        for registry in (sender, receiver, link, program)
        for family in registry.collect()
        if family.name.startswith("streamd_")
    }
    exported.pop("streamd_cc_alpha_ratio")
    assert exported == {metric.name: metric.kind for metric in names.ALL}


@pytest.mark.parametrize("metric", names.ALL, ids=lambda metric: metric.exposed)
def test_names_follow_the_rules(metric: names.Metric) -> None:
    assert re.fullmatch(r"streamd_[a-z0-9_]+", metric.exposed)
    assert not re.search(r"_(bits|percent|ms|milliseconds|kbps)\b", metric.exposed)
    assert not set(metric.labels) & {"instance", "job", "type", "env", "service", "direction"} or (
        metric is names.SESSION
    )
    assert metric.help.endswith(".")
    if metric.kind == "histogram":
        assert metric.name.endswith("_seconds")
