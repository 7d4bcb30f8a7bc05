"""Drives a sans-IO session over real endpoints: the one place where core meets asyncio.

Theory of operation. A *turn* is: give the session its input, send all it wants
sent, hand its events to the application, arm its next deadline. Turns start on
received datagrams, on the deadline, and on `wake` after the application called
into the session. Within a turn, `wake` asks for one more round, so events may
feed the session without recursion.

Time given to a session never goes back, although a deadline's `now` may lie a
few microseconds ahead of the clock.

A session that raises has a bug: the pump stops, and `failed` carries the error
to whoever awaits it. A session that wants to run again at once, over and over,
is not allowed to starve the loop: each turn is bounded and yields, timeouts
that leave the deadline in the past are counted as overdue, and from a point on
they are spaced out.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Generic, Literal, Protocol, TypeVar

from streamd.clock import Clock
from streamd.datagram import Datagram, Transmit
from streamd.io.net import Endpoint
from streamd.io.timer import DeadlineTimer, OnDeadline, Timer

E = TypeVar("E")
E_co = TypeVar("E_co", covariant=True)
TimerFactory = Callable[[asyncio.AbstractEventLoop, Clock, OnDeadline], Timer]

MAX_SENDS_PER_ROUND = 1024
"""Runs one round may send before the loop gets its turn: far more than a key frame."""
MAX_EVENTS_PER_ROUND = 1024
MAX_ROUNDS = 64
"""Rounds of one turn: how often events may call `wake`."""
OVERDUE_PATIENCE = 64
"""Turns in a row a session may ask for the past before they are spaced out."""
OVERDUE_SPACING = 0.001
"""Seconds between turns of a session that always asks for the past."""


class Session(Protocol[E_co]):
    """The grammar of a session with one endpoint; poll transmits until None, then events."""

    def handle_datagrams(self, batch: list[Datagram], *, now: float) -> None:
        """Received runs, in arrival order."""

    def handle_timeout(self, *, now: float) -> None:
        """`next_timeout` is due."""

    def poll_transmit(self, *, now: float) -> Transmit | None:
        """The next run to send now."""

    def poll_event(self) -> E_co | None:
        """The next thing the application should know."""

    def next_timeout(self) -> float | None:
        """When to call `handle_timeout` (s of the session clock)."""

    def close(self, *, now: float) -> None:
        """Say goodbye: what that takes comes out of `poll_transmit`."""


class Relay(Protocol):
    """The grammar of a machine between two endpoints."""

    def handle_near(self, batch: list[Datagram], *, now: float) -> None:
        """Runs received at the near endpoint, in arrival order."""

    def handle_far(self, batch: list[Datagram], *, now: float) -> None:
        """Runs received at the far endpoint, in arrival order."""

    def handle_timeout(self, *, now: float) -> None:
        """`next_timeout` is due."""

    def poll_transmit(self, *, now: float) -> tuple[Literal["near", "far"], Transmit] | None:
        """The next run to send now, and the endpoint it leaves by."""

    def next_timeout(self) -> float | None:
        """When to call `handle_timeout` (s of the session clock)."""


class PumpStats:
    """Plain counters of one pump."""

    __slots__ = ("cut_turns", "overdue", "turns")

    def __init__(self) -> None:
        self.turns = 0
        self.overdue = 0
        """Timeouts after which the machine's next deadline still was not in the future."""
        self.cut_turns = 0
        """Turns ended although the machine had more to do, to let the loop have its own."""


