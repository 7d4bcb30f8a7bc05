"""Prometheus collectors: they read plain counters when scraped and keep nothing themselves."""

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.core import (
    Metric as Family,
)
from prometheus_client.registry import Collector

from streamd import __version__
from streamd.ecn import NAMES as CODEPOINTS
from streamd.histogram import Histogram
from streamd.observability import names
from streamd.observability.model import PathView, ReceiverView, SenderView, SocketView
from streamd.observability.names import Metric

DELAY_BOUNDS = (
    *(0.0005, 0.001, 0.002, 0.003, 0.005, 0.007, 0.010, 0.015, 0.020),
    *(0.025, 0.030, 0.050, 0.075, 0.100, 0.150, 0.200, 0.300, 0.500),
)
"""Buckets of exported delays (s): 1, 5, 15 and 25 ms are targets people will ask about."""
LAG_BOUNDS = (0.001, 0.002, 0.005, 0.010, 0.020, 0.050, 0.100, 0.200, 0.500, 1.0)

Labels = tuple[str, ...]


def counter(metric: Metric, rows: Iterable[tuple[Labels, float]]) -> CounterMetricFamily:
    """A counter family from label values and totals."""
    family = CounterMetricFamily(metric.name, metric.help, labels=metric.labels)
    for labels, value in rows:
        family.add_metric(labels, value)
    return family


def gauge(metric: Metric, rows: Iterable[tuple[Labels, float]]) -> GaugeMetricFamily:
    """A gauge family from label values and present values."""
    family = GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
    for labels, value in rows:
        family.add_metric(labels, value)
    return family


def histogram(
    metric: Metric,
    rows: Iterable[tuple[Labels, Histogram]],
    bounds: Sequence[float] | None = None,
) -> HistogramMetricFamily:
    """A histogram family; `bounds` exports only those of the histogram's bounds."""
    family = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
    for labels, data in rows:
        family.add_metric(labels, list(_cumulative(data, bounds)), data.sum)
    return family


def info(metric: Metric, values: Mapping[str, str]) -> InfoMetricFamily:
    """An info family with its labels as values."""
    return InfoMetricFamily(metric.name, metric.help, value=dict(values))


def _cumulative(data: Histogram, wanted: Sequence[float] | None) -> Iterator[tuple[str, float]]:
    total = 0
    for bound, count in zip(data.bounds, data.counts, strict=False):
        total += count
        if wanted is None or bound in wanted:
            yield str(bound), total
    yield "+Inf", total + data.counts[-1]


def _one(value: float) -> list[tuple[Labels, float]]:
    return [((), value)]


def _known(value: float | None) -> list[tuple[Labels, float]]:
    """No sample for what is not known, not a false 0."""
    return [] if value is None else _one(value)


def _by_label(counts: Mapping[str, int]) -> list[tuple[Labels, float]]:
    return [((label,), count) for label, count in counts.items()]


def _by_codepoint(counts: Sequence[int]) -> list[tuple[Labels, float]]:
    return [((name,), count) for name, count in zip(CODEPOINTS, counts, strict=True)]


class SenderCollector(Collector):
    """A sending session and its controller."""

    def __init__(self, read: Callable[[], SenderView]) -> None:
        self._read = read

    def collect(self) -> Iterator[Family]:
        view = self._read()
        yield info(
            names.SESSION,
            {"controller": view.controller, "codec": view.codec, "direction": "send"},
        )
        yield from _sender_counts(view)
        yield from _controller(view)
        yield from _feedback(view)
        yield from _controller_extras(view)


def _sender_counts(view: SenderView) -> Iterator[Family]:
    counts = view.counts
    yield counter(names.SENDER_PACKETS, _one(counts.packets))
    yield counter(names.SENDER_BYTES, _one(counts.bytes))
    yield counter(names.SENDER_RETRANSMITTED_PACKETS, _one(counts.retransmitted_packets))
    yield counter(names.SENDER_RETRANSMITTED_BYTES, _one(counts.retransmitted_bytes))
    yield counter(names.SENDER_DISCARDED, _one(counts.discarded_packets))
    kinds = {"key": counts.frames_key, "delta": counts.frames_delta}
    yield counter(names.SENDER_FRAMES, _by_label(kinds))
    yield counter(names.SENDER_FRAMES_SKIPPED, _one(counts.frames_dropped_by_encoder))
    yield counter(names.SENDER_KEYFRAME_REQUESTS, _by_label(counts.keyframe_requests))
    yield counter(names.SENDER_ACKED, _by_codepoint(counts.ecn_acked))
    yield counter(names.SENDER_BREAKER, _one(counts.breaker_trips))
    yield counter(names.INVALID, _by_label(counts.invalid))


