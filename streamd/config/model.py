"""What each daemon can be told: one frozen model per role, in base units, unknown keys refused.

A key `a_b` of a file is the variable `STREAMD_A_B` and the flag `--a-b`; a dot in a key
is a table in a file, two underscores in a variable and a dot in a flag. The sections
`[cc.<name>]` and `[queue.<name>]` belong to the plug-in of that name and are checked
against its own dataclass (`streamd.config.load`).
"""

import random
from collections.abc import Callable, Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from streamd.cc.api import ControllerSpec
from streamd.cc.fixed import FixedConfig
from streamd.config.fields import (
    Address,
    Bytes,
    DelaySeconds,
    FilePath,
    Form,
    LinkCapacity,
    OptionalPort,
    Ratio,
    Seconds,
)
from streamd.config.plugins import CONTROLLERS, QUEUES
from streamd.config.stream import StreamSettings
from streamd.config.units import Capacity, HostPort
from streamd.ecn import Ecn, from_name
from streamd.errors import ConfigError
from streamd.link.queue import QueueSpec
from streamd.qoe.tool import TICK, TICK_2026_03
from streamd.registry import Registry


class DaemonConfig(BaseModel):
    """What all daemons share."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        validate_by_name=True,
        validate_by_alias=True,
        allow_inf_nan=False,
    )
    plugin_section: ClassVar[str | None] = None
    """The first part of the keys that belong to plug-ins."""
    plugin_registry: ClassVar[Registry[Any] | None] = None

    role: str
    metrics_host: str = Field(
        "127.0.0.1", description="Address the HTTP endpoints (/metrics, /-/ready, ...) bind to."
    )
    metrics_port: OptionalPort = Field(
        None, description="TCP port of the HTTP endpoints; 0 takes a free one, off has none."
    )
    log_format: Literal["auto", "console", "json"] = Field(
        "auto", description="Form of the log; auto is console on a terminal and json elsewhere."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Least severe level that is logged."
    )
    report_interval: Seconds = Field(
        2.0, gt=0, description="How often a line with the present figures is logged."
    )
    duration: Seconds | None = Field(
        None, gt=0, description="Stop by itself after this time; without it, run until stopped."
    )
    shutdown_timeout: Seconds = Field(
        5.0, description="Longest time a drain may take after the first SIGTERM or SIGINT."
    )
    seed: int | None = Field(
        None, description="Seed of every random choice; without it one is drawn and logged."
    )
    json_file: FilePath | None = Field(
        None, alias="json", description="Write the final summary to this file."
    )
    receive_buffer: Bytes = Field(
        4 * 1024 * 1024,
        description="Socket receive buffer to ask for; what the system granted is exported.",
    )
    offload: bool = Field(
        True,
        description="Use UDP segmentation and receive offload (GSO, GRO) where the kernel has it.",
    )

    @field_validator("peer", check_fields=False)
    @classmethod
    def _peer_is_somebody(cls, peer: HostPort | None) -> HostPort | None:
        """Listening on every address or on any port makes sense; sending there does not."""
        if peer is not None and not (peer.host and peer.port):
            raise ValueError(f"a peer needs a host and a port above 0, not {str(peer)!r}")
        return peer

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_for_numbers(cls, value: object, info: Any) -> object:
        """`fps = true` is a slip; pydantic alone would read it as 1."""
        if isinstance(value, bool) and cls.model_fields[info.field_name].annotation is not bool:
            raise ValueError("true and false have no meaning here")
        return value

    def choices(self) -> Iterator[tuple[str, Callable[[], object]]]:
        """By key: calls that raise ConfigError when a plug-in chosen by that key is no good."""
        return iter(())


class SenderConfig(DaemonConfig, StreamSettings):
    """`streamd sender`."""

    plugin_section: ClassVar[str | None] = "cc"
    plugin_registry: ClassVar[Registry[Any] | None] = CONTROLLERS

    role: Literal["sender"] = Field("sender", description="Says which daemon a file is for.")
    peer: Address = Field(description="Where the stream goes: the receiver, or a bottleneck.")
    listen: Address | None = Field(
        None, description="Local address; without it any port of the peer's address family."
    )
    metrics_port: OptionalPort = Field(
        9464, description="TCP port of the HTTP endpoints; 0 takes a free one, off has none."
    )
    source: Annotated[str, Form("low|medium|high|synthetic|FILE")] = Field(
        "medium",
        min_length=1,
        description="What to stream: a built-in clip, statistical frames, or a file or device.",
    )
    loop: bool = Field(False, description="Start a file again when it ends.")
    profile: Literal["default", "bw-tool"] = Field(
        "default", description="Wire format; bw-tool is understood by the SCReAM BW tool."
    )
    frames: FilePath | None = Field(
        None,
        description="Write a line per encoded frame to this file (CSV): times, size, quantizer.",
    )
    sdp: FilePath | None = Field(
        None, description="Write a session description for other players to this file."
    )
    rtcp_mux: Literal["auto", "yes", "no"] = Field(
        "auto",
        description="Whether RTCP shares the media port. With `no` sender reports also go to the"
        " port above; auto is yes, but with `sdp` no until the peer sends RTCP to the media port.",
    )
    feedback_count: Literal["auto", "plain", "minus-one"] = Field(
        "auto",
        description="How num_reports of RFC 8888 feedback is read; auto follows the profile.",
    )
    cc: dict[str, Any] = Field(
        default_factory=dict, description="Parameters of congestion controllers, by name."
    )

    def choices(self) -> Iterator[tuple[str, Callable[[], object]]]:
        yield "controller", self.controller_choice
        yield "ecn", self.ecn_codepoint
        yield "controller", self._trial_controller

    def counts_minus_one(self) -> bool:
        """Whether feedback counts its blocks as the BW tool does (blocks minus 1)."""
        if self.feedback_count == "auto":
            return self.profile == "bw-tool"
        return self.feedback_count == "minus-one"

    def local_address(self, peer: tuple[Any, ...]) -> tuple[str, int]:
        """Where to bind for a resolved peer: `listen`, or any port of the peer's family."""
        if self.listen is not None:
            return (self.listen.host, self.listen.port)
        return ("::" if ":" in peer[0] else "0.0.0.0", 0)

    def controller_choice(self) -> tuple[ControllerSpec, Any]:
        """The controller to run and its parameters; `rate` overrides `controller`."""
        if self.rate is not None:
            return CONTROLLERS.get("fixed"), FixedConfig(rate_bps=self.rate, mss_bytes=self.mss)
        spec = CONTROLLERS.get(self.controller)
        options = self.cc.get(spec.name)
        return spec, spec.config_type() if options is None else options

    def ecn_codepoint(self) -> Ecn:
        """The codepoint to send with; ConfigError if the controller cannot honour the one asked."""
        spec, _ = self.controller_choice()
        mode = self.ecn or spec.ecn_modes[0]
        if mode not in spec.ecn_modes:
            modes = ", ".join(spec.ecn_modes)
            raise ConfigError(f"controller {spec.name!r} cannot use {mode}, only {modes}")
        return from_name(mode)

    def tool_tick(self) -> float:
        """Of the BW tool's averaged queue delay: its version of 2026-03-04 has another one."""
        _, options = self.controller_choice()
        return TICK_2026_03 if getattr(options, "profile", "") == "2026-03-04" else TICK

    def _trial_controller(self) -> object:
        """Build one, so that parameters that do not fit together show before the start."""
        spec, options = self.controller_choice()
        return spec.build(options, ecn=self.ecn_codepoint(), rng=random.Random(0), now=0.0)


