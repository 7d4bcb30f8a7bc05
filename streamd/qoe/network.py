"""Network metrics of a flow: delay, loss, ECN, jitter, fairness."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from streamd.ecn import NOT_ECT
from streamd.errors import LocalMisuse
from streamd.qoe.percentile import ratio
from streamd.qoe.samples import DEFAULT_CAPACITY, Samples

IPV4_UDP_BYTES: Final = 28
IPV6_UDP_BYTES: Final = 48
"""Headers below the RTP packet that a wire rate includes."""
GRACE: Final = 1.0
"""A packet received up to this long (s) after the end still is received."""


def relative_delays(one_way: Sequence[float]) -> list[float]:
    """Queue delay estimated over a whole run (`est_run`): each one-way delay less the smallest."""
    base = min(one_way, default=0.0)
    return [delay - base for delay in one_way]


class RelativeDelay:
    """`relative_delays` for runs of any length: percentiles of the delay above the smallest.

    The smallest may come last: it is taken off the percentile, not off each sample.
    """

    __slots__ = ("samples",)

    def __init__(self, capacity: int = DEFAULT_CAPACITY) -> None:
        self.samples = Samples(capacity)

    def add(self, one_way: float) -> None:
        """One packet's one-way delay (s), of clocks that need not agree."""
        self.samples.add(one_way)

    def percentile(self, percent: float) -> float | None:
        """Percentile (0 to 100) of the queue delay (s); None without a packet."""
        base = self.samples.minimum
        value = self.samples.percentile(percent)
        return None if base is None or value is None else value - base


def rtt_sample(sent_at: float, received_at: float, holding: float = 0.0) -> float:
    """Round-trip time (s) of the newest newly acknowledged packet of a report.

    `holding` is what the receiver says it kept the packet for before reporting.
    """
    return received_at - sent_at - holding


class LossCount(NamedTuple):
    """Packets lost, of so many."""

    lost: int
    total: int

    @property
    def ratio(self) -> float | None:
        """The fraction lost; None of nothing."""
        return ratio(self.lost, self.total)


def fate_known_until(end: float, median_rtt: float | None) -> float:
    """Packets sent from this time on are left out of loss: their fate is unknown at `end`."""
    return end - max(1.0, 4 * (median_rtt or 0.0))


def network_loss(
    sent: Mapping[int, float],
    arrived: Mapping[int, float],
    *,
    end: float,
    median_rtt: float | None = None,
) -> LossCount:
    """Loss of first transmissions, by unwrapped packet id.

    `sent` and `arrived` hold the times (s) of first transmissions only: an
    arriving retransmission does not undo the loss of the first copy, a late or
    reordered first copy is received.
    """
    horizon = fate_known_until(end, median_rtt)
    counted = [packet for packet, at in sent.items() if at < horizon]
    deadline = end + GRACE
    lost = sum(1 for packet in counted if arrived.get(packet, deadline) >= deadline)
    return LossCount(lost, len(counted))


def residual_loss(
    captured: Mapping[int, float],
    available: Mapping[int, float],
    *,
    playout_limit: float = 1.0,
) -> LossCount:
    """Loss that no repair undid, where no decoder says what it missed.

    `captured` holds the capture time (s) of each media packet whose fate is
    known, `available` when its content first was there by any copy. A packet is
    missing if that is later than `playout_limit` after its capture.
    """
    missing = sum(
        1
        for packet, at in captured.items()
        if packet not in available or available[packet] > at + playout_limit
    )
    return LossCount(missing, len(captured))


class EcnCounts:
    """Received packets by codepoint."""

    __slots__ = ("by_codepoint", "unreadable")

    def __init__(self) -> None:
        self.by_codepoint = [0, 0, 0, 0]
        """Indexed by the two ECN bits."""
        self.unreadable = 0
        """Packets whose ECN field could not be read; in no ratio."""

    def add(self, ecn: int | None, packets: int = 1) -> None:
        """Packets arrived with these ECN bits; None: unknown."""
        if ecn is None:
            self.unreadable += packets
        else:
            self.by_codepoint[ecn] += packets

    @property
    def ce_ratio(self) -> float | None:
        """CE over all ECN-capable packets received; None of none."""
        _, ect1, ect0, ce = self.by_codepoint
        return ratio(ce, ect1 + ect0 + ce)

    def bleaching_ratio(self, sent_ecn: int) -> float | None:
        """Packets that lost their codepoint on the way; None unless they were sent as ECT."""
        if sent_ecn == NOT_ECT:
            return None
        return ratio(self.by_codepoint[NOT_ECT], sum(self.by_codepoint))


class InterarrivalJitter:
    """Mean deviation of packet spacing (RFC 3550 section 6.4.1), packets in order of arrival."""

    __slots__ = ("_transit", "jitter")

    def __init__(self) -> None:
        self._transit: float | None = None
        self.jitter = 0.0
        """In the unit of the times given."""

    def add(self, sent: float, arrived: float) -> float:
        """One packet: media or send time, and arrival time, in one unit. Returns the jitter."""
        transit = arrived - sent
        if self._transit is not None:
            self.jitter += (abs(transit - self._transit) - self.jitter) / 16
        self._transit = transit
        return self.jitter


def jain_fairness(
    rates: Collection[float], fair_rates: Collection[float] | None = None
) -> float | None:
    """Jain's index of flows active in the whole window, weighted by `fair_rates` if given.

    None where there is no flow or nothing was carried.
    """
    if fair_rates is not None:
        if len(fair_rates) != len(rates) or not all(fair_rates):
            raise LocalMisuse("every rate needs a fair rate that is not 0")
        rates = [rate / fair for rate, fair in zip(rates, fair_rates, strict=True)]
    total = sum(rates)
    return ratio(total * total, len(rates) * sum(rate * rate for rate in rates))


def fairness_over_windows(
    windows: Sequence[Collection[float | None]],
) -> list[float | None]:
    """Jain's index window by window (500 ms for dynamics), for percentiles over windows.

    A flow's rate is None where it was not active for the whole window; it is left out there.
    """
    return [jain_fairness([rate for rate in rates if rate is not None]) for rates in windows]


def normalised_throughput(rate_bps: float, capacity_bps: float, flows: int) -> float | None:
    """A flow's rate over its equal share of the bottleneck; None without capacity."""
    return ratio(rate_bps * flows, capacity_bps)
