"""The event log as tables for analysis: frames with their fate, marks, drops, and a time series."""

import math
from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import inf, isfinite, nan
from typing import TYPE_CHECKING, Any, TypeAlias

from streamd.sim.events import EventLog
from streamd.sim.model import Scenario
from streamd.sim.nodes import PathNode

if TYPE_CHECKING:
    from streamd.media.quality import Quality

Columns: TypeAlias = dict[str, "array[Any] | list[Any]"]
Tables = dict[str, Columns]

BIN = 0.1
"""Length of a bin of the series (s)."""


Qualities = Sequence["Mapping[int, Quality] | None"]
"""Of each flow by frame number; None where nothing was compared."""


def tables(
    log: EventLog,
    scenario: Scenario,
    paths: Mapping[str, PathNode],
    quality: Qualities = (),
) -> Tables:
    """Columns by table. Times are the run's clock (s), which begins at the scenario's `clock`.

    Flows and paths are named by their number in the scenario. `frames`: `decoded_at` is
    NaN for one never shown. `series`: a row per bin and flow, `time_s` from the start,
    NaN where nothing was measured.
    """
    packets: Columns = dict(log.packets.columns())
    packets["fate"] = _texts(log.fates.texts(), packets["fate"])
    packets["mark"] = _texts(log.marks.texts(), packets["mark"])
    return {
        "frames": _frames(log, [list(paths).index(flow.up) for flow in scenario.flows], quality),
        "packets": packets,
        "marks": _chosen(packets, "mark", "", at="dequeued_at"),
        "drops": _chosen(packets, "fate", "delivered", at="ended_at"),
        "decisions": dict(log.decisions.columns()),
        "feedback": dict(log.feedback.columns()),
        "series": _series(log, scenario, paths),
    }


def _texts(texts: Sequence[str], numbers: Sequence[Any]) -> list[str]:
    return [texts[number] for number in numbers]


def _frames(log: EventLog, ups: Sequence[int], quality: Qualities) -> Columns:
    """Sent frames: the way of their packets, completion and decoding where they came to that.

    `ups` is the path of each flow's media.
    """
    frames: Columns = {**log.frames.columns(), **_journeys(log, ups)}
    shown = log.shown.columns()
    seen = {
        (flow, frame): (completed, decoded if pictures else nan)
        for flow, frame, completed, decoded, pictures in zip(*shown.values(), strict=True)
    }
    nothing = (nan, nan)
    pairs = [seen.get(key, nothing) for key in zip(frames["flow"], frames["frame"], strict=True)]
    frames["completed_at"] = array("d", [pair[0] for pair in pairs])
    frames["decoded_at"] = array("d", [pair[1] for pair in pairs])
    waits = zip(frames["decoded_at"], frames["captured_at"], strict=True)
    frames["latency_s"] = array("d", [decoded - captured for decoded, captured in waits])
    found = [
        (quality[flow] or {}).get(frame) if flow < len(quality) else None
        for flow, frame in zip(frames["flow"], frames["frame"], strict=True)
    ]
    frames["psnr_db"] = array("d", [nan if one is None else one.psnr for one in found])
    frames["ssim"] = array("d", [nan if one is None else one.ssim for one in found])
    return frames


def _journeys(log: EventLog, ups: Sequence[int]) -> Columns:
    """By frame: first and last transmission, arrival of the last part, packets sent again."""
    rows = log.frames.columns()
    places = _places(rows)
    size = len(rows["flow"])
    sent, last, arrived = [inf] * size, [-inf] * size, [-inf] * size
    copies = [0] * size
    known: set[tuple[int, int]] = set()
    newest = {int(flow): int(first) for flow, first in _firsts(rows)}
    columns = log.packets.columns()
    wanted = ("flow", "path", "media", "seq", "sent_at", "ended_at", "fate")
    packets = zip(*(columns[key] for key in wanted), strict=True)
    for flow, path, media, number, at, ended, fate in packets:
        if not media or path != ups[flow] or flow not in newest:
            continue
        seq = newest[flow] + ((number - newest[flow] + 0x8000) & 0xFFFF) - 0x8000
        newest[flow] = max(newest[flow], seq)
        place = places.get((flow, seq))
        if place is None:
            continue
        copies[place] += (flow, seq) in known
        known.add((flow, seq))
        sent[place] = min(sent[place], at)
        last[place] = max(last[place], at)
        if not fate:
            arrived[place] = max(arrived[place], ended)
    times = {"sent_at": sent, "last_sent_at": last, "received_at": arrived}
    return {
        **{name: array("d", [x if isfinite(x) else nan for x in v]) for name, v in times.items()},
        "copies": array("I", copies),
    }


def _places(rows: Mapping[str, Any]) -> dict[tuple[int, int], int]:
    """The row of the frame each packet is of, by flow and number."""
    columns = zip(rows["flow"], rows["first_seq"], rows["packets"], strict=True)
    return {
        (flow, seq): place
        for place, (flow, first, count) in enumerate(columns)
        for seq in range(first, first + count)
    }


