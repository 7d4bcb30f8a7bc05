"""The two links: byte accounting, order at equal times, idle capacity, counters."""

from collections import deque

import pytest

from streamd.errors import ConfigError
from streamd.link.bottleneck import Bottleneck, ConstantRateLink, TraceLink
from streamd.link.droptail import DropTail, DropTailConfig
from streamd.link.queue import Packet, QueueDiscipline
from streamd.link.trace import Trace

Departures = list[tuple[int, float]]


def collect(link: Bottleneck) -> Departures:
    """Payload number and time (ms, rounded to the nanosecond) of each departure."""
    out: Departures = []
    link.sink = lambda packet, at: out.append((packet.data[0], round(at * 1000, 6)))
    return out


def trace_link(times: list[int], **options: object) -> TraceLink:
    queue = DropTail(DropTailConfig(packets=100))
    return TraceLink(queue, Trace(times, name="t"), base=0.0, **options)  # type: ignore[arg-type]


def serial_link(rate_bps: float = 12e6, *, mtu: int = 1500) -> ConstantRateLink:
    return ConstantRateLink(DropTail(DropTailConfig(packets=100)), rate_bps, base=0.0, mtu=mtu)


def send(link: Bottleneck, number: int, size: int, ms: float) -> Packet:
    packet = Packet(bytes([number]), size, 0)
    link.enqueue(packet, ms / 1000)
    return packet


def test_a_full_packet_takes_one_opportunity() -> None:
    link = trace_link([1, 2, 3])
    out = collect(link)
    send(link, 1, 1500, 0.0)
    send(link, 2, 1500, 0.5)
    link.advance(0.010)
    assert out == [(1, 1.0), (2, 2.0)]


def test_an_arrival_cannot_use_an_opportunity_of_its_own_time() -> None:
    link = trace_link([1, 2, 3])
    out = collect(link)
    send(link, 1, 1500, 1.0)
    link.advance(0.010)
    assert out == [(1, 2.0)]


def test_small_packets_share_an_opportunity_and_one_may_span_two() -> None:
    link = trace_link([1, 2, 3])
    out = collect(link)
    packets = [send(link, n, 600, 0.1) for n in range(1, 6)]
    link.advance(0.001)
    assert out == [(1, 1.0), (2, 1.0)]
    # The third is in transit: it was judged at 1 ms and counts no more as queued.
    assert packets[2].dequeued_at == 0.001
    assert link.queue.backlog() == (2, 1200)
    assert (link.in_transit_packets, link.held_packets) == (1, 3)
    link.advance(0.002)
    assert out[2:] == [(3, 2.0), (4, 2.0), (5, 2.0)]
    assert packets[4].departed_at == 0.002
    assert packets[2].departed_at - packets[2].dequeued_at == pytest.approx(0.001)


def test_opportunities_of_one_millisecond_follow_each_other() -> None:
    link = trace_link([3, 3, 3, 9])
    out = collect(link)
    for n in range(1, 5):
        send(link, n, 1500, 0.0)
    link.advance(0.009)
    assert out == [(1, 3.0), (2, 3.0), (3, 3.0), (4, 9.0)]


def test_idle_capacity_is_lost_also_within_a_millisecond() -> None:
    link = trace_link([1, 1, 4])
    out = collect(link)
    send(link, 1, 100, 0.0)
    link.advance(0.0015)
    send(link, 2, 1500, 2.0)
    link.advance(0.004)
    assert out == [(1, 1.0), (2, 4.0)]
    counters = link.counters(0.004)
    assert (counters.opportunities, counters.opportunities_used) == (3, 2)
    assert (counters.offered_bytes, counters.used_bytes) == (4500, 1600)
    assert (counters.wasted_idle_bytes, counters.wasted_partial_bytes) == (1500, 1400)
    assert (counters.arrived_packets, counters.departed_packets) == (2, 2)
    assert counters.departed_bytes == 1600


def test_counters_include_idle_opportunities_without_disturbing_the_link() -> None:
    link = trace_link([1])
    out = collect(link)
    assert link.counters(5.0).opportunities == 5000
    assert link.counters(5.0).wasted_idle_bytes == 5000 * 1500
    send(link, 1, 1500, 0.5)
    link.advance(0.001)
    assert out == [(1, 1.0)]


def test_a_packet_that_is_read_late_still_meets_its_opportunity() -> None:
    link = trace_link([1])
    out = collect(link)
    link.advance(0.0075)
    send(link, 1, 1500, 2.25)
    link.advance(0.0075)
    assert out == [(1, 3.0)]


