"""The types of configuration values: how each is written, checked and shown again.

A `Form` beside the type says how the value is written, for `--help` and the
reference page. Serialising a model in JSON mode gives back what a user would write.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import BeforeValidator, Field, PlainSerializer

from streamd.config.units import (
    Capacity,
    FrameSize,
    HostPort,
    format_duration,
    format_rate,
    format_size,
    parse_capacity,
    parse_duration,
    parse_frame_size,
    parse_host_port,
    parse_rate,
    parse_ratio,
    parse_size,
)


@dataclass(frozen=True, slots=True)
class Form:
    """How a value is written."""

    metavar: str
    bare: str = ""
    """The unit a bare number from a user counts in, where it is not the base unit."""


def _from_text(parse: Callable[[str], object], *, text: str = "") -> BeforeValidator:
    """Strings go through `parse`; anything else is checked as it is.

    With `text`, numbers are refused: the value is only ever written as such a text.
    """

    def convert(value: object) -> object:
        if text and isinstance(value, int | float):
            raise ValueError(f"a text such as {text} is needed here")
        return parse(value) if isinstance(value, str) else value

    return BeforeValidator(convert)


def _comma_list(value: object) -> object:
    """`a,b` is two items, `none` and the empty string are none."""
    if isinstance(value, str):
        parts = tuple(part.strip() for part in value.split(","))
        return () if parts in (("",), ("none",)) else parts
    return value


def _off(value: object) -> object:
    return None if value == "off" else value


def _show_off(value: int | None) -> int | str:
    return "off" if value is None else value


SHOW = PlainSerializer(str, when_used="json-unless-none")
AS_DURATION = PlainSerializer(format_duration, when_used="json-unless-none")
AS_SIZE = PlainSerializer(format_size, when_used="json-unless-none")
AS_RATE = PlainSerializer(format_rate, when_used="json-unless-none")

Seconds = Annotated[float, _from_text(parse_duration), AS_DURATION, Field(ge=0), Form("DURATION")]
"""A duration, stored in seconds."""
DelaySeconds = Annotated[
    float, _from_text(parse_duration), AS_DURATION, Field(ge=0), Form("DURATION", bare="ms")
]
"""As Seconds, but a bare number from a user is milliseconds, as mm-delay takes it."""
BitsPerSecond = Annotated[float, _from_text(parse_rate), AS_RATE, Field(gt=0), Form("RATE")]
"""A rate, stored in bit/s."""
Bytes = Annotated[int, _from_text(parse_size), AS_SIZE, Field(ge=0), Form("SIZE")]
"""A size, stored in bytes."""
Ratio = Annotated[float, _from_text(parse_ratio), Field(ge=0, le=1), Form("RATIO")]
"""A share from 0 to 1; "1%" is read as 0.01."""
Address = Annotated[
    HostPort, _from_text(parse_host_port, text='"192.0.2.1:5004"'), SHOW, Form("HOST:PORT")
]
"""Where to bind or send."""
Size2D = Annotated[
    FrameSize, _from_text(parse_frame_size, text='"352x288"'), SHOW, Form("WIDTHxHEIGHT")
]
"""A picture size in pixels."""
LinkCapacity = Annotated[Capacity, _from_text(parse_capacity), SHOW, Form("TRACE|RATE")]
"""What one direction of the link carries."""
OptionalPort = Annotated[
    Annotated[int, Field(ge=0, le=65535)] | None,
    BeforeValidator(_off),
    PlainSerializer(_show_off, when_used="json"),
    Form("PORT|off"),
]
"""A TCP port, 0 for any free one, None ("off") for none at all."""
FilePath = Annotated[Path, SHOW, Form("FILE")]
"""A file to write."""
COMMA_LIST = BeforeValidator(_comma_list)
"""Lets a list be written as one comma-separated string."""


def form_of(annotation: Any, metadata: list[Any]) -> Form | None:
    """The `Form` among a field's metadata, or inside an optional type; None when it has none."""
    for item in metadata:
        if isinstance(item, Form):
            return item
    for part in get_args(annotation):
        found = form_of(part, list(getattr(part, "__metadata__", ())))
        if found is not None:
            return found
    return None
