"""What is simulated: paths, the flows over them, and for how long.

A scenario is a TOML file (`scenario.load_scenario`) or a dict of the same shape
(`Scenario.model_validate`). Keys, units and defaults of a flow are those of the
sender's configuration, those of a path the bottleneck's; unknown keys are errors.
`docs/scenarios.md` lists every key.
"""

import math
import random
from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from streamd.cc.api import ControllerSpec
from streamd.config.fields import (
    Bytes,
    Form,
    LinkCapacity,
    Ratio,
    Seconds,
)
from streamd.config.layers import Setting
from streamd.config.model import SenderConfig
from streamd.config.plugins import CONTROLLERS, QUEUES
from streamd.config.sections import SectionProblems, build_options, problem_text
from streamd.config.stream import StreamSettings
from streamd.config.units import Capacity, HostPort
from streamd.ecn import Ecn
from streamd.errors import ConfigError
from streamd.link.queue import QueueSpec
from streamd.media.factory import SYNTHETIC

VIDEO_ENCODE_TIME = 0.004
"""Modelled encode time of a video codec where the scenario names none (s): CIF at one thread."""
_OWN_FLOW_KEYS = frozenset(
    {
        *("name", "up", "down", "controller_options", "encode_time", "start", "stop"),
        *("freeze_rule", "first_seq", "first_timestamp", "receiver_clock_offset", "quality"),
    }
)
"""Keys of a flow that its sender does not have."""
_NOBODY = HostPort("192.0.2.1", 5004)


