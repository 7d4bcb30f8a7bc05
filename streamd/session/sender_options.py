"""What a sender session must be told."""

from dataclasses import dataclass, field

from streamd.cc.api import Limits
from streamd.cc.pacer import QUANTUM
from streamd.datagram import Address
from streamd.qoe.tool import TICK
from streamd.session.keyframes import KeyframeOptions
from streamd.session.packetize import StreamIdentity
from streamd.session.repair import DEADLINE as REPAIR_DEADLINE
from streamd.session.rtcp_ports import Muxing
from streamd.session.rtx import RtxIdentity


@dataclass(frozen=True, slots=True)
class SenderOptions:
    """Everything the session must be told; the daemon fills it from the configuration."""

    identity: StreamIdentity
    limits: Limits
    peer: Address | None
    cname: str = "streamd"
    rtcp_mux: Muxing = "yes"
    """Whether RTCP also goes to the port above the media port."""
    bwtool: bool = False
    """Speak as the public BW tool does: bare feedback with its counting, no RTCP of our own."""
    minus_one: bool = False
    """`num_reports` of feedback holds the number of blocks minus 1, as the BW tool writes it."""
    max_payload: int = 1200
    """Upper bound on RTP payload bytes per packet, whatever the controller recommends."""
    retransmissions: int = 3
    rtx: RtxIdentity | None = None
    """The stream copies are sent in (RFC 4588); None: in that of the originals."""
    repair_deadline: float = REPAIR_DEADLINE
    """Nothing is sent again that would arrive longer than this after its frame was made (s)."""
    repair_frames: bool = False
    """Answer a loss by a frame predicted from what the receiver is known to have; only with an
    encoder that keeps long-term references."""
    keyframes: KeyframeOptions = field(default_factory=KeyframeOptions)
    breaker: bool = True
    """False for a rate fixed by the user."""
    tool_tick: float = TICK
    """Between two steps of the BW tool's average of the queue delay (s)."""
    max_queue_age: float | None = None
    """While the oldest packet to send is older, pictures are skipped before encoding (s)."""
    quantum: float = QUANTUM
    """Pacing quantum (s)."""
    drain_seconds: float = 2.0