def test_a_second_without_capacity_works() -> None:
    link = trace_link([1, 2000, 2001])
    out = collect(link)
    send(link, 1, 1500, 500.0)
    send(link, 2, 1500, 1500.0)
    assert link.next_timeout() == 2.0
    link.advance(1.999)
    assert out == []
    link.advance(2.001)
    assert out == [(1, 2000.0), (2, 2001.0)]


def test_a_trace_that_is_not_repeated_ends_the_link() -> None:
    link = trace_link([1, 2], repeat=False)
    out = collect(link)
    for n in range(1, 5):
        send(link, n, 1500, 0.0)
    before = link.exhausted
    link.advance(99.0)
    assert out == [(1, 1.0), (2, 2.0)]
    assert (before, link.exhausted) == (False, True)
    assert link.next_timeout() is None
    assert link.held_packets == 2
    assert link.counters(99.0).opportunities == 2


def test_a_packet_larger_than_an_opportunity_is_a_counted_drop() -> None:
    link = trace_link([1], opportunity_bytes=1504)
    out = collect(link)
    drops: list[tuple[str, float]] = []
    link.watch_drops(lambda packet, cause, now: drops.append((cause, now)))
    send(link, 1, 1505, 0.25)
    send(link, 2, 1504, 0.25)
    link.advance(0.001)
    assert out == [(2, 1.0)]
    assert drops == [("oversize", 0.00025)]
    assert link.oversize == [1, 0, 0, 0]
    assert link.counters(0.001).oversize_packets == 1
    assert link.dropped_packets == 1


def test_an_oversized_packet_without_a_watcher_is_only_counted() -> None:
    link = trace_link([1])
    collect(link)
    send(link, 1, 9000, 0.0)
    assert link.dropped_packets == 1


def test_mahimahi_accounting_gives_the_stated_rates() -> None:
    """Specification 1.2: IP packets of 1200 bytes at 12 Mbps make 11.99 Mbps, of 200 11.80."""
    for ip_bytes, mbps in ((1500, 12.000), (1200, 11.99), (200, 11.80)):
        queue = DropTail(DropTailConfig(packets=10_000))
        link = TraceLink(queue, Trace([1], name="t"), base=0.0, opportunity_bytes=1504)
        out = collect(link)
        for _ in range(9000):
            send(link, 1, ip_bytes + 4, 0.0)
        link.advance(1.0)
        assert len(out) * ip_bytes * 8 / 1e6 == pytest.approx(mbps, abs=0.012)


def test_subticks_spread_a_millisecond() -> None:
    link = trace_link([4, 4], subticks=4)
    out = collect(link)
    send(link, 1, 1500, 0.0)
    send(link, 2, 1500, 0.0)
    link.advance(0.004)
    assert out == [(1, 3.25), (2, 3.5)]


def test_the_base_is_time_0_of_the_trace() -> None:
    queue = DropTail(DropTailConfig(packets=1))
    link = TraceLink(queue, Trace([5], name="t"), base=100.0)
    out = collect(link)
    send(link, 1, 1500, 100_001.0)
    assert link.next_timeout() == 100.005
    link.advance(100.005)
    assert out == [(1, 100_005.0)]


def test_what_cannot_carry_anything_is_refused() -> None:
    with pytest.raises(ConfigError, match="an opportunity of 0 bytes"):
        trace_link([1], opportunity_bytes=0)
    for rate in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(ConfigError, match="a link needs a rate above 0"):
            serial_link(rate)


def test_a_serial_link_sends_one_packet_after_the_other() -> None:
    link = serial_link()
    out = collect(link)
    first, second = send(link, 1, 1500, 0.0), send(link, 2, 750, 0.25)
    assert link.next_timeout() == 0.001
    link.advance(0.0014)
    assert out == [(1, 1.0)]
    assert link.next_timeout() == 0.0015
    link.advance(0.0015)
    assert out == [(1, 1.0), (2, 1.5)]
    assert (first.dequeued_at, first.departed_at) == (0.0, 0.001)
    assert (second.dequeued_at, second.arrived_at) == (0.001, 0.00025)
    assert link.next_timeout() is None


def test_an_idle_serial_link_takes_a_packet_at_its_arrival() -> None:
    link = serial_link()
    collect(link)
    send(link, 1, 1500, 0.0)
    packet = send(link, 2, 1500, 7.0)
    assert packet.dequeued_at == packet.arrived_at == 0.007


def test_at_equal_times_the_end_of_a_transmission_comes_before_the_arrival() -> None:
    link = serial_link()
    out = collect(link)
    send(link, 1, 1500, 0.0)
    send(link, 2, 1500, 0.0)
    packet = send(link, 3, 1500, 1.0)
    # At 1 ms the second had already left the queue when the third came.
    assert link.queue.backlog_packets == 1
    link.advance(0.003)
    assert out == [(1, 1.0), (2, 2.0), (3, 3.0)]
    assert packet.dequeued_at == 0.002