def _controller(view: SenderView) -> Iterator[Family]:
    cc = view.cc
    yield gauge(names.CC_TARGET, _one(cc.target_bps / 8))
    yield gauge(names.CC_PACING, _one(cc.pacing_bps / 8))
    # A controller without a window has none to show: no sample, not a false 0.
    yield gauge(names.CC_WINDOW, _known(cc.cwnd_bytes))
    yield gauge(names.CC_IN_FLIGHT, _one(cc.bytes_in_flight))
    yield gauge(names.CC_RTT, _known(cc.srtt))
    states = dict.fromkeys((*view.states, cc.state), 0) | {cc.state: 1}
    yield gauge(names.CC_STATE, _by_label({s: on for s, on in states.items() if s}))
    yield counter(names.CC_LOST, _one(cc.packets_lost))
    yield counter(names.CC_LOST_BYTES, _one(cc.bytes_lost))
    yield counter(names.CC_CE, _one(cc.packets_ce))


def _feedback(view: SenderView) -> Iterator[Family]:
    counts = view.counts
    yield histogram(names.CC_QUEUE_DELAY, [((), counts.queue_delay_histogram)])
    yield counter(names.CC_REPORTS, _one(counts.feedback_reports))
    yield counter(names.CC_FEEDBACK_BYTES, _one(counts.feedback_bytes))
    yield counter(names.CC_FEEDBACK_IGNORED, _by_label(counts.feedback_ignored))
    yield histogram(names.CC_FEEDBACK_INTERVAL, [((), counts.feedback_interval_histogram)])
    yield gauge(names.CC_LAST_FEEDBACK, _one(view.last_feedback_unix or 0.0))


def _controller_extras(view: SenderView) -> Iterator[Family]:
    """What the controller's plug-in declares of its own."""
    for name, text in (view.metrics or {}).items():
        metric = Metric(f"streamd_cc_{name}", "gauge", text, ("controller",))
        value = view.cc.extra.get(name)
        yield gauge(metric, [] if value is None else [((view.controller,), value)])


class ReceiverCollector(Collector):
    """A receiving session."""

    def __init__(self, read: Callable[[], ReceiverView]) -> None:
        self._read = read

    def collect(self) -> Iterator[Family]:
        view = self._read()
        yield info(names.SESSION, {"controller": "", "codec": view.codec, "direction": "receive"})
        yield from _receiver_packets(view)
        yield from _receiver_frames(view)


def _receiver_packets(view: ReceiverView) -> Iterator[Family]:
    counts = view.counts
    yield counter(names.RECEIVER_PACKETS, _one(counts.packets))
    yield counter(names.RECEIVER_BYTES, _one(counts.bytes))
    yield counter(names.RECEIVER_ECN, _by_codepoint(counts.ecn))
    yield counter(names.RECEIVER_ECN_UNKNOWN, _one(counts.ecn_unknown))
    yield counter(names.RECEIVER_DUPLICATES, _one(counts.duplicates))
    yield counter(names.RECEIVER_REORDERED, _one(counts.reordered))
    yield counter(names.RECEIVER_STREAMS, _one(counts.streams))
    yield gauge(names.RECEIVER_JITTER, _one(counts.jitter))
    yield counter(names.RECEIVER_FEEDBACK, _one(counts.feedback_reports))
    yield counter(names.RECEIVER_FEEDBACK_BYTES, _one(counts.feedback_bytes))
    yield counter(names.RECEIVER_KEYFRAME_REQUESTS, _one(counts.keyframe_requests))
    yield gauge(names.RECEIVER_LAST_PACKET, _one(view.last_packet_unix or 0.0))
    yield counter(names.INVALID, _by_label(counts.invalid))


def _receiver_frames(view: ReceiverView) -> Iterator[Family]:
    counts = view.counts
    yield counter(names.RECEIVER_FRAMES, _one(counts.frames_completed))
    yield counter(names.RECEIVER_DECODED, _one(counts.frames_decoded))
    yield counter(names.RECEIVER_FRAMES_LOST, _one(counts.frames_lost))
    yield counter(names.RECEIVER_FRAMES_SKIPPED, _one(counts.frames_skipped))
    yield counter(names.RECEIVER_UNDECODABLE, _one(counts.frames_undecodable))
    yield counter(names.RECEIVER_LATE, _one(counts.late_fragments))
    yield histogram(names.RECEIVER_LATENCY, [((), counts.frame_latency_histogram)])
    yield counter(names.RECEIVER_NEGATIVE, _one(counts.frames_negative_latency))
    yield gauge(names.RECEIVER_CLOCK_OFFSET, _known(counts.clock_offset))
    yield gauge(names.RECEIVER_CLOCK_BOUND, _known(counts.clock_bound))
    yield counter(names.RECEIVER_MENDED, _one(counts.frames_mended))
    yield counter(names.RECEIVER_LATE_FRAMES, _by_label(counts.frames_late))
    yield counter(names.RECEIVER_FREEZES, _by_label(counts.freezes))
    yield counter(names.RECEIVER_FREEZE_SECONDS, _one(view.freeze_seconds))


