"""Who the peer is, when it may move.

A daemon is told an address, or takes the first one that talks to it. A peer may
restart on another port or come back with another address; a stranger must not
take a running session over. The rule: the present peer keeps its place until it
has been silent for `hold` seconds, then the next source that speaks takes it. For
a configured peer that was never heard the silence begins with the first
stranger, so that one stray datagram cannot turn a stream away before it began.

Core: standard library only; time is given.
"""

import math

from streamd.datagram import Address

HOLD = 1.0
"""Silence after which another source is believed (s): recovery is due within two."""
_MAPPED = "::ffff:"


class PeerLatch:
    """The one address a session talks to."""

    __slots__ = ("_heard_at", "_hold", "address", "changes")

    def __init__(self, address: Address | None, *, hold: float = HOLD) -> None:
        """`address` None takes the first source. `hold` infinite never lets another one in."""
        self._hold = hold
        self._heard_at: float | None = None
        self.address = address
        """Where to send; None until somebody spoke."""
        self.changes = 0
        """How often another source took over."""

    def accept(self, address: Address, *, now: float) -> bool:
        """Whether a datagram from `address` at `now` (s) is the peer's; may make it the peer.

        False means foreign: count it and do not answer.
        """
        if address == self.address:
            self._heard_at = now
            return True
        if not self.admits(address, now=now):
            return False
        if self.address is None:
            self.address = address
        elif not same_endpoint(address, self.address):
            self.address = address
            self.changes += 1
        self._heard_at = now
        return True

    def admits(self, address: Address, *, now: float) -> bool:
        """What `accept` would answer, without taking anybody in."""
        present = self.address
        if present is None or address == present or same_endpoint(address, present):
            return True
        if self._heard_at is None:
            self._heard_at = now
        return now - self._heard_at >= self._hold

    def release(self) -> None:
        """The peer said goodbye: the next source that speaks takes its place at once."""
        if self._hold != math.inf and self.address is not None:
            self._heard_at = -math.inf

    def set(self, address: Address) -> None:
        """The configured name resolved to `address`; what was heard before counts no more."""
        if self.address is None or not same_endpoint(address, self.address):
            self._heard_at = None
        self.address = address

    def alive(self, *, now: float) -> bool:
        """Whether the peer was heard within the hold time."""
        return self._heard_at is not None and now - self._heard_at < self._hold


def same_endpoint(a: Address, b: Address) -> bool:
    """Whether two socket addresses name one endpoint, however the sockets spell them.

    An IPv4 address equals its IPv4-mapped IPv6 form. Scopes differ only if both are given.
    """
    if a[1] != b[1] or _plain(a[0]) != _plain(b[0]):
        return False
    scope_a, scope_b = a[3:4], b[3:4]
    return not (scope_a and scope_b) or scope_a == scope_b or not (scope_a[0] and scope_b[0])


def _plain(host: str) -> str:
    host = host.partition("%")[0].lower()
    return host[len(_MAPPED) :] if host.startswith(_MAPPED) and "." in host else host


def ip_udp_bytes(address: Address) -> int:
    """Bytes of IP and UDP header of a datagram from this address: 28 on IPv4, mapped or not; 48."""
    return 48 if ":" in _plain(address[0]) else 28
