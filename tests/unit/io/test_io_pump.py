"""The pump with sessions that do as the test says, on a clock the test moves."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Literal

import pytest
from io_fakes import FakeEndpoint, ManualClock, ManualTimer

from streamd.clock import Clock
from streamd.datagram import Datagram, Transmit
from streamd.io.pump import Pump, RelayPump
from streamd.io.timer import OnDeadline

PEER = ("192.0.2.7", 7)


def datagram(data: bytes) -> Datagram:
    return Datagram(data, PEER, 1, 100.0)


def run(data: bytes) -> Transmit:
    return Transmit([data], PEER, 1)


class FakeSession:
    """Echoes what it gets, tells it as an event, and wants what the test sets."""

    def __init__(self) -> None:
        self.out: deque[Transmit] = deque()
        self.events: deque[str] = deque()
        self.timeout: float | None = None
        self.log: list[tuple[str, float]] = []
        self.on_timeout: Callable[[float], None] = lambda now: None

    def handle_datagrams(self, batch: list[Datagram], *, now: float) -> None:
        self.log.append(("datagrams", now))
        for received in batch:
            if received.data == b"boom":
                raise ZeroDivisionError("a bug in the session")
            self.out.append(run(received.data))
            self.events.append(received.data.decode())

    def handle_timeout(self, *, now: float) -> None:
        self.log.append(("timeout", now))
        self.on_timeout(now)

    def poll_transmit(self, *, now: float) -> Transmit | None:
        return self.out.popleft() if self.out else None

    def poll_event(self) -> str | None:
        return self.events.popleft() if self.events else None

    def next_timeout(self) -> float | None:
        return self.timeout

    def close(self, *, now: float) -> None:
        self.log.append(("close", now))
        self.out.append(run(b"bye"))


class Bench:
    """A pump on the running loop, everything else under the test's hand."""

    def __init__(
        self,
        on_event: Callable[[str], None] | None = None,
        session: FakeSession | None = None,
    ) -> None:
        self.session = session or FakeSession()
        self.endpoint = FakeEndpoint()
        self.clock = ManualClock(100.0)
        self.events: list[str] = []
        self.timers: list[ManualTimer] = []
        self.pump = Pump(
            self.session,
            self.endpoint,
            self.clock,
            asyncio.get_running_loop(),
            on_event or self.events.append,
            timer=self._timer,
        )

    def _timer(
        self, loop: asyncio.AbstractEventLoop, clock: Clock, callback: OnDeadline
    ) -> ManualTimer:
        self.timers.append(ManualTimer(callback))
        return self.timers[-1]

    @property
    def timer(self) -> ManualTimer:
        return self.timers[0]

    @property
    def sent(self) -> list[bytes]:
        return [transmit.segments[0] for transmit in self.endpoint.sent]


async def turns(count: int) -> None:
    """Let the loop run what waits, `count` times."""
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.asyncio
async def test_start_gives_the_session_its_first_turn() -> None:
    bench = Bench()
    bench.session.out.append(run(b"hello"))
    bench.session.timeout = 100.5
    bench.pump.start()
    assert bench.sent == [b"hello"]
    assert bench.timer.armed == 100.5


@pytest.mark.asyncio
async def test_input_leads_to_transmits_then_events_then_the_deadline() -> None:
    bench = Bench()
    bench.pump.start()
    bench.session.timeout = 101.0
    bench.endpoint.deliver([datagram(b"a"), datagram(b"b")])
    assert bench.session.log == [("datagrams", 100.0)]
    assert bench.sent == [b"a", b"b"]
    assert bench.events == ["a", "b"]
    assert bench.timer.armed == 101.0


@pytest.mark.asyncio
async def test_the_deadline_leads_to_a_timeout_and_is_armed_anew() -> None:
    bench = Bench()
    bench.session.timeout = 100.5
    bench.pump.start()

    def on_timeout(now: float) -> None:
        bench.session.out.append(run(b"paced"))
        bench.session.timeout = 100.625

    bench.session.on_timeout = on_timeout
    bench.timer.fire(bench.clock)
    assert bench.session.log == [("timeout", 100.5)]
    assert bench.sent == [b"paced"]
    assert bench.timer.armed == 100.625


@pytest.mark.asyncio
async def test_time_never_goes_back() -> None:
    bench = Bench()
    bench.session.timeout = 100.5
    bench.pump.start()
    bench.timer.fire(bench.clock)
    bench.clock.time = 100.499
    bench.endpoint.deliver([datagram(b"a")])
    assert bench.session.log == [("timeout", 100.5), ("datagrams", 100.5)]