class ReceiverConfig(DaemonConfig):
    """`streamd receiver`."""

    role: Literal["receiver"] = Field("receiver", description="Says which daemon a file is for.")
    listen: Address = Field(HostPort("", 5004), description="Address media arrives at.")
    peer: Address | None = Field(
        None, description="Where feedback goes; without it to where media comes from."
    )
    metrics_port: OptionalPort = Field(
        9465, description="TCP port of the HTTP endpoints; 0 takes a free one, off has none."
    )
    codec: Literal["auto", "vp9", "vp8", "h264"] = Field(
        "auto", description="Video codec; auto goes by the RTP payload type."
    )
    frames: FilePath | None = Field(
        None, description="Write a line per shown frame to this file (CSV): times, size, quality."
    )
    record: FilePath | None = Field(
        None,
        description="Record what is received: .webm or .mkv (VP9, VP8), .mp4 (H.264, VP9), or .y4m"
        " with decoded pictures. Playable at any moment, also after a crash.",
    )
    reference: Annotated[str | None, Form("low|medium|high|FILE")] = Field(
        None,
        description="What the sender streams, to compare with what is shown: PSNR and SSIM.",
    )
    reference_fps: float | None = Field(
        None, gt=0, le=1000, description="Its frames per second; without it the film's own."
    )
    decode: bool = Field(True, description="Decode complete frames, or only count them.")
    profile: Literal["default", "bw-tool"] = Field(
        "default", description="Wire format; bw-tool is understood by the SCReAM BW tool."
    )
    feedback_count: Literal["auto", "plain", "minus-one"] = Field(
        "auto",
        description="How num_reports of RFC 8888 feedback is written; auto follows the profile.",
    )
    freeze_rule: Literal["webrtc", "formula"] = Field(
        "webrtc", description="Which rule counts freezes; formula is the SCReAM video paper's."
    )

    def counts_minus_one(self) -> bool:
        """Whether feedback counts its blocks as the BW tool does (blocks minus 1)."""
        if self.feedback_count == "auto":
            return self.profile == "bw-tool"
        return self.feedback_count == "minus-one"


