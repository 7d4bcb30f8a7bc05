"""A bounded record of every packet of one path, in compact arrays, and percentiles from it.

One row per packet, written when its fate is known: it came out of the path or
was dropped. The ground truth of queue delay is taken from here.

Source: metrics definitions, sections 0 (percentile, windows) and 1.2 (queue delay).
"""

import math
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from streamd.link.queue import Packet

DEFAULT_LIMIT = 2_000_000
"""Packets; about 30 bytes each."""

DELIVERED = "delivered"

_MEDIA_BIT = 16


class Row(NamedTuple):
    """One packet. Times in seconds; `dequeued_at` is None when it was dropped before the link."""

    arrived_at: float
    dequeued_at: float | None
    departed_at: float
    """When its last byte left the link, or when it was dropped."""
    size: int
    ecn_in: int
    ecn_out: int
    fate: str
    """`delivered` or the cause of the drop."""
    is_media: bool


class PacketRecord:
    """Rows in the order in which fates became known."""

    def __init__(self, is_media: Callable[[bytes], bool], *, limit: int = DEFAULT_LIMIT) -> None:
        """`is_media` looks at a UDP payload; `limit` in packets, later ones are only counted."""
        self._is_media = is_media
        self._limit = limit
        self._arrived = array("d")
        self._dequeued = array("d")
        self._departed = array("d")
        self._size = array("I")
        self._bits = array("B")
        self._fate = array("B")
        self._fates = [DELIVERED]
        self.not_recorded = 0
        """Packets that came after the limit was reached."""

    def __len__(self) -> int:
        return len(self._arrived)

    def on_delivered(self, packet: Packet) -> None:
        """The packet came out of the path."""
        self._append(packet, packet.dequeued_at, packet.departed_at, 0)

    def on_drop(self, packet: Packet, cause: str, now: float) -> None:
        """The packet was dropped; fits `Path.watch_drops`."""
        if cause not in self._fates:
            self._fates.append(cause)
        fate = self._fates.index(cause)
        if packet.departed_at > packet.sent_at:
            # Lost behind the link: it has a queue delay like any other.
            self._append(packet, packet.dequeued_at, packet.departed_at, fate)
        else:
            self._append(packet, math.nan, now, fate)

    def _append(self, packet: Packet, dequeued: float, departed: float, fate: int) -> None:
        if len(self._arrived) >= self._limit:
            self.not_recorded += 1
            return
        self._arrived.append(packet.arrived_at)
        self._dequeued.append(dequeued)
        self._departed.append(departed)
        self._size.append(packet.size)
        media = _MEDIA_BIT if self._is_media(packet.data) else 0
        self._bits.append(packet.ecn_in | packet.ecn << 2 | media)
        self._fate.append(fate)

    def rows(self) -> Iterator[Row]:
        """Every row."""
        columns = (self._arrived, self._dequeued, self._departed, self._size, self._bits)
        for arrived, dequeued, departed, size, bits, fate in zip(*columns, self._fate, strict=True):
            yield Row(
                arrived,
                None if math.isnan(dequeued) else dequeued,
                departed,
                size,
                bits & 3,
                bits >> 2 & 3,
                self._fates[fate],
                bool(bits & _MEDIA_BIT),
            )

    @property
    def first_arrival(self) -> float | None:
        """The earliest arrival (s) of the packets recorded; None without any."""
        return min(self._arrived, default=None)

    def delivered_bps(self, *, since: float = -math.inf) -> float | None:
        """IP bytes of media delivered whose departure is at `since` (s) or later, per second.

        The time ends with the last departure; None while there is none.
        """
        end, total = -math.inf, 0
        for departed, size, bits, fate in zip(
            self._departed, self._size, self._bits, self._fate, strict=True
        ):
            if bits & _MEDIA_BIT and not fate and departed >= since:
                total += size
                if departed > end:
                    end = departed
        return 8 * total / (end - since) if math.inf > end - since > 0 else None

    def sojourns(
        self, *, since: float = -math.inf, until: float = math.inf, media_only: bool = True
    ) -> list[float]:
        """Sorted AQM dequeue minus arrival (s) of packets that left the link in [since, until)."""
        skip_bits = 0 if media_only else _MEDIA_BIT
        values = [
            dequeued - arrived
            for arrived, dequeued, departed, bits in zip(
                self._arrived, self._dequeued, self._departed, self._bits, strict=True
            )
            if since <= departed < until
            and (bits | skip_bits) & _MEDIA_BIT
            and dequeued == dequeued  # not NaN: it reached the link
        ]
        values.sort()
        return values

    def sojourn_percentiles(
        self,
        quantiles: Sequence[float],
        *,
        since: float = -math.inf,
        until: float = math.inf,
        media_only: bool = True,
    ) -> list[float | None]:
        """Queue delay (s) at each quantile (0 to 1), as `sojourns`; None without packets."""
        ordered = self.sojourns(since=since, until=until, media_only=media_only)
        return [percentile(ordered, q) for q in quantiles]


def percentile(ordered: Sequence[float], quantile: float) -> float | None:
    """Linear interpolation between order statistics of sorted values; None when there are none."""
    if not ordered:
        return None
    position = quantile * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)