@pytest.mark.asyncio
async def test_wake_sends_what_the_application_caused() -> None:
    bench = Bench()
    bench.pump.start()
    bench.session.out.append(run(b"frame"))
    bench.session.timeout = 100.25
    bench.pump.wake()
    assert bench.sent == [b"frame"]
    assert bench.timer.armed == 100.25


@pytest.mark.asyncio
async def test_an_event_may_wake_the_pump_without_recursion() -> None:
    depth: list[int] = []

    def on_event(event: str) -> None:
        depth.append(1)
        assert len(depth) == 1, "on_event was entered twice"
        if event == "first":
            bench.session.out.append(run(b"answer"))
            bench.session.events.append("second")
            bench.pump.wake()
        depth.pop()

    bench = Bench(on_event)
    bench.pump.start()
    bench.session.events.append("first")
    bench.pump.wake()
    assert bench.sent == [b"answer"]
    assert not bench.session.events


@pytest.mark.asyncio
async def test_close_sends_the_goodbye() -> None:
    bench = Bench()
    bench.pump.start()
    bench.pump.close()
    assert bench.session.log == [("close", 100.0)]
    assert bench.sent == [b"bye"]
    assert not bench.endpoint.closed


@pytest.mark.asyncio
async def test_stop_ends_everything_and_resolves() -> None:
    bench = Bench()
    bench.pump.start()
    bench.pump.stop()
    bench.pump.stop()
    assert bench.pump.failed.result() is None
    assert bench.endpoint.closed
    assert bench.timer.closed
    bench.endpoint.deliver([datagram(b"late")])
    bench.pump.wake()
    assert bench.session.log == []


@pytest.mark.asyncio
async def test_stop_from_an_event_ends_the_turn() -> None:
    def on_event(event: str) -> None:
        bench.pump.stop()

    bench = Bench(on_event)
    bench.session.timeout = 101.0
    bench.pump.start()
    bench.endpoint.deliver([datagram(b"a")])
    assert bench.pump.failed.done()
    assert bench.timer.closed


# ---- failure


@pytest.mark.asyncio
async def test_an_error_of_the_session_ends_the_pump_and_is_told() -> None:
    bench = Bench()
    bench.pump.start()
    bench.endpoint.deliver([datagram(b"boom")])
    with pytest.raises(ZeroDivisionError, match="a bug in the session"):
        await bench.pump.failed
    assert bench.endpoint.closed
    assert bench.timer.closed
    bench.pump.stop()


@pytest.mark.asyncio
async def test_an_error_on_the_deadline_is_told_too() -> None:
    bench = Bench()
    bench.session.timeout = 100.5
    bench.pump.start()

    def on_timeout(now: float) -> None:
        raise KeyError("in the timeout")

    bench.session.on_timeout = on_timeout
    bench.timer.fire(bench.clock)
    with pytest.raises(KeyError, match="in the timeout"):
        await bench.pump.failed


@pytest.mark.asyncio
async def test_an_error_of_the_application_is_told_too() -> None:
    def on_event(event: str) -> None:
        raise LookupError(event)

    bench = Bench(on_event)
    bench.pump.start()
    bench.endpoint.deliver([datagram(b"a")])
    with pytest.raises(LookupError, match="a"):
        await bench.pump.failed


# ---- livelock


@pytest.mark.asyncio
async def test_a_session_always_in_the_past_is_counted_and_spaced_out() -> None:
    bench = Bench()
    bench.session.timeout = 99.0
    bench.pump.start()
    for _ in range(64):
        assert bench.timer.armed == 99.0
        bench.timer.fire(bench.clock)
    assert bench.pump.stats.overdue == 64
    bench.timer.fire(bench.clock)
    assert bench.timer.armed == 100.001
    bench.session.timeout = 200.0
    bench.timer.fire(bench.clock)
    assert bench.timer.armed == 200.0
    assert bench.pump.stats.overdue == 65


@pytest.mark.asyncio
async def test_input_that_comes_before_a_late_deadline_is_not_the_sessions_fault() -> None:
    bench = Bench()
    bench.session.timeout = 100.5
    bench.pump.start()
    bench.clock.time = 100.75
    bench.endpoint.deliver([datagram(b"a")])
    assert bench.timer.armed == 100.5
    assert bench.pump.stats.overdue == 0


