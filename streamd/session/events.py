"""What a session tells its shell; drained by `poll_event`."""

from dataclasses import dataclass

from streamd.datagram import Address


@dataclass(frozen=True, slots=True)
class PeerChanged:
    """Datagrams now go to this address."""

    address: Address


@dataclass(frozen=True, slots=True)
class PeerSilent:
    """No feedback (sender) or no media (receiver) for `seconds`."""

    seconds: float


@dataclass(frozen=True, slots=True)
class PeerHeard:
    """The peer is back, or there for the first time."""


@dataclass(frozen=True, slots=True)
class RateLimited:
    """The circuit breaker bounds the media rate because feedback is missing; None: lifted."""

    limit_bps: float | None


@dataclass(frozen=True, slots=True)
class StreamStarted:
    """The receiver took up a stream."""

    ssrc: int
    payload_type: int


@dataclass(frozen=True, slots=True)
class FrameReady:
    """A complete frame, next in decoding order.

    `captured_unix`: capture time by the sender's wall clock (s), None before a sender report.
    """

    frame_no: int
    data: bytes
    keyframe: bool
    completed_at: float
    captured_unix: float | None
    rtp_time: int = 0
    """Media time on the wire, 32 bits."""


@dataclass(frozen=True, slots=True)
class PeerClosed:
    """The peer said BYE."""


@dataclass(frozen=True, slots=True)
class SessionClosed:
    """Everything was sent after `close`; the endpoint may go."""


Event = (
    PeerChanged
    | PeerSilent
    | PeerHeard
    | RateLimited
    | StreamStarted
    | FrameReady
    | PeerClosed
    | SessionClosed
)
