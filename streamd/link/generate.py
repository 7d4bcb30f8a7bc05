"""Generated traces: an LTE-like uplink from a stated model, and constant rates.

The LTE model, coarse to fine:

1. *Rate*, in slots of 100 ms: `mean + sd * (a * slow + b * fast)` bit/s, clipped
   to 0..`cap`. `slow` and `fast` are independent first-order autoregressive
   Gaussian series of unit variance with time constants of 3.5 s (fading as the
   device moves) and 0.15 s (the scheduler's other users); a^2 = 0.8, b^2 = 0.2.
2. *Outages*: the time is cut into equal parts of about 45 s and each gets one,
   placed uniformly. It begins up to 0.3 s before a whole second and ends 0.05
   to 0.4 s after the next one, so each empties exactly one second wholly.
3. *Standardisation*: offset and scale of 1 are solved by iteration so that, after
   clipping and outages, the throughput of one-second bins has the wanted mean
   and standard deviation. Every seed gives a different course, none a different load.
4. *Grants*: opportunities come in bursts. The gap between two milliseconds that
   have any is drawn from a table with two modes (1 to 2 ms inside a train of
   grants, 8 to 11 ms for the round of a scheduling request); the short ones are stretched
   or squeezed to the present rate. The burst is 1 plus a geometric number with a
   mean that grows with the gap. A running account of packets owed
   enlarges a burst or leaves one out, so that the slots' rates are kept to a few packets.

The parameters were chosen to give the statistics of the Verizon LTE uplink the
SCReAM video paper used (140 s, 5.8 Mbit/s mean, 3.1 sd, seconds at zero; 32 % of
milliseconds active; here 30 %). No line of that trace is in here.
"""

import math
import random
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from statistics import fmean, stdev

from streamd.errors import ConfigError
from streamd.link.trace import OPPORTUNITY_BITS, Trace

_SLOT_MS = 100
_SLOTS_PER_S = 1000 // _SLOT_MS

_GAPS_MS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 17, 20, 26, 34, 45)
_GAP_WEIGHTS = (
    *(57, 25, 7, 4, 0.9, 0.5, 0.4),
    *(1.9, 2.0, 1.7, 1.2, 0.4, 0.4, 0.2, 0.2, 0.1, 0.05, 0.05),
)
_BURST_EXTRA = {1: 0.3, 2: 0.25, 3: 0.25, 4: 0.3, 5: 0.5, 6: 0.7, 7: 0.9}
"""Mean of the geometric part by gap in ms; 1.6 above."""
_LONG_GAP_EXTRA = 1.6
_ROUND_MS = 8
"""Gaps from here on are rounds of the protocol: the rate does not stretch them."""
_MOST_OWED = 4.0
"""Packets the account may be off before it steps in."""


@dataclass(frozen=True, slots=True)
class LteModel:
    """The parameters of the model; rates in bit/s, times in seconds."""

    seconds: int = 140
    mean_bps: float = 5.8e6
    sd_bps: float = 3.1e6
    """Sample standard deviation of one-second throughput."""
    cap_bps: float = 13.5e6
    slow_tau: float = 3.5
    fast_tau: float = 0.15
    fast_share: float = 0.2
    """Share of the fast series in the variance."""
    outage_every: float = 45.0

    def __post_init__(self) -> None:
        if self.seconds < 10:
            raise ConfigError(f"a generated trace needs at least 10 s, got {self.seconds}")
        if not 0 < self.sd_bps < self.mean_bps < self.cap_bps:
            raise ConfigError("a generated trace needs 0 < sd < mean < cap")


def lte_trace(rng: random.Random, model: LteModel | None = None, *, name: str = "lte") -> Trace:
    """A trace of the model; the same generator state gives the same trace."""
    model = model or LteModel()
    return Trace(_grants(_rates(model, rng), rng), name=name)


def constant_trace(rate_bps: float, *, seconds: float = 1.0, name: str = "") -> Trace:
    """A repeating trace of evenly spaced opportunities, each rounded up to a millisecond.

    The period is `seconds`, the number of opportunities in it the nearest to the
    rate. ConfigError when there would be none.
    """
    period_ms = round(seconds * 1000)
    count = round(rate_bps * seconds / OPPORTUNITY_BITS) if math.isfinite(rate_bps) else 0
    if period_ms < 1 or count < 1:
        raise ConfigError(f"{rate_bps:g} bit/s over {seconds:g} s gives no delivery opportunity")
    times = (-(-k * period_ms // count) for k in range(1, count + 1))
    return Trace(times, name=name or f"constant-{rate_bps:.12g}bps")


_BUILTIN_SEED = "streamd:trace:lte:9"

BUILTIN_NAMES = ("lte",)
"""What `builtin_trace` knows."""


def builtin_trace(name: str) -> Trace:
    """A trace that comes with the package; ConfigError when there is none of that name."""
    if name not in BUILTIN_NAMES:
        raise ConfigError(f"no built-in trace {name!r}; there are: {', '.join(BUILTIN_NAMES)}")
    return lte_trace(random.Random(_BUILTIN_SEED), name=name)


def _rates(model: LteModel, rng: random.Random) -> list[float]:
    """Bit/s of each slot."""
    slots = model.seconds * _SLOTS_PER_S
    slow = _autoregressive(slots, model.slow_tau, rng)
    fast = _autoregressive(slots, model.fast_tau, rng)
    a, b = math.sqrt(1 - model.fast_share), math.sqrt(model.fast_share)
    shape = [a * s + b * f for s, f in zip(slow, fast, strict=True)]
    open_share = _outages(model, rng)
    offset, scale = model.mean_bps, model.sd_bps
    rates: list[float] = []
    for _ in range(30):
        rates = [
            min(max(offset + scale * x, 0.0), model.cap_bps) * share
            for x, share in zip(shape, open_share, strict=True)
        ]
        seconds = [fmean(rates[i : i + _SLOTS_PER_S]) for i in range(0, slots, _SLOTS_PER_S)]
        offset += model.mean_bps - fmean(seconds)
        scale *= model.sd_bps / stdev(seconds)
    return rates


def _autoregressive(length: int, tau: float, rng: random.Random) -> list[float]:
    """A first-order Gaussian series of unit variance that forgets with `tau` seconds."""
    keep = math.exp(-_SLOT_MS / 1000 / tau)
    noise = math.sqrt(1 - keep * keep)
    value = rng.gauss(0.0, 1.0)
    series = []
    for _ in range(length):
        series.append(value)
        value = keep * value + noise * rng.gauss(0.0, 1.0)
    return series


def _outages(model: LteModel, rng: random.Random) -> list[float]:
    """The share of each slot in which the link is up."""
    share = [1.0] * (model.seconds * _SLOTS_PER_S)
    parts = max(1, round(model.seconds / model.outage_every))
    length = model.seconds / parts
    for part in range(parts):
        second = int(part * length + rng.uniform(0.1, 0.9) * length)
        second = min(max(second, 1), model.seconds - 2)
        begin = second - rng.uniform(0.0, 0.3)
        end = second + 1 + rng.uniform(0.05, 0.4)
        for slot in range(int(begin * _SLOTS_PER_S), math.ceil(end * _SLOTS_PER_S)):
            up = max(begin * _SLOTS_PER_S - slot, 0.0) + max(slot + 1 - end * _SLOTS_PER_S, 0.0)
            share[slot] = min(up, share[slot])
    return share


def _grants(rates: list[float], rng: random.Random) -> list[int]:
    """The millisecond of each opportunity; the last one stands at the end."""
    end = len(rates) * _SLOT_MS
    per_ms = [rate / OPPORTUNITY_BITS / 1000 for rate in rates]
    weights = list(accumulate(_GAP_WEIGHTS))
    typical = _typical_per_ms()
    draw = rng.random
    times: list[int] = []
    now, owed = 0, 0.0
    while now < end - 1:
        rate = per_ms[now // _SLOT_MS]
        if rate <= 0.0:
            now += _SLOT_MS - now % _SLOT_MS
            continue
        drawn = _GAPS_MS[bisect_right(weights, draw() * weights[-1])]
        tempo = math.sqrt(rate / typical)
        stretched = drawn / tempo if drawn < _ROUND_MS else drawn
        wait = min(max(1, int(stretched + draw())), _SLOT_MS)
        now += wait
        owed += rate * wait
        if owed < -_MOST_OWED or now >= end - 1 or per_ms[now // _SLOT_MS] <= 0.0:
            continue
        burst = 1 + _geometric(_extra(drawn) * min(tempo, 1.0), draw())
        burst += int(max(owed - burst - _MOST_OWED, 0.0))
        times.extend([now] * burst)
        owed -= burst
    return [*times, end]


def _geometric(mean: float, uniform: float) -> int:
    """A geometric number from 0 up with this mean."""
    return int(math.log(1.0 - uniform) / math.log(mean / (1.0 + mean)))


def _extra(gap_ms: int) -> float:
    return _BURST_EXTRA.get(gap_ms, _LONG_GAP_EXTRA)


def _typical_per_ms() -> float:
    """Opportunities per ms if gaps and bursts were as in the tables."""
    pairs = list(zip(_GAPS_MS, _GAP_WEIGHTS, strict=True))
    packets = math.fsum((1 + _extra(g)) * w for g, w in pairs)
    return packets / math.fsum(g * w for g, w in pairs)
