"""Result keys of one direction of a link, live or simulated.

Definitions: specification of metrics, sections 1.2 (queue delay), 1.4 (link
loss) and 1.6 (utilisation).
"""

from collections.abc import Iterator
from typing import TypeVar

from streamd.link.path import Path
from streamd.link.queue import QueueCounters
from streamd.link.record import PacketRecord
from streamd.qoe.percentile import ratio
from streamd.results.streams import Summary
from streamd.wire.rtp import is_rtcp

T = TypeVar("T")


def is_media(payload: bytes) -> bool:
    """RTP as against RTCP and keep-alives; the link itself knows no formats."""
    return len(payload) >= 12 and not is_rtcp(payload[1])


def queues_of(path: Path) -> list[QueueCounters]:
    """The counters of the path's bottleneck; none where it has no limit of rate."""
    return [] if path.bottleneck is None else list(path.bottleneck.queue.queues)


def link_summary(path: Path, *, offered: int, now: float) -> Summary:
    """What the link did up to `now` (s) with `offered` packets, all flows."""
    queues = queues_of(path)
    counters = None if path.bottleneck is None else path.bottleneck.counters(now)
    return {
        "link_offered_count": sum(q.arrived_packets for q in queues),
        "link_drops_count": {
            cause: sum(by_ecn) for q in queues for cause, by_ecn in _tagged(q, q.drops)
        },
        "link_marks_count": {cause: n for q in queues for cause, n in _tagged(q, q.marks)},
        "link_loss_ratio": ratio(path.dropped_packets, offered),
        "utilisation_ratio": ratio(counters.used_bytes, counters.offered_bytes)
        if counters
        else None,
        "opportunities_count": counters.opportunities if counters else 0,
    }


def recorded_summary(record: PacketRecord, *, since: float) -> Summary:
    """Percentiles of true sojourn, and the rate, of media that left the link since then (s)."""
    names = ("queue_delay_p50_s", "queue_delay_p95_s", "queue_delay_p99_s")
    values = record.sojourn_percentiles((0.5, 0.95, 0.99), since=since)
    return {
        **dict(zip(names, values, strict=True)),
        "delivered_bps": record.delivered_bps(since=since),
        "recorded_packets_count": len(record),
        "not_recorded_packets_count": record.not_recorded,
    }


def _tagged(queue: QueueCounters, values: dict[str, T]) -> Iterator[tuple[str, T]]:
    return ((f"{queue.name}_{cause}", value) for cause, value in values.items())
