"""Whom we talk to: one address, which a new source may take over only when the old is silent.

So a stray or forged datagram can not turn a live stream away, and a peer that
restarts on another port, or moves, is followed within the hold time.
"""

from streamd.datagram import Address

HOLD = 1.0
"""Silence after which another source is believed (s): recovery is due within two."""


class PeerLatch:
    """The present peer and when it was last heard."""

    __slots__ = ("_heard_at", "_hold", "address")

    def __init__(self, address: Address | None, *, hold: float = HOLD) -> None:
        """`address` as configured; None: the first source that is accepted."""
        self.address = address
        self._hold = hold
        self._heard_at: float | None = None

    def accept(self, address: Address, *, now: float) -> bool:
        """Whether input from `address` is the peer's; if so the peer was heard.

        The configured address needs not be heard first: until then any source
        may take its place, because a name can resolve to another address than the
        one the peer sends from.
        """
        if address == self.address:
            self._heard_at = now
            return True
        if self._heard_at is not None and now - self._heard_at < self._hold:
            return False
        self.address = address
        self._heard_at = now
        return True

    def set(self, address: Address) -> None:
        """The peer's name resolves to this address now. A live peer is not given up for it."""
        if address != self.address:
            self.address = address
            self._heard_at = None

    def alive(self, *, now: float) -> bool:
        """Heard within the hold time."""
        return self._heard_at is not None and now - self._heard_at < self._hold
