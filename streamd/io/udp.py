"""The real network: UDP sockets that show and set ECN, in batches, on an asyncio loop.

asyncio's own datagram transport hides control messages, so an endpoint owns
its socket: `io.udp_receive` reads when it is readable, `io.udp_send` sends at once.
"""

import asyncio
import socket
import time
from collections.abc import Callable

from streamd.clock import Clock
from streamd.datagram import Address, Transmit
from streamd.io import sockopts
from streamd.io.address import for_family
from streamd.io.cmsg import StampClock
from streamd.io.net import EndpointStats, OnDatagrams, UdpOptions
from streamd.io.udp_receive import UdpReceiver
from streamd.io.udp_send import UdpSender

_DEFAULTS = UdpOptions()


class UdpEndpoint:
    """One bound socket; implements `Endpoint`. Takes ownership of `sock`."""

    __slots__ = (
        "_drops_readable",
        "_receiver",
        "_sender",
        "_sock",
        "_stats",
        "errors_visible",
        "family",
        "gro",
        "gso",
        "local_address",
        "receive_buffer",
        "send",
        "send_buffer",
        "stamped",
    )

    def __init__(
        self,
        sock: socket.socket,
        *,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        options: UdpOptions = _DEFAULTS,
        realtime: Callable[[], float] = time.time,  # noqa: TID251 - the clock of kernel stamps
    ) -> None:
        self._sock = sock
        self._stats = EndpointStats()
        self.family: int = sock.family
        """AF_INET, or AF_INET6 for a dual-stack socket."""
        self.local_address: Address = sock.getsockname()
        sockopts.ask_ecn(sock)
        self.errors_visible = sockopts.ask_errors(sock)
        """Whether ICMP errors and ENOBUFS show on this system."""
        self.receive_buffer = sockopts.ask_buffer(
            sock, socket.SO_RCVBUF, sockopts.SO_RCVBUFFORCE, options.receive_buffer
        )
        """Bytes granted, in the unit of `UdpOptions.receive_buffer`."""
        self.send_buffer = sockopts.ask_buffer(
            sock, socket.SO_SNDBUF, sockopts.SO_SNDBUFFORCE, options.send_buffer
        )
        self.gro = sockopts.ask_gro(sock, options.gro)
        self.gso = options.gso and sockopts.has_gso(sock)
        self.stamped = options.timestamps and sockopts.ask_timestamps(sock)
        """Whether arrival is stamped by the kernel."""
        self._drops_readable = sockopts.ask_drop_counts(sock)
        self._sender = UdpSender(
            sock, loop=loop, stats=self._stats, gso=self.gso, backlog_limit=options.send_backlog
        )
        self._receiver = UdpReceiver(
            sock,
            loop=loop,
            clock=clock,
            stats=self._stats,
            stamps=StampClock(clock, realtime) if self.stamped else None,
            read_limit=options.reads_per_wakeup,
        )
        self.send: Callable[[Transmit], None] = self._sender.send
        """See `Endpoint.send`; bound directly to save a call per run."""

    @property
    def stats(self) -> EndpointStats:
        """Counters; reading them here fetches the kernel's drop count."""
        if self._drops_readable:
            drops = sockopts.read_drops(self._sock)
            if drops is not None:
                self._receiver.count_drops(drops)
        return self._stats

    @property
    def backlog(self) -> int:
        """Datagrams waiting for room in the send buffer."""
        return self._sender.waiting

    def to_peer(self, address: Address) -> Address:
        """See `Endpoint.to_peer`."""
        return for_family(address, self.family)

    def start(self, on_datagrams: OnDatagrams) -> None:
        """See `Endpoint.start`."""
        self._receiver.start(on_datagrams)

    def poll(self) -> None:
        """See `Endpoint.poll`."""
        self._receiver.poll()

    def close(self) -> None:
        """See `Endpoint.close`. What waits in the backlog gets one last try."""
        if self._sock.fileno() < 0:
            return
        self._sender.close()
        self._receiver.close()
        _ = self.stats
        self._drops_readable = False
        self._sock.close()


class UdpNetwork:
    """Opens real sockets on one loop, with one session clock; implements `Network`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._loop = loop
        self._clock = clock

    def open_udp(self, local: Address, *, options: UdpOptions = _DEFAULTS) -> UdpEndpoint:
        """See `Network.open_udp`."""
        sock = sockopts.open_socket(local)
        return UdpEndpoint(sock, loop=self._loop, clock=self._clock, options=options)
