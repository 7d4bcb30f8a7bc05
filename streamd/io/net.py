"""What the shell asks of a network: endpoints that carry runs of datagrams with their ECN bits.

The pump, the daemons and tests know these protocols only; `io.udp` is the real
implementation, a test brings its own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from streamd.datagram import Address, Datagram, Transmit

OnDatagrams = Callable[[list[Datagram]], None]


class EndpointStats:
    """Counters of one endpoint since it was opened: plain ints, read at scrape time.

    "Call" is one system call that carried a run; bytes are UDP payload.
    """

    __slots__ = (
        "backlog_drops",
        "bytes_received",
        "bytes_sent",
        "control_truncated",
        "datagrams_received",
        "datagrams_sent",
        "ecn_missing",
        "gso_fallbacks",
        "icmp_other",
        "icmp_refused",
        "icmp_too_big",
        "icmp_unreachable",
        "kernel_drops",
        "pending_errors",
        "receive_calls",
        "receive_errors",
        "send_calls",
        "send_dropped",
        "send_errors",
        "send_no_buffers",
        "send_too_big",
        "send_would_block",
        "truncated",
        "wakeups",
    )

    def __init__(self) -> None:
        self.datagrams_sent = 0
        self.bytes_sent = 0
        self.send_calls = 0
        self.datagrams_received = 0
        self.bytes_received = 0
        self.receive_calls = 0
        self.wakeups = 0
        """Times the loop called because the socket was readable."""
        self.send_would_block = 0
        """EAGAIN: the send buffer was full; the run waits in the backlog."""
        self.send_no_buffers = 0
        """ENOBUFS: the local queue or driver threw the run away."""
        self.send_too_big = 0
        """EMSGSIZE for a single datagram."""
        self.send_errors = 0
        """Any other error that cost the run: no route, not permitted."""
        self.send_dropped = 0
        """Datagrams that never left, for all the reasons above and a full backlog."""
        self.backlog_drops = 0
        """Datagrams of those that were the oldest of a full backlog."""
        self.gso_fallbacks = 0
        """Runs the kernel refused as one call, sent one by one."""
        self.pending_errors = 0
        """Calls that reported an earlier datagram's ICMP error in place of their own work."""
        self.icmp_refused = 0
        self.icmp_unreachable = 0
        self.icmp_too_big = 0
        self.icmp_other = 0
        self.receive_errors = 0
        """Reads that failed for any other reason."""
        self.truncated = 0
        """Reads cut short (MSG_TRUNC): thrown away, as their end is unknown."""
        self.control_truncated = 0
        """Reads whose control data was cut short (MSG_CTRUNC)."""
        self.ecn_missing = 0
        """Reads without a TOS or traffic class item: their codepoint is unknown."""
        self.kernel_drops = 0
        """Lost to a full receive buffer ahead of us. With GRO, a lost batch counts once."""

    def as_dict(self) -> dict[str, int]:
        """Every counter by name."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class UdpOptions:
    """How to open a UDP endpoint."""

    receive_buffer: int = 4 << 20
    """Bytes to ask for; 0 leaves the system's default. A key-frame burst overflows the default."""
    send_buffer: int = 4 << 20
    """As `receive_buffer`, for sending."""
    gro: bool | None = None
    """Batched reads. None: where the kernel cannot merge datagrams of different ECN."""
    gso: bool = True
    """Batched sends, where the kernel has them."""
    timestamps: bool = True
    """Stamp arrival in the kernel; else when read."""
    reads_per_wakeup: int = 64
    """Reads before timers get their turn."""
    send_backlog: int = 256
    """Datagrams that may wait for a full send buffer; beyond it the oldest is dropped."""


class Endpoint(Protocol):
    """One UDP socket, or what stands in for one."""

    @property
    def local_address(self) -> Address:
        """Where it is bound."""

    @property
    def stats(self) -> EndpointStats:
        """Counters, brought up to date by reading them here."""

    def start(self, on_datagrams: OnDatagrams) -> None:
        """Begin to receive: one call per wake-up with everything read, in arrival order."""

    def poll(self) -> None:
        """Deliver at once what has arrived already, rather than when the loop comes to it."""

    def send(self, transmit: Transmit) -> None:
        """Send a run. Never raises for what the network or the kernel does: that is counted."""

    def to_peer(self, address: Address) -> Address:
        """`address` in the form this endpoint sends to and reports received datagrams from.

        ConfigError if an endpoint of this family cannot reach it.
        """

    def close(self) -> None:
        """Stop and release; safe to call twice. Nothing is delivered afterwards."""


class Network(Protocol):
    """Where endpoints come from."""

    def open_udp(self, local: Address, *, options: UdpOptions = ...) -> Endpoint:
        """Bind to a numeric address; host "" means every address of both families.

        StartupError naming the address where it cannot be had.
        """
