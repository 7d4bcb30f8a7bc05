"""What holds for any traffic over any link: packets conserved, in order, marked only if capable."""

import pickle
import random
from collections import defaultdict, deque
from itertools import islice

from hypothesis import given, settings
from hypothesis import strategies as st

from streamd.ecn import CE, NOT_ECT
from streamd.errors import ConfigError
from streamd.link.bottleneck import Bottleneck, ConstantRateLink, TraceLink
from streamd.link.droptail import DropTail, DropTailConfig
from streamd.link.dualpi2 import DualPi2Config, build
from streamd.link.dualpi2_parts import WeightedRoundRobin
from streamd.link.impair import Delay, Loss
from streamd.link.path import Path
from streamd.link.queue import Packet, QueueDiscipline
from streamd.link.trace import Trace

MODES = ("linux", "rfc", "mahimahi", "mahimahi-n", "mahimahi-m")

times_ms = (
    st.lists(st.integers(0, 400), min_size=1, max_size=40).map(sorted).filter(lambda t: t[-1])
)
arrival = st.tuples(
    st.integers(0, 3000), st.integers(1, 1700), st.integers(0, 3), st.integers(0, 2)
)
"""Gap to the arrival before (us), size, codepoint, flow."""
arrivals = st.lists(arrival, max_size=200)


@st.composite
def disciplines(draw: st.DrawFn) -> QueueDiscipline:
    packets = draw(st.integers(1, 40))
    if draw(st.booleans()):
        limit = draw(st.none() | st.integers(1500, 20_000))
        return DropTail(DropTailConfig(packets=packets, bytes=limit))
    config = DualPi2Config(
        mode=draw(st.sampled_from(MODES)),
        packets=packets,
        gain=draw(st.sampled_from((1.0, 50.0))),
        scheduler=draw(st.sampled_from(("wrr", "tsfifo"))),
        overload=draw(st.sampled_from(("drop", "overflow"))),
        likelihood=draw(st.sampled_from(("random", "recur"))),
    )
    return build(config, rng=random.Random(draw(st.integers(0, 99))), now=0.0)


@st.composite
def links(draw: st.DrawFn) -> Bottleneck:
    queue = draw(disciplines())
    if draw(st.booleans()):
        trace = Trace(draw(times_ms), name="t")
        return TraceLink(queue, trace, base=0.0, subticks=draw(st.sampled_from((1, 4))))
    return ConstantRateLink(queue, draw(st.sampled_from((0.5e6, 6e6, 100e6))), base=0.0)


def check_queue(queue: QueueDiscipline) -> None:
    """The identity per queue, and its sum against the backlog kept apart."""
    assert queue.backlog_packets == sum(q.queued_packets for q in queue.queues)
    assert queue.backlog_bytes == sum(q.queued_bytes for q in queue.queues)
    assert queue.backlog_packets >= 0
    for q in queue.queues:
        assert q.sojourn.count == q.departed_packets
        assert min(q.sojourn.counts) >= 0


@given(links(), arrivals)
@settings(max_examples=150, deadline=None)
def test_packets_are_conserved_in_order_and_marked_only_if_capable(
    link: Bottleneck, traffic: list[tuple[int, int, int, int]]
) -> None:
    departed: list[Packet] = []
    dropped: list[Packet] = []
    link.sink = lambda packet, at: departed.append(packet)
    link.watch_drops(lambda packet, cause, now: dropped.append(packet))
    now, sent = 0.0, 0
    for gap_us, size, ecn, flow in traffic:
        now += gap_us / 1e6
        link.enqueue(Packet(sent.to_bytes(4, "big"), size, ecn, now, flow), now)
        sent += 1
        check_queue(link.queue)
        assert sent == len(departed) + len(dropped) + link.held_packets
        assert len(dropped) == link.dropped_packets
    link.advance(now + 3600)
    assert link.held_packets == 0
    assert len(departed) + len(dropped) == sent
    check_departures(departed)
    counters = link.counters(now + 3600)
    assert counters.used_bytes <= counters.offered_bytes
    assert counters.departed_bytes == sum(p.size for p in departed)


def check_departures(departed: list[Packet]) -> None:
    order: dict[object, list[tuple[bytes, bool]]] = defaultdict(list)
    previous = 0.0
    for packet in departed:
        assert packet.arrived_at <= packet.dequeued_at <= packet.departed_at
        assert packet.departed_at >= previous
        previous = packet.departed_at
        marked = packet.mark is not None
        assert packet.ecn == (CE if marked else packet.ecn_in)
        assert not (marked and packet.ecn_in == NOT_ECT)
        order[packet.flow, packet.ecn_in & 1].append((packet.data, True))
    for sequence in order.values():
        assert sequence == sorted(sequence)


