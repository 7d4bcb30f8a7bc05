"""Measurements that are no simulated call: a trace's throughput, the motion of a clip.

Theory of operation. `trace_statistics` does what the video paper's table 1 did with iperf3:
datagrams at a constant rate above anything the link carries, through a drop-tail queue and
one pass of the trace, and the payload that arrives in each whole second. Where the seconds
begin is unknown (the tool starts by hand), so the phase is a parameter: the trace starts
`phase` into a second. `clip_motion` is the temporal information of ITU-T P.910: the standard
deviation over all pixels of the luma difference of successive pictures, limited range
expanded to full range first, none for the first picture of a clip.
"""

import random
from collections.abc import Iterable
from itertools import pairwise
from statistics import fmean, stdev
from typing import Any

from streamd.config.units import parse_capacity, parse_duration, parse_rate
from streamd.errors import ConfigError
from streamd.lab.extra import need
from streamd.link.bottleneck import TraceLink
from streamd.link.droptail import SPEC as DROPTAIL
from streamd.link.droptail import DropTailConfig
from streamd.link.generate import BUILTIN_NAMES, builtin_trace
from streamd.link.queue import Packet
from streamd.link.trace import Trace

KEYS = {
    "trace": ("capacity", "offered", "payload", "headers", "opportunity", "packets", "phase"),
    "clips": ("source",),
}
"""What each kind of probe has to be told."""

FIGURES = {
    "trace": frozenset({"min_bps", "max_bps", "mean_bps", "sd_bps", "seconds_count"}),
    "clips": frozenset({"ti_min", "ti_max", "ti_mean", "ti_sd", "pictures_count"}),
}
"""What each kind gives."""

Result = tuple[dict[str, Any], dict[str, dict[str, Any]]]


def trace_statistics(
    *,
    capacity: str,
    offered: str,
    payload: int,
    headers: int,
    opportunity: int,
    packets: int,
    phase: str,
) -> Result:
    """Payload per second of a saturating flow over one pass of a trace.

    `capacity` is a trace or a built-in one's name, `offered` the rate of payload, `payload`
    bytes of each datagram, `headers` what the link charges besides, `opportunity` its bytes
    per line of the trace, `packets` the queue's limit. ConfigError for values that cannot be.
    """
    trace = _trace(capacity)
    lead = _phase(phase)
    rate = _rate(offered)
    if payload < 1 or headers < 0:
        raise ConfigError(f"a datagram of {payload} bytes under {headers} of headers")
    end = trace.period_ms / 1000
    arrivals = _saturate(trace, rate, payload, headers, opportunity, packets, end)
    bins = [0] * (int((end + lead + 1e-9) // 1) + 1)
    for at in arrivals:
        bins[int(at + lead + 1e-9)] += payload
    first = 1 if lead else 0
    whole = bins[first : int((end + lead + 1e-9) // 1)]
    bps = [8 * size for size in whole]
    if len(bps) < 2:
        raise ConfigError(f"{trace.name}: shorter than two whole seconds")
    summary = {
        "min_bps": float(min(bps)),
        "max_bps": float(max(bps)),
        "mean_bps": fmean(bps),
        "sd_bps": stdev(bps),
        "seconds_count": len(bps),
    }
    return {"flows": {"udp": summary}}, {"seconds": {"rx_bps": bps}}


def _saturate(
    trace: Trace,
    rate: float,
    payload: int,
    headers: int,
    opportunity: int,
    packets: int,
    end: float,
) -> list[float]:
    """Departure time of every datagram that gets through until `end` (s)."""
    config = DropTailConfig(packets=packets)
    queue = DROPTAIL.build(config, rng=random.Random("trace"), now=0.0)
    link = TraceLink(queue, trace, base=0.0, opportunity_bytes=opportunity, repeat=False)
    departures: list[float] = []
    link.sink = lambda packet, now: departures.append(now)
    interval = 8 * payload / rate
    for number in range(int(end / interval)):
        at = number * interval
        link.advance(at)
        link.enqueue(Packet(b"", payload + headers, 0, at), at)
    link.advance(end)
    return departures


def clip_motion(*, source: str) -> Result:
    """Temporal information of one pass of a clip or a file. StartupError if it cannot be read."""
    from streamd.media.factory import CLIPS, open_source

    numpy = need("numpy")
    if source in CLIPS:
        from streamd.media.clips import ClipSource

        frames: Any = ClipSource(source, loop=False)
    else:
        frames = open_source(source)
    found = motion(_luma(frames, numpy), numpy)
    if len(found) < 2:
        raise ConfigError(f"{source}: fewer than three pictures")
    summary = {
        "ti_min": min(found),
        "ti_max": max(found),
        "ti_mean": fmean(found),
        "ti_sd": stdev(found),
        "pictures_count": len(found) + 1,
    }
    return {"flows": {"clip": summary}}, {"pictures": {"ti": found}}


def motion(pictures: Iterable[Any], numpy: Any) -> list[float]:
    """Temporal information of each picture but the first; arrays of full-range luma."""
    return [float(numpy.std(after - before)) for before, after in pairwise(pictures)]


def _luma(frames: Any, numpy: Any) -> Any:
    """Luma of one picture after the other, 16..235 stretched to 0..255."""
    while True:
        try:
            plane = frames.read().planes[0]
        except EOFError:
            return
        rows = numpy.frombuffer(plane, numpy.uint8).reshape(-1, plane.line_size)
        luma = rows[: plane.height, : plane.width].astype(numpy.float64)
        yield (luma - 16.0) * (255.0 / 219.0)


def _trace(text: str) -> Trace:
    name = parse_capacity(text).trace
    if name is None:
        raise ConfigError(f"capacity {text}: a trace is needed, not a rate")
    return builtin_trace(name) if name in BUILTIN_NAMES else Trace.load(name)


def _phase(text: str) -> float:
    try:
        phase = parse_duration(text)
    except ValueError as error:
        raise ConfigError(f"phase: {error}") from None
    if not 0 <= phase < 1:
        raise ConfigError(f"phase {text}: a part of a second is needed, from 0 up")
    return phase


def _rate(text: str) -> float:
    try:
        rate = parse_rate(text)
    except ValueError as error:
        raise ConfigError(f"offered: {error}") from None
    if rate <= 0:
        raise ConfigError(f"offered {text}: must be above 0")
    return rate
