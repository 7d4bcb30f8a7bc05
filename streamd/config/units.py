"""Quantities as people write them, turned into base units: seconds, bit/s, bytes, ratios.

Every parser raises ValueError with a sentence that says what would be accepted.
"""

import math
import re
from typing import NamedTuple

_NUMBER = re.compile(r"\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*(\S*)\s*")

_DURATIONS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
}
_RATE_PREFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}
_RATE_UNIT = re.compile(r"([kKmMgG]?)(?:bps|bit/s)")
_SIZES = {
    "": 1,
    "b": 1,
    "kb": 1000,
    "mb": 1000**2,
    "gb": 1000**3,
    "kib": 1024,
    "mib": 1024**2,
    "gib": 1024**3,
}


class HostPort(NamedTuple):
    """Where to bind or send. An empty host means every local address."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class FrameSize(NamedTuple):
    """Picture size in pixels."""

    width: int
    height: int

    def __str__(self) -> str:
        return f"{self.width}x{self.height}"


class Capacity(NamedTuple):
    """What one direction of a link can carry: exactly one of rate and trace, or neither."""

    rate_bps: float | None = None
    trace: str | None = None
    """A Mahimahi trace: a file, or the name of a built-in one."""

    def __str__(self) -> str:
        if self.trace is not None:
            return self.trace
        return "unlimited" if self.rate_bps is None else format_rate(self.rate_bps)


def parse_duration(text: str, *, bare: float = 1.0) -> float:
    """Seconds from "25ms", "2s", "1.5min"; a bare number counts in units of `bare` seconds."""
    value, unit = _split(text, "a duration such as 25ms or 2s")
    if not unit:
        return value * bare
    try:
        return value * _DURATIONS[unit]
    except KeyError:
        units = ", ".join(u for u in _DURATIONS if u.isascii())
        raise ValueError(f"unknown unit of time {unit!r} in {text!r}; use {units}") from None


def parse_rate(text: str) -> float:
    """Bit/s from "12Mbps", "500kbps", "2.5Mbit/s"; a bare number is bit/s.

    Bytes per second are refused rather than read as bits: the slip is a factor of 8.
    """
    value, unit = _split(text, "a rate such as 12Mbps or 500kbps")
    if not unit:
        return value
    match = _RATE_UNIT.fullmatch(unit)
    if match is None:
        raise ValueError(f"unknown unit of rate {unit!r} in {text!r}; use bps, kbps, Mbps or Gbps")
    return value * _RATE_PREFIXES[match[1].lower()]


def parse_size(text: str) -> int:
    """Bytes from "1500", "64kB" (1000), "4MiB" (1024 squared)."""
    value, unit = _split(text, "a size in bytes such as 1500, 64kB or 4MiB")
    factor = _SIZES.get(unit.lower())
    if factor is None:
        raise ValueError(f"unknown unit of size {unit!r} in {text!r}; use kB, MB, KiB or MiB")
    size = value * factor
    if size != int(size):
        raise ValueError(f"{text!r} is not a whole number of bytes")
    return int(size)


def parse_ratio(text: str) -> float:
    """A share between 0 and 1 from "0.01" or "1%"."""
    value, unit = _split(text, "a ratio such as 0.01 or 1%")
    if unit not in ("", "%"):
        raise ValueError(f"unknown unit {unit!r} in {text!r}; write 0.01 or 1%")
    return value / 100 if unit else value


def parse_host_port(text: str) -> HostPort:
    """ "192.0.2.1:5004", "[::1]:5004", "name:5004"; ":5004" is every local address."""
    host, colon, port = text.strip().rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{text!r} is not HOST:PORT with a port from 0 to 65535")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"write an IPv6 address in brackets: [{host}]:{port}")
    return HostPort(host, int(port))


def parse_frame_size(text: str) -> FrameSize:
    """ "352x288"."""
    match = re.fullmatch(r"\s*(\d{1,5})\s*[xX]\s*(\d{1,5})\s*", text)
    if match is None:
        raise ValueError(f"{text!r} is not a picture size such as 352x288")
    return FrameSize(int(match[1]), int(match[2]))


def parse_capacity(text: str) -> Capacity:
    """A rate, "unlimited", or else the name of a trace."""
    text = text.strip()
    if text.lower() == "unlimited":
        return Capacity()
    if not text:
        raise ValueError("an empty string is neither a rate nor a trace")
    # A slip in a unit ("12Mbs") must not turn into the search for a file of that name.
    if re.fullmatch(r"[+-]?[\d.]+(e\d+)?\s*[A-Za-z/]{0,7}", text) is None:
        return Capacity(trace=text)
    rate = parse_rate(text)
    if rate <= 0:
        raise ValueError(f"a link's rate must be above 0, not {text!r}")
    return Capacity(rate_bps=rate)


def format_duration(seconds: float) -> str:
    """The shortest of s, ms and us that `parse_duration` reads back."""
    return _format(seconds, (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)))


def format_rate(bps: float) -> str:
    """The shortest of bps, kbps and Mbps that `parse_rate` reads back."""
    return _format(bps, (("bps", 1.0), ("kbps", 1e3), ("Mbps", 1e6)))


def format_size(size: int) -> int | str:
    """Whole MiB or KiB with their unit, any other number of bytes as it is."""
    for unit in ("MiB", "KiB"):
        if size and size % _SIZES[unit.lower()] == 0:
            return f"{size // _SIZES[unit.lower()]}{unit}"
    return size


def _format(value: float, units: tuple[tuple[str, float], ...]) -> str:
    texts = [f"{value / scale:.12g}{unit}" for unit, scale in units]
    return min((text for text in texts if "e" not in text), key=len, default=texts[0])


def _split(text: str, expected: str) -> tuple[float, str]:
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not {expected}")
    value = float(match[1])
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is not a finite number")
    return value, match[2]