@given(links(), arrivals, st.lists(st.integers(0, 700_000), max_size=60))
@settings(max_examples=80, deadline=None)
def test_when_the_link_is_looked_at_changes_nothing(
    link: Bottleneck, traffic: list[tuple[int, int, int, int]], looks: list[int]
) -> None:
    """Laziness is invisible: waking often, never, or to read gauges gives one schedule."""
    # not `deepcopy`, which would let both draw from one generator
    twin = pickle.loads(pickle.dumps(link))
    plain, watched = run(link, traffic, []), run(twin, traffic, sorted(looks))
    assert plain == watched


def run(
    link: Bottleneck, traffic: list[tuple[int, int, int, int]], looks: list[int]
) -> list[tuple[bytes, float, float, int]]:
    out: list[tuple[bytes, float, float, int]] = []
    link.sink = lambda p, at: out.append((p.data, p.dequeued_at, at, p.ecn))
    pending = deque(us / 1e6 for us in looks)
    now = 0.0
    for n, (gap_us, size, ecn, flow) in enumerate(traffic):
        now += gap_us / 1e6
        while pending and pending[0] < now:
            at = pending.popleft()
            link.advance(at)
            link.counters(at)
            link.queue.gauges(at)
        link.enqueue(Packet(n.to_bytes(4, "big"), size, ecn, now, flow), now)
    link.advance(now + 3600)
    return out


@given(
    times_ms,
    st.floats(0, 1e7),
    st.floats(-1, 5) | st.integers(0, 5000).map(lambda ms: ms / 1000),
    st.sampled_from((1, 4)),
)
@settings(max_examples=300, deadline=None)
def test_a_jump_lands_where_walking_does(
    ms: list[int], base: float, after: float, subticks: int
) -> None:
    trace = Trace(ms, name="t")
    jumper, walker = (trace.cursor(base=base, subticks=subticks) for _ in range(2))
    now = base + after
    jumper.skip(now)
    steps = 0
    while walker.next_at <= now:
        walker.step()
        steps += 1
    assert jumper.next_at == walker.next_at
    assert walker.count(now) == steps


@given(times_ms)
def test_a_trace_round_trips(ms: list[int]) -> None:
    trace = Trace(ms, name="t")
    again = Trace.parse(trace.dumps().encode(), name="again")
    assert list(again.times_ms) == ms
    assert again.sha256 == trace.sha256
    times = list(islice(trace.opportunities(), 3 * len(ms)))
    assert times == sorted(times)


@given(st.binary(max_size=60) | st.text("0123456789\n\r -", max_size=60).map(str.encode))
@settings(max_examples=300)
def test_any_bytes_are_a_trace_or_a_configuration_error(data: bytes) -> None:
    message = ""
    try:
        assert Trace.parse(data, name="t").period_ms > 0
    except ConfigError as error:
        message = str(error)
    assert message == "" or message.startswith("t:")


@given(st.integers(1, 50), st.integers(50, 1500), st.integers(50, 1500))
def test_wrr_shares_bytes_by_weight(wc: int, l4s_size: int, classic_size: int) -> None:
    wrr = WeightedRoundRobin(wc=wc, mtu=1500)
    l4s, classic = Packet(b"", l4s_size, 1), Packet(b"", classic_size, 0)
    sent = {True: 0, False: 0}
    for _ in range(5000):
        from_l4s = wrr.prefers_l4s(l4s, classic)
        size = l4s_size if from_l4s else classic_size
        wrr.sent(from_l4s, size)
        sent[from_l4s] += size
    # The credit stays bounded, so the weighted bytes differ by no more than its swing.
    swing = 1500 * (100 - 2 * wc) + 100 * 1500
    assert abs(sent[True] * wc - sent[False] * (100 - wc)) <= swing


@given(arrivals, st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_a_path_of_several_nodes_conserves_packets(
    traffic: list[tuple[int, int, int, int]], seed: int
) -> None:
    first = TraceLink(DropTail(DropTailConfig(packets=5)), Trace([2, 2, 9], name="t"), base=0.0)
    last = ConstantRateLink(DropTail(DropTailConfig(packets=3)), 4e6, base=0.0)
    loss = Loss(0.2, random.Random(seed))
    path = Path([Delay(0.004), first, loss, Delay(0.007), last])
    now = 0.0
    for sent, (gap_us, size, ecn, flow) in enumerate(traffic, start=1):
        now += gap_us / 1e6
        path.send(Packet(b"", size, ecn, now, flow), now)
        path.advance(now)
        assert len(path.out) + sum(n.held_packets for n in path.nodes) == path.held_packets
        assert path.held_packets + path.dropped_packets == sent
    while (at := path.next_timeout()) is not None and at > now:
        now = at
        path.advance(now)
    due = [packet.due for packet in path.out]
    assert due == sorted(due)
    path.advance(now + 3600)
    assert path.held_packets == len(path.out) == len(traffic) - path.dropped_packets
