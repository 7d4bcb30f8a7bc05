"""The heap of (when, number): virtual time, and what happens at which moment.

Equal moments are served in the order in which they were asked for, so a run has
one order of events. Time jumps to the next moment; it never waits.

A machine whose deadline moves with every call does not clean up after itself:
its `Alarm` remembers the one moment it wants, and what stands in the heap for an
earlier wish is passed over.

A program does not run the moment it should: the kernel wakes it, and what it does
takes its time. `LateAgenda` is the schedule of such a machine.
"""

import heapq
import random
from collections.abc import Callable
from functools import partial
from math import inf
from typing import Protocol, TypeVar

from streamd.errors import LocalMisuse

T = TypeVar("T")

MAX_AT_ONCE = 1_000_000
"""Actions at one moment: a machine that keeps asking for the past must not hang the run."""

Action = Callable[[float], None]
"""Called with the present time (s)."""


class Agenda(Protocol):
    """Where a machine asks to be called."""

    def at(self, when: float, action: Action) -> None:
        """Have `action` called at `when` (s)."""

    def input(self, handle: Callable[[T, float], None]) -> Callable[[T, float], None]:
        """What takes input for `handle`, with its time."""


class Scheduler:
    """Virtual time and its queue."""

    def __init__(self, now: float) -> None:
        self.now = now
        """The present moment (s)."""
        self._heap: list[tuple[float, int, Action]] = []
        self._count = 0
        self.steps = 0
        """Actions taken."""

    def at(self, when: float, action: Action) -> None:
        """Have `action` called at `when` (s), at once if that is past."""
        self._count += 1
        heapq.heappush(self._heap, (when, self._count, action))

    def input(self, handle: Callable[[T, float], None]) -> Callable[[T, float], None]:
        """`handle` itself: it is called the moment its input comes."""
        return handle

    def stop(self) -> None:
        """Nothing more is to happen."""
        self._heap.clear()

    def run(self, until: float = inf) -> None:
        """Serve every moment up to and including `until` (s), as long as there are any.

        LocalMisuse when time does not get on.
        """
        heap, pop = self._heap, heapq.heappop
        steps = at_once = 0
        now = self.now
        while heap and heap[0][0] <= until:
            when, _, action = pop(heap)
            if when > now:
                self.now = now = when
                at_once = 0
            else:
                at_once += 1
                if at_once > MAX_AT_ONCE:
                    raise LocalMisuse(f"{at_once} actions at {now} s: {action!r} asks for the past")
            steps += 1
            action(now)
        self.steps += steps


class LateAgenda:
    """The agenda of a machine whose every turn comes late, by half to one and a half of `mean`."""

    def __init__(self, scheduler: Scheduler, mean: float, rng: random.Random) -> None:
        """`mean` in seconds."""
        self._scheduler = scheduler
        self._mean = mean
        self._rng = rng
        self._input_at = 0.0

    def at(self, when: float, action: Action) -> None:
        """Have `action` called a little after `when` (s)."""
        self._scheduler.at(when + self._lateness(), action)

    def input(self, handle: Callable[[T, float], None]) -> Callable[[T, float], None]:
        """What takes input for `handle`: later than it came, in the order in which it came."""
        scheduler = self._scheduler

        def take(value: T, now: float) -> None:
            self._input_at = max(self._input_at, now + self._lateness())
            scheduler.at(self._input_at, partial(handle, value))

        return take

    def _lateness(self) -> float:
        return self._mean * self._rng.uniform(0.5, 1.5)


class Alarm:
    """One moving deadline."""

    __slots__ = ("_action", "_armed", "_due", "_scheduler")

    def __init__(self, scheduler: Agenda, action: Action) -> None:
        self._scheduler = scheduler
        self._action = action
        self._due = inf
        self._armed = inf
        """The earliest moment in the heap that stands for this alarm."""

    def set(self, due: float | None) -> None:
        """Ring at `due` (s) and not before; None: not at all."""
        if due is None:
            self._due = inf
            return
        self._due = due
        if due < self._armed:
            self._armed = due
            self._scheduler.at(due, self._ring)

    def _ring(self, now: float) -> None:
        if now < self._armed:
            # An earlier wish was pushed before this one: another entry stands for it.
            return
        self._armed = inf
        if self._due <= now:
            self._due = inf
            self._action(now)
        elif self._due < inf:
            self.set(self._due)