class BottleneckConfig(DaemonConfig):
    """`streamd bottleneck`."""

    plugin_section: ClassVar[str | None] = "queue"
    plugin_registry: ClassVar[Registry[Any] | None] = QUEUES

    role: Literal["bottleneck"] = Field(
        "bottleneck", description="Says which daemon a file is for."
    )
    listen: Address = Field(HostPort("", 5000), description="Address the sender sends to.")
    peer: Address = Field(description="The receiver: where the uplink leads.")
    metrics_port: OptionalPort = Field(
        9466, description="TCP port of the HTTP endpoints; 0 takes a free one, off has none."
    )
    uplink: LinkCapacity = Field(
        Capacity(rate_bps=12_000_000.0),
        description="Towards the peer: a rate, a Mahimahi trace, a built-in one, or unlimited.",
    )
    downlink: LinkCapacity = Field(Capacity(), description="From the peer back: as uplink.")
    repeat: bool = Field(True, description="Start a trace again when it ends.")
    delay: DelaySeconds = Field(
        0.0, description="One-way delay of each direction; a bare number is in ms."
    )
    loss: Ratio = Field(0.0, description="Random loss on the uplink, behind the queue.")
    downlink_loss: Ratio = Field(0.0, description="Random loss on the downlink, behind the queue.")
    queue: str = Field(
        "dualpi2", description="Queue discipline of both directions ([queue] name in a file)."
    )
    downlink_queue: str | None = Field(
        None, description="Another queue discipline for the downlink."
    )
    overhead: Bytes = Field(
        0, description="Bytes charged per packet on top of the IP packet; mm-link charges 4."
    )
    opportunity: Bytes = Field(
        1500, ge=1, description="Bytes one line of a trace delivers; mm-link delivers 1504."
    )
    record: FilePath | None = Field(
        None, description="Write one record per packet (arrival, departure, fate) to this file."
    )
    warmup: Seconds = Field(
        0.0, description="Packets that arrive this soon after the first are left out of summaries."
    )
    queues: dict[str, Any] = Field(
        default_factory=dict,
        alias="queue_options",
        description="Parameters of queue disciplines, by name.",
    )

    def choices(self) -> Iterator[tuple[str, Callable[[], object]]]:
        yield "queue", lambda: self._trial_queue("uplink")
        if self.downlink_queue is not None:
            yield "downlink_queue", lambda: self._trial_queue("downlink")

    def queue_choice(self, direction: Literal["uplink", "downlink"]) -> tuple[QueueSpec, Any]:
        """The queue discipline of a direction and its parameters."""
        own = self.downlink_queue if direction == "downlink" else None
        spec = QUEUES.get(own or self.queue)
        options = self.queues.get(spec.name)
        return spec, spec.config_type() if options is None else options

    def _trial_queue(self, direction: Literal["uplink", "downlink"]) -> object:
        """Build one, so that parameters that do not fit together show before the start."""
        spec, options = self.queue_choice(direction)
        return spec.build(options, rng=random.Random(0), now=0.0)


ROLES: dict[str, type[DaemonConfig]] = {
    "sender": SenderConfig,
    "receiver": ReceiverConfig,
    "bottleneck": BottleneckConfig,
}


def key_of(model: type[DaemonConfig], name: str) -> str:
    """The configuration key of a model's field."""
    return model.model_fields[name].alias or name


def plain_fields(model: type[DaemonConfig]) -> dict[str, Any]:
    """Fields by configuration key, those of plug-ins left out."""
    return {
        key_of(model, name): field
        for name, field in model.model_fields.items()
        if name not in ("cc", "queues")
    }
