"""Reads scenario files. Whatever is wrong with one is a single ConfigError, with file and line."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from streamd.config.capacity import load_capacity
from streamd.config.layers import read_toml
from streamd.config.lines import Parts, line_of
from streamd.config.sections import problem_text, suggest
from streamd.errors import ConfigError
from streamd.sim.model import FlowSpec, PathSpec, Scenario, Table

__all__ = ["FlowSpec", "PathSpec", "Scenario", "load_scenario"]

_NAMED_KEY = re.compile(r"(unknown key )?([a-z_]+(?:\.[\w-]+)*)(?=[:;]|$)")
"""The key a message about a whole table begins with."""


def load_scenario(path: Path) -> Scenario:
    """The scenario of a TOML file; its traces exist and are well formed.

    Raises ConfigError with every problem found, a line each.
    """
    tree, lines = read_toml(path)
    places = _Places(path, lines)
    try:
        scenario = Scenario.model_validate(tree)
    except ValidationError as error:
        problems = dict.fromkeys(_problems(error, tree, places))
        raise ConfigError("\n".join(problems)) from error
    for name, spec in scenario.paths.items():
        try:
            load_capacity(spec.capacity)
        except ConfigError as error:
            place = places.of(("paths", name, "capacity"))
            raise ConfigError(f"{place}: paths.{name}.capacity: {error}") from error
    return scenario


class _Places:
    """Where in the file a key stands."""

    def __init__(self, path: Path, lines: dict[Parts, int]) -> None:
        self._path = path
        self._lines = lines

    def of(self, key: Parts) -> str:
        """`file:line` of a key, of what it would be in, or of the first thing in it."""
        inside = (line for other, line in self._lines.items() if other[: len(key)] == key)
        line = line_of(self._lines, key) or (min(inside, default=None) if key else None)
        return f"{self._path}:{line}" if line else str(self._path)


def _problems(error: ValidationError, tree: dict[str, Any], places: _Places) -> Iterator[str]:
    for item in error.errors(include_url=False):
        key = _key(item["loc"], tree)
        if item["type"] == "extra_forbidden":
            hint = suggest(key[-1], list(_table(key).model_fields))
            yield f"{places.of(key)}: unknown key {'.'.join(key)}{hint}"
        elif item["type"] == "missing":
            yield f"{places.of(key)}: {'.'.join(key)} is needed"
        else:
            single = ValueError(item["msg"].removeprefix("Value error, "))
            message = problem_text(single, item["input"])
            yield _sentence(key, message, places, whole=isinstance(item["input"], dict))


def _sentence(key: Parts, message: str, places: _Places, *, whole: bool) -> str:
    """A problem with its place; a message about a `whole` table begins with the key in it."""
    named = _NAMED_KEY.match(message) if whole else None
    if named is None:
        return ": ".join(filter(None, (places.of(key), ".".join(key), message)))
    inner = (*key, *named[2].split("."))
    return f"{places.of(inner)}: {named[1] or ''}{'.'.join(inner)}{message[named.end() :]}"


def _key(location: tuple[int | str, ...], tree: dict[str, Any]) -> Parts:
    """The part of pydantic's location that is in the file: it also names members of unions."""
    if len(location) > 2 and location[0] in ("paths", "flows"):
        return tuple(map(str, location[:3]))
    return tuple(map(str, location[:2] if location and location[0] in tree else location[:1]))


def _table(key: Parts) -> type[Table]:
    """The model of the table a key is in."""
    if len(key) > 2:
        return PathSpec if key[0] == "paths" else FlowSpec
    return Scenario