def _firsts(rows: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Each flow with the number of its first packet."""
    found: dict[int, int] = {}
    for flow, first in zip(rows["flow"], rows["first_seq"], strict=True):
        found.setdefault(int(flow), int(first))
    return list(found.items())


def _chosen(packets: Columns, key: str, unless: str, *, at: str) -> Columns:
    """Time, flow, path and cause of the packets whose `key` is not `unless`."""
    rows = [n for n, value in enumerate(packets[key]) if value != unless]
    return {
        "time_s": array("d", [packets[at][n] for n in rows]),
        "flow": array("H", [packets["flow"][n] for n in rows]),
        "path": array("B", [packets["path"][n] for n in rows]),
        "seq": array("H", [packets["seq"][n] for n in rows]),
        "cause": [packets[key][n] for n in rows],
    }


class _FlowSeries:
    """The bins of one flow."""

    def __init__(self, bins: int) -> None:
        self.sent = [0] * bins
        self.received = [0] * bins
        self.delay_sum = [0.0] * bins
        self.delays = [0] * bins
        self.rtt = [nan] * bins
        self.target = [nan] * bins


def _series(log: EventLog, scenario: Scenario, paths: Mapping[str, PathNode]) -> Columns:
    begin = scenario.clock
    bins = math.ceil(scenario.duration / BIN - 1e-9)
    flows = [_FlowSeries(bins) for _ in scenario.flows]
    edges = [begin + number * BIN for number in range(bins + 1)]
    numbers = {name: number for number, name in enumerate(scenario.paths)}
    _fill_packets(log, flows, [numbers[flow.up] for flow in scenario.flows], edges)
    for name, values in (("decisions", "target"), ("feedback", "rtt")):
        columns = log.decisions.columns() if name == "decisions" else log.feedback.columns()
        value = columns["target_bps" if name == "decisions" else "rtt_s"]
        for number, at, each in zip(columns["flow"], columns["time_s"], value, strict=True):
            index = bisect_right(edges, at) - 1
            if 0 <= index < bins:
                getattr(flows[int(number)], values)[index] = each
    return _joined(flows, edges, [_capacity(paths[flow.up], edges) for flow in scenario.flows])


def _fill_packets(
    log: EventLog, flows: Sequence[_FlowSeries], ups: Sequence[int], edges: Sequence[float]
) -> None:
    """Bytes sent by time of sending, received by arrival; delay by departure from the link."""
    bins = len(edges) - 1
    columns = log.packets.columns()
    wanted = ("flow", "path", "media", "size", "sent_at", "dequeued_at", "departed_at", "ended_at")
    rows = zip(*(columns[key] for key in wanted), columns["fate"], strict=True)
    for flow, path, media, size, sent_at, dequeued_at, departed_at, ended_at, fate in rows:
        if not media or path != ups[int(flow)]:
            continue
        series = flows[int(flow)]
        index = bisect_right(edges, sent_at) - 1
        if index < bins:
            series.sent[index] += int(size)
        index = bisect_right(edges, departed_at) - 1
        if index < bins and dequeued_at == dequeued_at:
            series.delay_sum[index] += dequeued_at - sent_at
            series.delays[index] += 1
        index = bisect_right(edges, ended_at) - 1
        if not fate and index < bins:
            series.received[index] += int(size)


def _capacity(node: PathNode, edges: Sequence[float]) -> list[float]:
    """What the link could have carried in each bin (bit/s); NaN without a limit."""
    link = node.path.bottleneck
    if link is None:
        return [nan] * (len(edges) - 1)
    offered = [link.counters(at).offered_bytes for at in edges]
    return [8 * (after - before) / BIN for before, after in pairwise(offered)]


SERIES = (
    "time_s",
    "capacity_bps",
    "tx_bps",
    "rx_bps",
    "queue_delay_s",
    "rtt_s",
    "target_bps",
)
"""Columns of the table `series` besides `flow`."""


def _joined(
    flows: Sequence[_FlowSeries], edges: Sequence[float], capacity: Sequence[Sequence[float]]
) -> Columns:
    bins = range(len(edges) - 1)
    doubles: dict[str, list[float]] = {
        "time_s": [n * BIN for _ in flows for n in bins],
        "capacity_bps": [capacity[number][n] for number in range(len(flows)) for n in bins],
        "tx_bps": [8 * flow.sent[n] / BIN for flow in flows for n in bins],
        "rx_bps": [8 * flow.received[n] / BIN for flow in flows for n in bins],
        "queue_delay_s": [
            flow.delay_sum[n] / flow.delays[n] if flow.delays[n] else nan
            for flow in flows
            for n in bins
        ],
        "rtt_s": [flow.rtt[n] for flow in flows for n in bins],
        "target_bps": [flow.target[n] for flow in flows for n in bins],
    }
    columns: Columns = {"flow": array("H", [n for n in range(len(flows)) for _ in bins])}
    columns.update({key: array("d", values) for key, values in doubles.items()})
    return columns