class _Turner:
    """What both pumps have in common: turns, the deadline, failure, the livelock guard."""

    def __init__(
        self,
        machine: Session[E] | Relay,
        endpoints: tuple[Endpoint, ...],
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        timer: TimerFactory,
    ) -> None:
        self.stats = PumpStats()
        self.failed: asyncio.Future[None] = loop.create_future()
        """Done when the pump is: with None by `stop`, with the machine's own exception if it
        raised. Await it: a daemon must not outlive its pump."""
        self._loop = loop
        self._clock_now = clock.now
        self._endpoints = endpoints
        self._timer = timer(loop, clock, self._on_deadline)
        self._handle_timeout = machine.handle_timeout
        self._next_timeout = machine.next_timeout
        self._arm = self._timer.arm
        self._now = float("-inf")
        self._ended = False
        self._turning = False
        self._again = False
        self._overdue_run = 0

    def wake(self) -> None:
        """The application called into the session: send what came of it, re-arm."""
        self._feed(None, [])

    def stop(self) -> None:
        """End: nothing is sent or received any more, the endpoints are closed. Safe to repeat."""
        self._release()
        if not self.failed.done():
            self.failed.set_result(None)

    def _round(self, now: float) -> bool:
        """Move everything the machine has to give; False if some had to be left."""
        raise NotImplementedError

    def _feed(self, handle: Callable[..., None] | None, batch: list[Datagram]) -> None:
        if self._ended:
            return
        try:
            now = self._advance(self._clock_now())
            if handle is not None:
                handle(batch, now=now)
            self._turn(now, False)
        except Exception as error:  # the loop is our caller: only `failed` can tell anybody
            self._fail(error)

    def _on_deadline(self, due: float) -> None:
        if self._ended:
            return
        try:
            now = self._advance(due)
            self._handle_timeout(now=now)
            self._turn(now, True)
        except Exception as error:  # as in _feed
            self._fail(error)

    def _advance(self, now: float) -> float:
        if now > self._now:
            self._now = now
            return now
        return self._now

    def _turn(self, now: float, timed: bool) -> None:
        if self._turning:
            self._again = True
            return
        self._turning = True
        try:
            self.stats.turns += 1
            self._again = False
            whole = self._round(now)
            if self._again or not whole:
                self._more_rounds(whole)
        finally:
            self._turning = False
        if self._ended:
            return
        deadline = self._next_timeout()
        if deadline is None or deadline > self._now:
            self._overdue_run = 0
        elif timed:
            deadline = self._overdue(deadline)
        self._arm(deadline)

    def _more_rounds(self, whole: bool) -> None:
        for _ in range(1, MAX_ROUNDS):
            if self._ended or not whole:
                break
            self._again = False
            whole = self._round(self._advance(self._clock_now()))
            if whole and not self._again:
                return
        if self._ended:
            return
        self.stats.cut_turns += 1
        self._loop.call_soon(self.wake)

    def _overdue(self, deadline: float) -> float:
        """The deadline of a machine that had its timeout and wants another at once."""
        self.stats.overdue += 1
        self._overdue_run += 1
        if self._overdue_run > OVERDUE_PATIENCE:
            return self._now + OVERDUE_SPACING
        return deadline

    def _fail(self, error: Exception) -> None:
        self._release()
        if not self.failed.done():
            self.failed.set_exception(error)

    def _release(self) -> None:
        self._ended = True
        self._timer.close()
        for endpoint in self._endpoints:
            endpoint.close()


class Pump(_Turner, Generic[E]):
    """One session over one endpoint; the pump closes the endpoint when it ends."""

    def __init__(
        self,
        session: Session[E],
        endpoint: Endpoint,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        on_event: Callable[[E], None],
        *,
        timer: TimerFactory = DeadlineTimer,
    ) -> None:
        """`on_event` may call into the session, and then `wake`."""
        super().__init__(session, (endpoint,), clock, loop, timer)
        self._endpoint = endpoint
        self._session = session
        self._on_event = on_event
        self._poll_transmit = session.poll_transmit
        self._poll_event = session.poll_event
        self._send = endpoint.send
        self._handle_datagrams = session.handle_datagrams

    def start(self) -> None:
        """Begin to receive, and give the session its first turn."""
        self._endpoint.start(partial(self._feed, self._handle_datagrams))
        self.wake()

    def close(self) -> None:
        """Ask the session to end and send its goodbye; `stop` follows when it has drained."""
        self._feed(self._close_session, [])

    def _close_session(self, batch: list[Datagram], *, now: float) -> None:
        self._session.close(now=now)

    def _round(self, now: float) -> bool:
        whole = True
        transmit = self._poll_transmit(now=now)
        if transmit is not None:
            whole = self._send_all(transmit, now)
        event = self._poll_event()
        if event is not None:
            whole = self._tell_all(event) and whole
        return whole

    def _send_all(self, first: Transmit, now: float) -> bool:
        poll, send = self._poll_transmit, self._send
        send(first)
        for _ in range(MAX_SENDS_PER_ROUND - 1):
            transmit = poll(now=now)
            if transmit is None:
                return True
            send(transmit)
        return False

    def _tell_all(self, first: E) -> bool:
        poll, tell = self._poll_event, self._on_event
        tell(first)
        for _ in range(MAX_EVENTS_PER_ROUND - 1):
            event = poll()
            if event is None:
                return True
            tell(event)
        return False


class RelayPump(_Turner):
    """A relay between two endpoints; the pump closes both when it ends."""

    def __init__(
        self,
        relay: Relay,
        near: Endpoint,
        far: Endpoint,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        *,
        timer: TimerFactory = DeadlineTimer,
    ) -> None:
        super().__init__(relay, (near, far), clock, loop, timer)
        self._relay = relay
        self._near, self._far = near, far
        self._poll_transmit = relay.poll_transmit

    def start(self) -> None:
        """Begin to receive on both sides."""
        self._near.start(partial(self._feed, self._relay.handle_near))
        self._far.start(partial(self._feed, self._relay.handle_far))
        self.wake()

    def _on_deadline(self, due: float) -> None:
        # What arrived before the deadline has to enter the relay before the deadline acts.
        self._turning = True
        try:
            self._near.poll()
            self._far.poll()
        finally:
            self._turning = False
        super()._on_deadline(due)

    def _round(self, now: float) -> bool:
        poll = self._poll_transmit
        send_near, send_far = self._near.send, self._far.send
        for _ in range(MAX_SENDS_PER_ROUND):
            found = poll(now=now)
            if found is None:
                return True
            side, transmit = found
            if side == "near":
                send_near(transmit)
            else:
                send_far(transmit)
        return False
