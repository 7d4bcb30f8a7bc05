"""Settings of a stream, whoever sends it: a sender daemon or a flow of a scenario."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field, model_validator

from streamd.cc.api import Limits
from streamd.config.fields import (
    COMMA_LIST,
    BitsPerSecond,
    Bytes,
    Form,
    Ratio,
    Seconds,
    Size2D,
)
from streamd.config.units import format_rate
from streamd.datagram import Address
from streamd.qoe.tool import TICK
from streamd.session.keyframes import Cause, KeyframeOptions
from streamd.session.packetize import StreamIdentity
from streamd.session.rtcp_ports import Muxing
from streamd.session.rtx import PAYLOAD_TYPE_STEP, RtxIdentity
from streamd.session.sender_options import SenderOptions

DEFAULT_START_BPS = 1_000_000.0
BLIND_PERIOD = 2.0
"""Between key frames of a fixed rate (s): a player that joins late waits no longer."""


class StreamSettings(BaseModel):
    """Rates, packets, key frames and repair of one stream."""

    fps: float = Field(30.0, gt=0, le=1000, description="Frames per second.")
    size: Size2D | None = Field(
        None, description="Picture size; without it the source's own, 352x288 for built-in clips."
    )
    codec: Literal["vp9", "vp8", "h264"] = Field("vp9", description="Video codec.")
    controller: str = Field("scream", description="Congestion controller by name.")
    ecn: Literal["notect", "ect0", "ect1"] | None = Field(
        None, description="Codepoint to send with; without it the first the controller honours."
    )
    rate: BitsPerSecond | None = Field(
        None, description="Fixed media rate instead of a congestion controller."
    )
    min_rate: BitsPerSecond = Field(150_000.0, description="Lowest media rate.")
    start_rate: BitsPerSecond | None = Field(
        None, description="Media rate at the start; without it 1Mbps, inside min and max rate."
    )
    max_rate: BitsPerSecond = Field(100_000_000.0, description="Highest media rate.")
    mss: Bytes = Field(1200, ge=100, le=8900, description="Largest RTP payload per packet.")
    pacing_quantum: Seconds = Field(
        0.0005, ge=0.0001, le=0.02, description="Packets due within this time leave together."
    )
    adapt: bool = Field(
        True,
        description="Where even the coarsest pictures do not fit the rate, encode half of them,"
        " then smaller ones (VP9); VP8 only the first, H.264 neither.",
    )
    max_queue_age: Seconds | Literal["off"] = Field(
        0.1,
        description="While the oldest packet to send has waited longer, pictures are skipped before"
        " encoding; off leaves it to the controller to throw packets away.",
    )
    retransmissions: bool = Field(
        True, description="Send lost packets again, from the front of the queue."
    )
    max_retransmissions: int = Field(
        3, ge=0, le=16, description="How often one packet is sent again at most."
    )
    retransmission_format: Literal["plain", "rtx"] = Field(
        "plain",
        description="Copies as the BW tool's video mode sends them, with their old number, or as"
        " a stream of their own (RFC 4588, payload type + 10).",
    )
    repair_deadline: Seconds = Field(
        1.0, gt=0, description="Nothing is sent again that would arrive later than this."
    )
    repair_frames: bool = Field(
        True,
        description="Answer a loss by a frame predicted from one the receiver has acknowledged,"
        " where the codec can, before a key frame is spent.",
    )
    keyframe_on: Annotated[tuple[Cause, ...], COMMA_LIST, Form("target,loss,unacked")] = Field(
        ("target", "loss", "unacked"),
        description="What asks for a key frame: a negative target, a loss epoch, a packet"
        " unacknowledged for 1 s. A receiver can always ask.",
    )
    keyframe_interval: Seconds = Field(
        0.1, description="Least time between two key frames that were asked for."
    )
    keyframe_limit: int = Field(
        2, ge=1, le=1000, description="Most key frames per second, in the long run."
    )
    keyframe_share: Ratio = Field(
        0.25, gt=0, description="Part of the rate that key frames may take for long."
    )
    keyframe_period: Seconds | None = Field(
        None,
        gt=0,
        description="Also a key frame every so often; without it every 2 s with a fixed `rate`, as"
        " nobody may be there to ask for one, else only on request.",
    )
    keyframe_factor: float = Field(
        1.0, ge=1, le=100, description="Synthetic source: size of a key frame over that of others."
    )
    size_variation: Ratio = Field(
        0.0, description="Synthetic source: standard deviation of frame sizes over their mean."
    )

    @model_validator(mode="after")
    def _rates_in_order(self) -> Self:
        if self.min_rate > self.max_rate:
            raise ValueError(
                f"min_rate ({format_rate(self.min_rate)}) is above"
                f" max_rate ({format_rate(self.max_rate)})"
            )
        start = self.start_rate
        if start is not None and not self.min_rate <= start <= self.max_rate:
            raise ValueError(
                f"start_rate ({format_rate(start)}) is outside min_rate"
                f" ({format_rate(self.min_rate)}) to max_rate ({format_rate(self.max_rate)})"
            )
        return self

    def limits(self) -> Limits:
        """Bounds of the stream's media rate."""
        start = self.start_rate or min(max(DEFAULT_START_BPS, self.min_rate), self.max_rate)
        return Limits(self.min_rate, start, self.max_rate)

    def sender_options(
        self,
        identity: StreamIdentity,
        peer: Address | None,
        *,
        bwtool: bool = False,
        minus_one: bool = False,
        rtcp_mux: Muxing = "yes",
        long_term: bool = False,
        tool_tick: float = TICK,
        cname: str = "streamd",
    ) -> SenderOptions:
        """What the session is told, whoever drives it.

        `long_term`: the encoder keeps long-term references. `tool_tick` as in the options.
        """
        return SenderOptions(
            identity=identity,
            limits=self.limits(),
            peer=peer,
            cname=cname,
            bwtool=bwtool,
            rtcp_mux=rtcp_mux,
            minus_one=minus_one,
            max_payload=self.mss,
            retransmissions=self.max_retransmissions if self.retransmissions else 0,
            rtx=self._rtx(identity, bwtool=bwtool),
            repair_deadline=self.repair_deadline,
            repair_frames=self.repair_frames and long_term,
            keyframes=KeyframeOptions(
                causes=frozenset(self.keyframe_on),
                interval=self.keyframe_interval,
                per_second=self.keyframe_limit,
                share=self.keyframe_share,
                period=self.keyframe_period or (None if self.rate is None else BLIND_PERIOD),
            ),
            breaker=self.rate is None,
            tool_tick=tool_tick,
            max_queue_age=None if self.max_queue_age == "off" else self.max_queue_age,
            quantum=self.pacing_quantum,
        )

    def _rtx(self, identity: StreamIdentity, *, bwtool: bool) -> RtxIdentity | None:
        """The next SSRC is as random as the stream's own; the BW tool knows plain copies alone."""
        if bwtool or self.retransmission_format == "plain":
            return None
        return RtxIdentity(
            identity.ssrc + 1 & 0xFFFFFFFF,
            identity.payload_type + PAYLOAD_TYPE_STEP,
            identity.first_seq ^ 0x5555,
        )