class Table(BaseModel):
    """What all tables of a scenario share."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_for_numbers(cls, value: object, info: Any) -> object:
        """`fps = true` is a slip; pydantic alone would read it as 1."""
        if isinstance(value, bool) and cls.model_fields[info.field_name].annotation is not bool:
            raise ValueError("true and false have no meaning here")
        return value


class PathSpec(Table):
    """`[paths.NAME]`: one direction of a link; several flows may share it."""

    capacity: LinkCapacity = Field(
        Capacity(),
        description="A rate, a Mahimahi trace, a built-in one (`lte`), or unlimited.",
    )
    queue: str = Field("dualpi2", description="Queue discipline in front of the link.")
    queue_options: dict[str, Any] = Field(
        default_factory=dict, description="Parameters of the queue discipline."
    )
    delay: Seconds = Field(0.0, description="One-way propagation delay.")
    loss: Ratio = Field(0.0, description="Random loss, behind the queue.")
    opportunity: Bytes = Field(
        1500, ge=1, description="Bytes one line of a trace delivers; mm-link delivers 1504."
    )
    overhead: Bytes = Field(
        0, description="Bytes charged per packet on top of the IP packet; mm-link charges 4."
    )
    repeat: bool = Field(True, description="Start a trace again when it ends.")

    @field_validator("capacity", mode="before")
    @classmethod
    def _plain_rate(cls, value: object) -> object:
        """A bare number is a rate in bit/s."""
        plain = isinstance(value, int | float) and not isinstance(value, bool)
        return str(value) if plain else value

    @model_validator(mode="after")
    def _queue_fits(self) -> Self:
        try:
            spec, options = self.queue_choice()
            spec.build(options, rng=random.Random(0), now=0.0)
        except ConfigError as error:
            raise ValueError(f"queue: {error}") from error
        return self

    def queue_choice(self) -> tuple[QueueSpec, Any]:
        """The discipline and its parameters; ConfigError, or ValueError for the parameters."""
        spec = QUEUES.get(self.queue)
        return spec, _options(spec.config_type, "queue_options", self.queue_options)


class FlowSpec(Table, StreamSettings):
    """`[[flows]]`: one sender and its receiver."""

    name: str = Field(pattern=r"^[A-Za-z0-9_.-]+$", description="Names the flow in results.")
    up: str = Field(description="Path of the media.")
    down: str = Field(description="Path of the feedback.")
    start: Seconds = Field(0.0, description="When the source starts.")
    stop: Seconds | None = Field(
        None, description="When it stops; without it at the end of the scenario."
    )
    controller_options: dict[str, Any] = Field(
        default_factory=dict, description="Parameters of the congestion controller."
    )
    source: Annotated[str, Form("low|medium|high|synthetic|FILE")] = Field(
        SYNTHETIC,
        min_length=1,
        description="What to stream: statistical frames, a built-in clip, or a file.",
    )
    loop: bool = Field(True, description="Start a file again when it ends.")
    encode_time: Annotated[Seconds | Literal["measured"] | None, Form("DURATION|measured")] = Field(
        None,
        description="How long encoding a frame takes; without it 4 ms for video, nothing for"
        " synthetic frames. `measured` takes the real time, so that no two runs are equal.",
    )
    quality: bool = Field(
        True, description="Compare what is shown with the source: PSNR and SSIM of real video."
    )
    freeze_rule: Literal["webrtc", "formula"] = Field(
        "webrtc", description="Which rule counts freezes; formula is the SCReAM video paper's."
    )
    receiver_clock_offset: float = Field(
        0.0,
        description="What the receiver's wall clock is ahead of the sender's (seconds, or"
        " negative); 0: one machine, which needs no comparison.",
    )
    first_seq: int | None = Field(
        None, ge=0, le=0xFFFF, description="First RTP sequence number; without it at random."
    )
    first_timestamp: int | None = Field(
        None,
        ge=0,
        le=0xFFFFFFFF,
        description="RTP timestamp of time 0 of the clock; without it at random.",
    )

    @model_validator(mode="after")
    def _can_be_sent(self) -> Self:
        """As the sender would say: rates in order, a controller that fits."""
        config = self.sender_config()
        for key, check in config.choices():
            try:
                check()
            except ConfigError as error:
                raise ValueError(f"{key}: {error}") from error
        if self.stop is not None and self.stop <= self.start:
            raise ValueError(f"stop: {self.stop:g} s is not after the start at {self.start:g} s")
        return self

    def sender_config(self) -> SenderConfig:
        """What a sender daemon would be told; ValueError where it would refuse."""
        try:
            spec = CONTROLLERS.get(self.controller)
        except ConfigError as error:
            raise ValueError(f"controller: {error}") from error
        options = _options(spec.config_type, "controller_options", self.controller_options)
        same = {key: getattr(self, key) for key in type(self).model_fields.keys() - _OWN_FLOW_KEYS}
        try:
            return SenderConfig(peer=_NOBODY, cc={spec.name: options}, **same)
        except ValueError as error:
            raise ValueError(problem_text(error, "")) from error

    @property
    def effective_codec(self) -> str:
        """The codec in use: synthetic frames have their own."""
        return SYNTHETIC if self.source == SYNTHETIC else self.codec

    @property
    def modelled_encode_time(self) -> float | None:
        """Seconds per frame; None: measured."""
        if self.encode_time == "measured":
            return None
        if self.encode_time is None:
            return 0.0 if self.source == SYNTHETIC else VIDEO_ENCODE_TIME
        return self.encode_time

    def controller_choice(self) -> tuple[ControllerSpec, Any]:
        """The controller to run and its parameters."""
        return self.sender_config().controller_choice()

    def ecn_codepoint(self) -> Ecn:
        """The codepoint of its media."""
        return self.sender_config().ecn_codepoint()


class Scenario(Table):
    """A whole experiment with one seed left open."""

    name: str = Field(pattern=r"^[A-Za-z0-9_.-]+$", description="Names the scenario in results.")
    duration: Seconds = Field(gt=0, description="How long sources run; what they sent then drains.")
    warmup: Seconds = Field(
        0.0, description="Left out of rates, percentiles and freezes; counts are of the whole run."
    )
    clock: Seconds = Field(
        0.0, description="What all clocks show at the start: brings wraps of timestamps near."
    )
    wake_time: Seconds = Field(
        0.0,
        description="How late senders and receivers act on a datagram, a deadline or a frame"
        " tick: half to one and a half of this, at random. Programs on a quiet machine: 0.15 ms.",
    )
    paths: dict[str, PathSpec] = Field(min_length=1, description="One direction each, by name.")
    flows: tuple[FlowSpec, ...] = Field(min_length=1, description="Senders with their receivers.")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if not (math.isfinite(self.duration) and self.warmup < self.duration):
            raise ValueError(
                f"warmup: {self.warmup:g} s leave nothing of a duration of {self.duration:g} s"
            )
        repeated = [name for name, n in Counter(flow.name for flow in self.flows).items() if n > 1]
        for number, flow in enumerate(self.flows):
            for key, path in (("up", flow.up), ("down", flow.down)):
                if path not in self.paths:
                    known = ", ".join(self.paths)
                    raise ValueError(f"flows.{number}.{key}: no path {path!r}; there are: {known}")
            if flow.start >= self.duration:
                raise ValueError(
                    f"flows.{number}.start: {flow.start:g} s is not before the end at"
                    f" {self.duration:g} s"
                )
            if flow.name in repeated:
                raise ValueError(f"flows.{number}.name: {flow.name!r} names more than one flow")
        return self


def _options(config_type: type, section: str, given: Mapping[str, Any]) -> Any:
    """A plug-in's parameters; ValueError with every problem."""
    settings = {key: Setting(value, "") for key, value in given.items()}
    try:
        return build_options(config_type, section, settings)
    except SectionProblems as error:
        raise ValueError("; ".join(line.removeprefix(": ") for line in error.lines)) from error
