"""Stand-ins for what the socket shell meets: sockets that fail on order, a loop, a clock."""

import asyncio
import errno
import socket
from collections.abc import Callable
from typing import Any, cast

from streamd.datagram import Address, Datagram, Transmit
from streamd.io.cmsg import Item
from streamd.io.net import EndpointStats, OnDatagrams
from streamd.io.timer import OnDeadline


class ManualClock:
    """Session time as the test says."""

    def __init__(self, start: float = 100.0) -> None:
        self.time = start

    def now(self) -> float:
        return self.time

    def unix(self) -> float:
        return self.time + 1_000_000.0


class ScriptedSocket:
    """A UDP socket whose calls fail as scripted: an errno per call, 0 = goes through."""

    def __init__(self, family: int = socket.AF_INET) -> None:
        self.family = family
        self.failures: list[int] = []
        self.sent: list[tuple[list[bytes], list[Item], Address]] = []
        self.calls = 0

    def fileno(self) -> int:
        return 77

    def sendmsg(self, buffers: list[bytes], items: list[Item], flags: int, to: Address) -> int:
        assert flags == 0
        self.calls += 1
        code = self.failures.pop(0) if self.failures else 0
        if code:
            raise OSError(code, "scripted")
        self.sent.append((list(buffers), items, to))
        return sum(map(len, buffers))

    def recvmsg(self, *_: Any) -> Any:
        raise BlockingIOError(errno.EAGAIN, "nothing")

    def as_socket(self) -> socket.socket:
        return cast(socket.socket, self)


class FakeHandle:
    """What `call_later` gave."""

    def __init__(self, delay: float, callback: Callable[[], None]) -> None:
        self.delay = delay
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class FakeLoop:
    """Remembers what a loop was asked for; the test calls back."""

    def __init__(self) -> None:
        self.writers: dict[int, Callable[[], None]] = {}
        self.readers: dict[int, Callable[[], None]] = {}
        self.soon: list[Callable[[], None]] = []
        self.later: list[FakeHandle] = []

    def add_writer(self, fd: int, callback: Callable[[], None]) -> None:
        self.writers[fd] = callback

    def remove_writer(self, fd: int) -> bool:
        return self.writers.pop(fd, None) is not None

    def add_reader(self, fd: int, callback: Callable[[], None]) -> None:
        self.readers[fd] = callback

    def remove_reader(self, fd: int) -> bool:
        return self.readers.pop(fd, None) is not None

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.soon.append(callback)

    def call_later(self, delay: float, callback: Callable[[], None]) -> "FakeHandle":
        handle = FakeHandle(delay, callback)
        self.later.append(handle)
        return handle

    def create_future(self) -> asyncio.Future[None]:
        return asyncio.get_running_loop().create_future()

    def turn(self) -> None:
        """Run what was asked for soon, once."""
        soon, self.soon = self.soon, []
        for callback in soon:
            callback()

    def as_loop(self) -> asyncio.AbstractEventLoop:
        return cast(asyncio.AbstractEventLoop, self)


class FakeEndpoint:
    """An endpoint that records what is sent; the test delivers."""

    def __init__(self, local: Address = ("127.0.0.1", 1)) -> None:
        self.local_address = local
        self.stats = EndpointStats()
        self.sent: list[Transmit] = []
        self.closed = False
        self.queued: list[list[Datagram]] = []
        self._deliver: OnDatagrams | None = None

    def start(self, on_datagrams: OnDatagrams) -> None:
        self._deliver = on_datagrams

    def poll(self) -> None:
        queued, self.queued = self.queued, []
        for batch in queued:
            self.deliver(batch)

    def send(self, transmit: Transmit) -> None:
        self.sent.append(transmit)

    def to_peer(self, address: Address) -> Address:
        return address

    def close(self) -> None:
        self.closed = True

    def deliver(self, batch: list[Datagram]) -> None:
        assert self._deliver is not None, "not started"
        self._deliver(batch)


class ManualTimer:
    """A timer the test fires."""

    def __init__(self, callback: OnDeadline) -> None:
        self.armed: float | None = None
        self.closed = False
        self._callback = callback

    def arm(self, deadline: float | None) -> None:
        self.armed = deadline

    def close(self) -> None:
        self.closed = True

    def fire(self, clock: ManualClock) -> None:
        """Let the armed deadline come."""
        assert self.armed is not None, "not armed"
        deadline, self.armed = self.armed, None
        clock.time = max(clock.time, deadline)
        self._callback(clock.time)