def test_a_late_read_on_a_serial_link_starts_when_the_link_was_free() -> None:
    link = serial_link()
    out = collect(link)
    send(link, 1, 1500, 0.0)
    link.advance(0.005)
    send(link, 2, 1500, 0.5)
    link.advance(0.005)
    assert out == [(1, 1.0), (2, 2.0)]


def test_a_million_packets_do_not_drift() -> None:
    link = ConstantRateLink(DropTail(DropTailConfig(packets=10)), 3e6, base=0.0)
    last = [0.0]
    link.sink = lambda packet, at: last.__setitem__(0, at)
    packet = Packet(b"", 1200, 0)
    for n in range(200_000):
        link.enqueue(packet, n * 0.0032)
        if n == 0:
            link.enqueue(packet, 0.0)
    link.advance(1e6)
    # 200,001 packets of 3.2 ms, back to back.
    assert last[0] == pytest.approx(640.0032, abs=1e-10)


def test_serial_counters_are_capacity_in_bytes() -> None:
    link = serial_link()
    collect(link)
    send(link, 1, 1500, 2.0)
    send(link, 2, 1501, 2.0)
    link.advance(0.010)
    counters = link.counters(0.010)
    assert counters.offered_bytes == 15_000
    assert (counters.used_bytes, counters.wasted_idle_bytes) == (1500, 13_500)
    assert (counters.opportunities, counters.opportunities_used) == (0, 0)
    assert (counters.arrived_packets, counters.oversize_packets) == (2, 1)
    send(link, 3, 1500, 10.0)
    assert link.counters(0.0105).wasted_idle_bytes == 13_500


class Gate(QueueDiscipline):
    """Holds everything back until a time, as a shaper does."""

    def __init__(self, opens: list[float]) -> None:
        super().__init__()
        self.opens = opens
        self.fifo: deque[Packet] = deque()
        self.asked: list[float] = []

    def enqueue(self, packet: Packet, now: float) -> None:
        packet.arrived_at = now
        self.fifo.append(packet)
        self.backlog_packets += 1
        self.backlog_bytes += packet.size

    def dequeue(self, now: float) -> Packet | None:
        self.asked.append(now)
        if not self.fifo or now < self.opens[0]:
            return None
        if len(self.opens) > 1:
            self.opens.pop(0)
        packet = self.fifo.popleft()
        packet.dequeued_at = now
        self.backlog_packets -= 1
        self.backlog_bytes -= packet.size
        return packet

    def next_timeout(self) -> float | None:
        return self.opens[0]

    def describe(self) -> dict[str, str | int | float | bool | None]:
        return {"discipline": "gate"}


def test_a_serial_link_asks_a_shaper_again_when_it_said() -> None:
    gate = Gate([0.010, 0.020])
    link = ConstantRateLink(gate, 12e6, base=0.0)
    out = collect(link)
    send(link, 1, 1500, 0.0)
    send(link, 2, 1500, 1.0)
    assert link.next_timeout() == 0.010
    link.advance(0.5)
    assert out == [(1, 11.0), (2, 21.0)]
    assert link.next_timeout() is None


def test_a_shaper_that_keeps_refusing_does_not_hang_the_link() -> None:
    gate = Gate([0.010])
    gate.opens[0] = 0.010
    link = ConstantRateLink(gate, 12e6, base=0.0)
    collect(link)
    send(link, 1, 1500, 0.0)
    gate.dequeue = lambda now: None  # type: ignore[method-assign]
    link.advance(1.0)
    assert link.held_packets == 1


def test_a_trace_link_wastes_what_a_shaper_holds_back() -> None:
    link = TraceLink(Gate([0.0025]), Trace([1], name="t"), base=0.0)
    out = collect(link)
    send(link, 1, 1500, 0.0)
    link.advance(0.005)
    assert out == [(1, 3.0)]
    assert link.counters(0.003).wasted_idle_bytes == 3000


def test_links_describe_themselves() -> None:
    described = trace_link([1, 2]).describe()
    assert (described["link"], described["trace"]) == ("trace", "t")
    assert len(str(described["trace_sha256"])) == 64
    assert serial_link().describe() == {"link": "constant", "rate_bps": 12e6, "mtu": 1500}


def test_departure_delay_includes_the_transmission() -> None:
    link = serial_link()
    collect(link)
    send(link, 1, 1500, 0.0)
    send(link, 2, 1500, 0.0)
    link.advance(0.002)
    assert link.delay.count == 2
    assert link.delay.sum == pytest.approx(0.003)
    assert link.queue.queues[0].sojourn.sum == pytest.approx(0.001)
