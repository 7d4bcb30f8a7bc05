"""Where a sender's RTCP goes: to the media port, or also to the port above it.

Players that were given a session description without `a=rtcp-mux` listen for RTCP one
port above the media (RFC 3550 section 11). Both ports get it then, as whoever reads only
the media port is not harmed by it, until the peer shows by RTCP of its own that it
multiplexes (RFC 5761).
"""

from typing import Literal

from streamd.datagram import Address, Transmit
from streamd.ecn import NOT_ECT

Muxing = Literal["auto", "yes", "no"]
"""`yes`: the media port alone; `no`: both; `auto`: both until the peer multiplexes."""


class RtcpPorts:
    """Of one sender session."""

    __slots__ = ("_both", "_mux", "_second")

    def __init__(self, mux: Muxing) -> None:
        self._mux = mux
        self._both = mux != "yes"
        self._second: tuple[bytes, Address] | None = None

    def on_muxed(self) -> None:
        """RTCP of the peer came to the media port."""
        self._both = self._mux == "no"

    def send(self, data: bytes, peer: Address) -> Transmit:
        """To the media port now; `poll` has the rest."""
        port = peer[1] + 1
        if self._both and port <= 0xFFFF:
            self._second = data, (peer[0], port, *peer[2:])
        return Transmit([data], peer, NOT_ECT)

    def poll(self) -> Transmit | None:
        """The same for the port above; None: there is nothing."""
        if self._second is None:
            return None
        (data, address), self._second = self._second, None
        return Transmit([data], address, NOT_ECT)