@pytest.mark.asyncio
async def test_a_session_that_never_stops_sending_leaves_the_loop_its_turn() -> None:
    bench = Bench()
    bench.session.out.extend(run(b"x") for _ in range(2000))
    bench.pump.start()
    assert len(bench.sent) == 1024
    assert bench.pump.stats.cut_turns == 1
    await turns(3)
    assert len(bench.sent) == 2000
    assert bench.pump.stats.cut_turns == 1


@pytest.mark.asyncio
async def test_events_that_always_wake_the_pump_leave_the_loop_its_turn() -> None:
    seen: list[str] = []

    def on_event(event: str) -> None:
        seen.append(event)
        if len(seen) < 100:
            bench.session.events.append("again")
            bench.pump.wake()

    class OneAtATime(FakeSession):
        """Gives one event per round."""

        given = False

        def poll_event(self) -> str | None:
            self.given = not self.given
            return super().poll_event() if self.given else None

    bench = Bench(on_event, OneAtATime())
    bench.session.events.append("first")
    bench.pump.start()
    assert len(seen) == 64
    await turns(3)
    assert len(seen) == 100


# ---- the relay


class FakeRelay:
    """Hands everything to the other side at the next deadline."""

    def __init__(self) -> None:
        self.held: list[tuple[Literal["near", "far"], bytes]] = []
        self.due: deque[tuple[Literal["near", "far"], Transmit]] = deque()
        self.timeout: float | None = None
        self.log: list[str] = []

    def handle_near(self, batch: list[Datagram], *, now: float) -> None:
        self.log.append("near")
        self.held.extend(("far", received.data) for received in batch)
        self.timeout = now + 1.0

    def handle_far(self, batch: list[Datagram], *, now: float) -> None:
        self.log.append("far")
        self.held.extend(("near", received.data) for received in batch)
        self.timeout = now + 1.0

    def handle_timeout(self, *, now: float) -> None:
        self.log.append("timeout")
        self.due.extend((side, run(data)) for side, data in self.held)
        self.held.clear()
        self.timeout = None

    def poll_transmit(self, *, now: float) -> tuple[Literal["near", "far"], Transmit] | None:
        return self.due.popleft() if self.due else None

    def next_timeout(self) -> float | None:
        return self.timeout


class RelayBench:
    def __init__(self) -> None:
        self.relay = FakeRelay()
        self.near, self.far = FakeEndpoint(), FakeEndpoint()
        self.clock = ManualClock(100.0)
        self.timers: list[ManualTimer] = []
        self.pump = RelayPump(
            self.relay,
            self.near,
            self.far,
            self.clock,
            asyncio.get_running_loop(),
            timer=self._timer,
        )
        self.pump.start()

    def _timer(
        self, loop: asyncio.AbstractEventLoop, clock: Clock, callback: OnDeadline
    ) -> ManualTimer:
        self.timers.append(ManualTimer(callback))
        return self.timers[-1]


@pytest.mark.asyncio
async def test_the_relay_pump_carries_both_ways() -> None:
    bench = RelayBench()
    bench.near.deliver([datagram(b"up")])
    bench.far.deliver([datagram(b"down")])
    assert bench.timers[0].armed == 101.0
    bench.timers[0].fire(bench.clock)
    assert [transmit.segments for transmit in bench.far.sent] == [[b"up"]]
    assert [transmit.segments for transmit in bench.near.sent] == [[b"down"]]
    assert bench.timers[0].armed is None


@pytest.mark.asyncio
async def test_the_relay_hears_what_has_arrived_before_its_deadline_acts() -> None:
    bench = RelayBench()
    bench.near.deliver([datagram(b"1")])
    bench.near.queued.append([datagram(b"2")])
    bench.far.queued.append([datagram(b"3")])
    bench.timers[0].fire(bench.clock)
    assert bench.relay.log == ["near", "near", "far", "timeout"]
    assert [transmit.segments for transmit in bench.far.sent] == [[b"1"], [b"2"]]


@pytest.mark.asyncio
async def test_the_relay_pump_closes_both_endpoints() -> None:
    bench = RelayBench()
    bench.pump.stop()
    assert bench.near.closed
    assert bench.far.closed
    await bench.pump.failed


@pytest.mark.asyncio
async def test_a_relay_that_never_stops_sending_leaves_the_loop_its_turn() -> None:
    bench = RelayBench()
    bench.relay.due.extend(("far", run(b"x")) for _ in range(1500))
    bench.pump.wake()
    assert len(bench.far.sent) == 1024
    await turns(3)
    assert len(bench.far.sent) == 1500
