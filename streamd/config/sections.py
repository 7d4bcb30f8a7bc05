"""Checks a plug-in's section against the plug-in's own frozen dataclass.

The dataclasses are plain Python, so that the core stays free of pydantic; users still
get units, unknown keys found and every problem named at once.
"""

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError

from streamd.config.layers import Setting
from streamd.config.units import parse_duration, parse_rate, parse_ratio, parse_size
from streamd.errors import ConfigError

_FRACTION = re.compile(r"(\d+(?:\.\d+)?)\s*/\s*(\d*[1-9]\d*(?:\.\d+)?)")
_TIME = re.compile(r"[-+.\deE]+\s*(ns|us|µs|μs|ms|s|min|h)")


class SectionProblems(Exception):
    """Everything wrong with one section, one line per problem."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


def build_options(config_type: type, section: str, settings: Mapping[str, Setting]) -> Any:
    """An instance of a plug-in's `config_type`; SectionProblems if anything is wrong."""
    hints = get_type_hints(config_type, include_extras=True)
    known = [field.name for field in dataclasses.fields(config_type)]
    values: dict[str, object] = {}
    problems: list[str] = []
    for name, setting in settings.items():
        if name not in known:
            hint = suggest(name, known)
            problems.append(f"{setting.origin}: unknown key {section}.{name}{hint}")
            continue
        try:
            values[name] = convert(name, hints[name], setting.value)
        except ValueError as error:
            message = problem_text(error, setting.value)
            problems.append(f"{setting.origin}: {section}.{name}: {message}")
    if problems:
        raise SectionProblems(problems)
    try:
        return config_type(**values)
    except (ConfigError, ValueError) as error:
        origins = ", ".join(dict.fromkeys(setting.origin for setting in settings.values()))
        raise SectionProblems([f"{origins}: {section}: {error}"]) from error


def convert(name: str, hint: Any, value: object) -> object:
    """A written value as the field's type; ValueError (also pydantic's) if it does not fit.

    Strings may carry units: names ending in `_bps`, `_bytes`, `_ms` and `_us` say what they hold;
    otherwise a unit of time means seconds, `1%` and `1/4` are shares, whole numbers are sizes.
    A list may be written with commas.
    """
    kinds = set(_members(hint))
    if isinstance(value, bool) and bool not in kinds and Any not in kinds:
        raise ValueError("true and false have no meaning here")
    if isinstance(value, str) and NoneType in kinds and value == "none":
        return None
    if isinstance(value, str) and kinds & {int, float} and str not in kinds:
        value = _quantity(name, value, whole=float not in kinds)
    if isinstance(value, str) and any(get_origin(kind) is tuple for kind in kinds):
        # a command line and the environment have no lists
        value = tuple(part.strip() for part in value.split(","))
    adapter: TypeAdapter[object] = TypeAdapter(hint)
    return adapter.validate_python(value)


def _members(hint: Any) -> Iterator[Any]:
    """The types a hint allows, unions taken apart."""
    if get_origin(hint) in (Union, UnionType):
        for part in get_args(hint):
            yield from _members(part)
    else:
        yield get_args(hint)[0] if hasattr(hint, "__metadata__") else hint


_BY_SUFFIX: tuple[tuple[str, Callable[[str], float]], ...] = (
    ("_bps", parse_rate),
    ("_bytes", parse_size),
    ("_ms", lambda text: parse_duration(text, bare=1e-3) / 1e-3),
    ("_us", lambda text: parse_duration(text, bare=1e-6) / 1e-6),
)


def _quantity(name: str, text: str, *, whole: bool) -> object:
    text = text.strip()
    for suffix, parse in _BY_SUFFIX:
        if name.endswith(suffix):
            return parse(text)
    if _TIME.fullmatch(text):
        return parse_duration(text)
    if text.endswith("%"):
        return parse_ratio(text)
    if fraction := _FRACTION.fullmatch(text):
        return float(fraction[1]) / float(fraction[2])
    return parse_size(text) if whole else text


def suggest(name: str, known: list[str]) -> str:
    """The end of an "unknown key" message: the nearest known name, or all of a few."""
    close = get_close_matches(name, known, n=3)
    if close:
        # two letters in the wrong order are likelier than another letter
        swapped = [other for other in close if sorted(other) == sorted(name)]
        return f"; did you mean {(swapped or close)[0]}?"
    return f"; known: {', '.join(known)}" if 0 < len(known) <= 12 else ""


def problem_text(error: ValueError, value: object) -> str:
    """One sentence on a value that does not fit, with the value in it."""
    if not isinstance(error, ValidationError):
        return _with_value(str(error), value)
    first = error.errors(include_url=False)[0]
    return _with_value(first["msg"].removeprefix("Value error, "), first["input"])


def _with_value(message: str, value: object) -> str:
    shown = repr(value)
    if shown in message or isinstance(value, dict):
        return message
    return f"{message}, got {shown}"