class LinkCollector(Collector):
    """Both directions of a bottleneck."""

    def __init__(
        self,
        read: Callable[[], Sequence[PathView]],
        invalid: Callable[[], Mapping[str, int]] = dict,
    ) -> None:
        """`invalid`: datagrams that were not relayed, by reason."""
        self._read = read
        self._invalid = invalid

    def collect(self) -> Iterator[Family]:
        paths = self._read()
        queues = [((path.name, queue.name), queue) for path in paths for queue in path.queues]
        yield counter(names.LINK_PACKETS, [(key, q.departed_packets) for key, q in queues])
        yield counter(names.LINK_BYTES, [(key, q.departed_bytes) for key, q in queues])
        yield counter(names.LINK_DROPPED, _drops(paths))
        marks = [((*key, cause), n) for key, q in queues for cause, n in q.marks.items()]
        yield counter(names.LINK_MARKED, marks)
        yield gauge(names.LINK_BACKLOG, [(key, q.queued_bytes) for key, q in queues])
        sojourns = [(key, queue.sojourn) for key, queue in queues]
        yield histogram(names.LINK_SOJOURN, sojourns, DELAY_BOUNDS)
        total = [((path.name,), path.opportunities) for path in paths]
        used = [((path.name,), path.opportunities_used) for path in paths]
        yield counter(names.LINK_OPPORTUNITIES, total)
        yield counter(names.LINK_OPPORTUNITIES_USED, used)
        yield counter(names.INVALID, _by_label(self._invalid()))


def _drops(paths: Sequence[PathView]) -> Iterator[tuple[Labels, float]]:
    """Drops inside the queues, and those of the path around them (queue label empty)."""
    for path in paths:
        for queue in path.queues:
            for reason, by_codepoint in queue.drops.items():
                yield (path.name, queue.name, reason), sum(by_codepoint)
        yield (path.name, "", "loss"), path.losses
        yield (path.name, "", "oversize"), path.oversize


class SocketCollector(Collector):
    """UDP sockets by name."""

    def __init__(self, read: Callable[[], Mapping[str, SocketView]]) -> None:
        """`read` gives the sockets there are now; the names are labels: few and fixed."""
        self._read = read

    def collect(self) -> Iterator[Family]:
        sockets = self._read()
        rows = [((name,), view.counts) for name, view in sockets.items()]
        yield counter(names.SOCKET_SENT, [(key, c.datagrams_sent) for key, c in rows])
        yield counter(names.SOCKET_RECEIVED, [(key, c.datagrams_received) for key, c in rows])
        yield counter(names.SOCKET_KERNEL_DROPS, [(key, c.kernel_drops) for key, c in rows])
        yield counter(names.SOCKET_SEND_DROPS, [(key, c.send_dropped) for key, c in rows])
        yield counter(names.SOCKET_BLOCKED, [(key, c.send_would_block) for key, c in rows])
        truncated = [(key, c.truncated + c.control_truncated) for key, c in rows]
        yield counter(names.SOCKET_TRUNCATED, truncated)
        yield counter(names.SOCKET_REFUSED, [(key, c.icmp_refused) for key, c in rows])
        yield counter(names.SOCKET_NO_ECN, [(key, c.ecn_missing) for key, c in rows])
        buffers = [((name,), view.receive_buffer) for name, view in sockets.items()]
        yield gauge(names.SOCKET_BUFFER, buffers)


class ProgramCollector(Collector):
    """The program itself: its build and how late its event loop runs."""

    def __init__(self, lag: Histogram, revision: str = "") -> None:
        """`revision`: source revision of the build, empty where it is not known."""
        self._lag = lag
        self._revision = revision

    def collect(self) -> Iterator[Family]:
        build = {
            "version": __version__,
            "revision": self._revision,
            "python": platform.python_version(),
        }
        yield info(names.BUILD, build)
        yield histogram(names.LOOP_LAG, [((), self._lag)])


def new_registry(lag: Histogram, revision: str = "") -> CollectorRegistry:
    """A registry of its own with what every daemon exports: program, process, Python, GC."""
    registry = CollectorRegistry()
    registry.register(ProgramCollector(lag, revision))
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry
