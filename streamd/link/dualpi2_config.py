"""DualPI2's parameters: what a user may say, and what each mode makes of what was left out."""

import math
import sys
from dataclasses import dataclass, fields, replace
from typing import Literal

from streamd.errors import ConfigError

Mode = Literal["linux", "rfc", "mahimahi", "mahimahi-n", "mahimahi-m"]

WEAK_GAIN = 1 / 274.878
"""What the gains of the fork's nanosecond version come to, against the right ones."""

_LIMIT_PACKETS = 10_000
_MTU = 1500
_TUN_MTU = 1504


@dataclass(frozen=True, slots=True)
class DualPi2Config:
    """`[queue.dualpi2]`. None takes the default of the mode; times in seconds, gains in 1/s."""

    mode: Mode = "linux"
    """Whose rules: `linux`, `rfc`, `mahimahi` or one of its two profiles `mahimahi-n`, `-m`."""
    packets: int | None = None
    """Limit of both queues together; modes other than linux hold `packets * mtu` bytes."""
    bytes: int | None = None
    """Limit in charged bytes: an arrival is dropped if held + mtu exceeds it."""
    mtu: int | None = None
    """Bytes of a full-size packet as charged, for every rule that names the MTU."""
    k: float | None = None
    """Coupling factor: L4S is marked with k times the base probability."""
    target: float | None = None
    """Queuing delay PI2 steers to (s)."""
    tupdate: float | None = None
    """Period of the probability update (s)."""
    alpha: float | None = None
    """Gain on the distance from the target, per update (1/s)."""
    beta: float | None = None
    """Gain on the growth of the delay, per update (1/s)."""
    gain: float | None = None
    """Factor on alpha and beta: 1 is right, 1/274.878 the fork's weak gains."""
    step: float | None = None
    """L4S threshold on sojourn, or where the ramp begins (s)."""
    ramp: float | None = None
    """Width of the ramp above `step` (s); 0 is a step. Only in mode rfc."""
    step_packets: int | None = None
    """Linux: the step is judged by L4S packets left after removal, not by time."""
    l_min_len: int | None = None
    """Native marking only with more than this many L4S packets left; -1: no such rule."""
    min_qlen_step: int | None = None
    """Linux: the step applies to packets that found at least this many L4S packets."""
    wc: float | None = None
    """Percent of the link the scheduler keeps for Classic."""
    overload: Literal["drop", "overflow"] | None = None
    """In overload drop L4S packets too, or let the limit do it."""
    drop_at: Literal["dequeue", "enqueue"] | None = None
    """Where PI2 decides; enqueue only in mode linux."""
    scheduler: Literal["wrr", "tsfifo"] | None = None
    """Weighted round robin, or time-shifted FIFO."""
    tshift: float | None = None
    """Time-shifted FIFO: how much longer Classic waits (s); default twice the target."""
    update: Literal["clock", "traffic"] | None = None
    """PI2 updates by the clock, or only when packets move."""
    likelihood: Literal["random", "recur"] | None = None
    """Independent draws, or the deterministic counter of RFC 9332."""
    l4s_ect: Literal["ect1", "any"] | None = None
    """Codepoints besides CE that go to the L4S queue."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """Every parameter with its effective value; the gain is already in alpha and beta."""

    mode: Mode = "linux"
    limit_packets: int = sys.maxsize
    limit_bytes: int = sys.maxsize
    mtu: int = _MTU
    k: float = 2.0
    target: float = 0.015
    tupdate: float = 0.016
    alpha: float = 41 / 256
    beta: float = 819 / 256
    gain: float = 1.0
    step: float = 0.001
    ramp: float = 0.0
    step_packets: int | None = None
    l_min_len: int = -1
    min_qlen_step: int = 0
    wc: float = 10.0
    overload: str = "drop"
    drop_at: str = "dequeue"
    scheduler: str = "wrr"
    tshift: float = 0.03
    update: str = "clock"
    likelihood: str = "random"
    l4s_ect: str = "ect1"
    judge_next: bool = False
    """Sojourn is that of the packet behind, in whole ms (the fork's ms version)."""


_LINUX = Parameters()
_RFC = Parameters(
    mode="rfc",
    tupdate=0.015,
    alpha=0.15,
    beta=3.0,
    step=0.0008,
    ramp=0.0004,
    l_min_len=1,
    likelihood="recur",
)
_FORK = Parameters(mode="mahimahi", alpha=0.16, beta=3.2, l_min_len=1)
_FORK_N = replace(_FORK, mode="mahimahi-n", mtu=_TUN_MTU, gain=WEAK_GAIN, update="traffic")
_FORK_M = replace(_FORK, mode="mahimahi-m", mtu=_TUN_MTU, judge_next=True, update="traffic")

DEFAULTS = {p.mode: p for p in (_LINUX, _RFC, _FORK, _FORK_N, _FORK_M)}

_ONLY_IN = {"ramp": "rfc", "step_packets": "linux", "min_qlen_step": "linux", "drop_at": "linux"}
_POSITIVE = ("packets", "bytes", "mtu", "k", "target", "tupdate", "gain", "tshift")
_NOT_NEGATIVE = ("alpha", "beta", "step", "ramp", "step_packets", "min_qlen_step")


def resolve(config: DualPi2Config) -> Parameters:
    """The effective parameters; ConfigError names the field that is out of range or of place."""
    if config.mode not in DEFAULTS:
        raise ConfigError(f"dualpi2: unknown mode {config.mode!r}; there are {', '.join(DEFAULTS)}")
    given = {f.name: getattr(config, f.name) for f in fields(config) if f.name != "mode"}
    given = {name: value for name, value in given.items() if value is not None}
    _check(config.mode, given)
    packets, limit_bytes = given.pop("packets", None), given.pop("bytes", None)
    if "target" in given:
        given.setdefault("tshift", 2 * given["target"])
    chosen = replace(DEFAULTS[config.mode], **given)
    return _limited(
        replace(chosen, alpha=chosen.alpha * chosen.gain, beta=chosen.beta * chosen.gain),
        packets,
        limit_bytes,
    )


def _limited(chosen: Parameters, packets: int | None, limit_bytes: int | None) -> Parameters:
    """Linux counts packets; the others count bytes, of packets as if all were full-size."""
    if packets is None and limit_bytes is None:
        packets = _LIMIT_PACKETS
    if packets is not None:
        if chosen.mode == "linux":
            chosen = replace(chosen, limit_packets=packets)
        else:
            chosen = replace(chosen, limit_bytes=packets * chosen.mtu)
    if limit_bytes is not None:
        chosen = replace(chosen, limit_bytes=min(limit_bytes, chosen.limit_bytes))
    return chosen


def _check(mode: str, given: dict[str, int | float | str]) -> None:
    for name, only in _ONLY_IN.items():
        if name in given and mode != only:
            raise ConfigError(f"dualpi2: {name} applies in mode {only}, not in {mode}")
    for name, value in given.items():
        if isinstance(value, str):
            continue
        if not math.isfinite(value):
            raise ConfigError(f"dualpi2: {name} must be finite, got {value}")
        if (name in _POSITIVE and value <= 0) or (name in _NOT_NEGATIVE and value < 0):
            least = "above 0" if name in _POSITIVE else "at least 0"
            raise ConfigError(f"dualpi2: {name} must be {least}, got {value}")
    if not 0 < given.get("wc", 10) < 100:  # type: ignore[operator]
        raise ConfigError(f"dualpi2: wc must be between 0 and 100 percent, got {given['wc']}")
    if given.get("l_min_len", 0) < -1:  # type: ignore[operator]
        raise ConfigError(f"dualpi2: l_min_len must be at least -1, got {given['l_min_len']}")
