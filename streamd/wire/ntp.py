"""The three clocks of RTP: 64-bit NTP, its middle 32 bits ("short"), and 90 kHz media time.

Short NTP is also the format of RFC 8888 report timestamps: 1/65536 s ticks,
modulo 2^32, i.e. 18 h 12 min 16 s. Conversions truncate towards the past, as
the SCReAM BW tool does.
"""

from math import floor
from typing import Final

NTP_UNIX_EPOCH: Final = 2_208_988_800
"""Seconds from 1900-01-01, NTP's epoch, to 1970-01-01 (RFC 5905 section 6)."""
SHORT_HZ: Final = 65536
VIDEO_HZ: Final = 90_000
"""RTP clock of every video payload format (RFC 3551 section 5)."""

_U32 = 0xFFFFFFFF
_U64 = 0xFFFFFFFFFFFFFFFF
_ERA_SECONDS = 1 << 32


def unix_to_ntp(unix: float) -> int:
    """The 64-bit NTP timestamp of a Unix time in seconds, modulo its era of 136 years."""
    seconds = floor(unix)
    # Added, not or-ed: the fraction of a tiny negative time rounds up to a whole second.
    return (seconds + NTP_UNIX_EPOCH << 32) + int((unix - seconds) * 2**32) & _U64


def ntp_to_unix(ntp: int) -> float:
    """Unix seconds of a 64-bit NTP timestamp, taken to lie in 1968-01-20 ... 2104-02-26.

    That is: a clear top bit means era 1, which begins in 2036 (RFC 4330 section 3).
    """
    seconds = (ntp >> 32) - NTP_UNIX_EPOCH
    if not ntp >> 63:
        seconds += _ERA_SECONDS
    return seconds + (ntp & _U32) / 2**32


def ntp_to_short(ntp: int) -> int:
    """The middle 32 bits of an NTP timestamp, as LSR in a report block (RFC 3550 section 6.4.1)."""
    return ntp >> 16 & _U32


def seconds_to_short(seconds: float) -> int:
    """Seconds of any clock in 1/65536 s ticks modulo 2^32."""
    return floor(seconds * 65536.0) & _U32


def short_to_seconds(ticks: int) -> float:
    """1/65536 s ticks in seconds; exact, also for unwrapped tick counts."""
    return ticks / 65536.0


def short_diff(later: int, earlier: int) -> float:
    """Seconds from `earlier` to `later` within +-9.1 h; negative if the order is reversed."""
    return ((later - earlier + 0x80000000 & _U32) - 0x80000000) / 65536.0


def seconds_to_media(seconds: float, rate_hz: int = VIDEO_HZ) -> int:
    """Seconds in RTP clock ticks modulo 2^32."""
    return floor(seconds * rate_hz) & _U32


def media_to_seconds(ticks: int, rate_hz: int = VIDEO_HZ) -> float:
    """RTP clock ticks in seconds; unwrapped counts and differences are meant."""
    return ticks / rate_hz
