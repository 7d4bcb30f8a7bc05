"""Reads scenario files. Whatever is wrong with one is a single ConfigError, with file and line."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from streamd.config.capacity import load_capacity
from streamd.config.layers import read_toml
from streamd.config.lines import Parts, line_of
from streamd.config.sections import problem_text, suggest
from streamd.errors import ConfigError
from streamd.media.factory import CLIPS, SYNTHETIC
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
    for number, flow in enumerate(scenario.flows):
        problem = source_problem(flow.source)
        if problem:
            place = places.of(("flows", str(number), "source"))
            raise ConfigError(f"{place}: flows.{flow.name}.source: {problem}")
    return scenario


def source_problem(source: str) -> str | None:
    """Why a file cannot be streamed, as far as its name tells; None for anything else."""
    if source in (*CLIPS, SYNTHETIC) or ":" in source or Path(source).is_file():
        return None
    return f"{source} is no file, nor a built-in clip ({', '.join((*CLIPS, SYNTHETIC))})"


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
    for key, problem in scenario_problems(error, tree):
        yield f"{places.of(key)}: {problem}"


def scenario_problems(
    error: ValidationError, tree: Mapping[str, Any]
) -> Iterator[tuple[Parts, str]]:
    """What is wrong with a scenario: the key at fault as in its file, and a sentence.

    The sentence names a flow by its name: that is how a level of an experiment sets its keys.
    """
    for item in error.errors(include_url=False):
        if item["type"] == "too_short" and tree.get(str(item["loc"][0])):
            continue  # its members are no good, and each of them is told
        key = _key(item["loc"], tree)
        shown = ".".join(named_key(key, tree))
        if item["type"] == "extra_forbidden":
            yield key, f"unknown key {shown}{suggest(key[-1], list(_table(key).model_fields))}"
        elif item["type"] == "missing":
            yield key, f"{shown} is needed"
        else:
            single = ValueError(item["msg"].removeprefix("Value error, "))
            message = problem_text(single, item["input"])
            yield _sentence(key, message, tree, whole=isinstance(item["input"], dict))


def named_key(key: Parts, tree: Mapping[str, Any]) -> Parts:
    """The key with the flow's name in place of its number, if it has a proper one."""
    if len(key) < 2 or key[0] != "flows" or not key[1].isdigit():
        return key
    flow = tree["flows"][int(key[1])]
    name = flow.get("name") if isinstance(flow, Mapping) else None
    return ("flows", name, *key[2:]) if isinstance(name, str) and name else key


def _sentence(
    key: Parts, message: str, tree: Mapping[str, Any], *, whole: bool
) -> tuple[Parts, str]:
    """A problem with its key; a message about a `whole` table begins with the key in it."""
    named = _NAMED_KEY.match(message) if whole else None
    if named is None:
        return key, ": ".join(filter(None, (".".join(named_key(key, tree)), message)))
    inner = (*key, *named[2].split("."))
    shown = ".".join(named_key(inner, tree))
    return inner, f"{named[1] or ''}{shown}{message[named.end() :]}"


def _key(location: tuple[int | str, ...], tree: Mapping[str, Any]) -> Parts:
    """The part of pydantic's location that is in the file: it also names members of unions."""
    if len(location) > 2 and location[0] in ("paths", "flows"):
        return tuple(map(str, location[:3]))
    return tuple(map(str, location[:2] if location and location[0] in tree else location[:1]))


def _table(key: Parts) -> type[Table]:
    """The model of the table a key is in."""
    if len(key) > 2:
        return PathSpec if key[0] == "paths" else FlowSpec
    return Scenario
