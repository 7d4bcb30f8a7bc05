"""Builds a configuration: built-in default < file < environment < command line.

Every problem found is in one ConfigError, a line each, with the place it was written
at; nothing half-checked ever comes back.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from streamd.config.fields import form_of
from streamd.config.layers import (
    Layer,
    Setting,
    env_name,
    environment_layer,
    file_layer,
    flag_layer,
    flag_name,
    is_service_link,
)
from streamd.config.lines import Parts
from streamd.config.model import ROLES, DaemonConfig, plain_fields
from streamd.config.sections import SectionProblems, build_options, problem_text, suggest
from streamd.errors import ConfigError

M = TypeVar("M", bound=DaemonConfig)
Sections = dict[str, dict[str, Setting]]
_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*")


@dataclass(frozen=True, slots=True)
class Loaded(Generic[M]):
    """A checked configuration, and where each of its values came from."""

    config: M
    origins: dict[str, str]
    """By configuration key; a key not in it has its built-in default."""


def load(
    model: type[M],
    *,
    file: Path | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Iterable[tuple[str, object, str]] = (),
) -> Loaded[M]:
    """The configuration of one daemon.

    `flags`: configuration key, value and the flag as the user wrote it. A key
    `queue..k` means the parameter `k` of whichever queue is chosen.
    Raises ConfigError with every problem found.
    """
    return _Loader(model).load(file, environ or {}, flags)


class _Loader(Generic[M]):
    """One load: collects problems as it goes."""

    def __init__(self, model: type[M]) -> None:
        self._model = model
        self._fields = plain_fields(model)
        self._section = model.plugin_section
        self._problems: list[str] = []
        self._empty: dict[str, Setting] = {}
        """Sections without a key, by plug-in: their names are checked all the same."""

    def load(
        self,
        file: Path | None,
        environ: Mapping[str, str],
        flags: Iterable[tuple[str, object, str]],
    ) -> Loaded[M]:
        merged: Layer = {}
        for layer in (
            file_layer(file) if file else {},
            self._own_environment(environment_layer(environ)),
            flag_layer(flags),
        ):
            merged.update((self._canonical(key), setting) for key, setting in layer.items())
        plain, sections = self._sort(merged)
        options = {name: self._options(name, given) for name, given in sections.items()}
        config = self._build(plain, options)
        if config is not None and not self._problems:
            self._problems += _choice_problems(config, plain, sections)
        if config is None or self._problems:
            raise ConfigError("\n".join(sorted(self._problems, key=_line_number)))
        return Loaded(config, self._origins(plain, sections))

    def _own_environment(self, layer: Layer) -> Layer:
        """Variables of other roles are left out: a stack's services share an environment."""
        own: Layer = {}
        for key, setting in layer.items():
            if key[0] in self._fields or key[0] == self._section:
                own[key] = setting
            elif key[0] not in _known_anywhere() and not is_service_link(setting.origin):
                names = [env_name(name) for name in sorted(_known_anywhere())]
                name = setting.origin.removeprefix("environment ")
                hint = suggest(name, names)
                self._problems.append(f"{setting.origin}: unknown variable{hint}")
        return own

    def _canonical(self, key: Parts) -> Parts:
        """`[queue] name` is the key `queue`: a file cannot have both a value and a table."""
        return key[:1] if key == ("queue", "name") and "queue" in self._fields else key

    def _sort(self, merged: Layer) -> tuple[dict[str, Setting], Sections]:
        """Plain settings by key, and those of plug-ins by name; unknown ones are problems."""
        plain: dict[str, Setting] = {}
        sections: Sections = {}
        for key, setting in merged.items():
            if len(key) == 1 and key[0] in self._fields:
                plain[key[0]] = setting
            elif key[0] == self._section and len(key) == 3:
                sections.setdefault(key[1], {})[key[2]] = setting
            elif key[0] == self._section and len(key) == 2 and setting.value == {}:
                sections.setdefault(key[1], {})
                self._empty[key[1]] = setting
            elif key[0] == self._section and len(key) == 2:
                self._problems.append(
                    f"{setting.origin}: {'.'.join(key)} is a section, not a value"
                )
            else:
                hint = suggest(key[0], list(self._fields)) if len(key) == 1 else ""
                self._problems.append(f"{setting.origin}: unknown key {'.'.join(key)}{hint}")
        if "" in sections:
            chosen = plain.get("queue", Setting(self._default("queue"), "")).value
            sections.setdefault(str(chosen), {}).update(sections.pop(""))
        return plain, sections

    def _default(self, key: str) -> object:
        return self._fields[key].default

    def _options(self, name: str, given: dict[str, Setting]) -> Any:
        """A plug-in's parameters, or None when they are no good."""
        registry = self._model.plugin_registry
        assert registry is not None
        try:
            spec = registry.get(name)
            return build_options(spec.config_type, f"{self._section}.{name}", given)
        except ConfigError as error:
            setting = next(iter(given.values()), None) or self._empty[name]
            self._problems.append(f"{setting.origin}: {self._section}.{name}: {error}")
        except SectionProblems as error:
            self._problems += error.lines
        return None

    def _build(self, plain: dict[str, Setting], options: dict[str, Any]) -> M | None:
        values: dict[str, Any] = {}
        for key, setting in plain.items():
            values[key] = _with_bare_unit(self._fields[key], setting.value)
        role = values.get("role", self._model.model_fields["role"].default)
        if role != self._model.model_fields["role"].default:
            wanted = self._model.model_fields["role"].default
            self._problems.append(
                f"{plain['role'].origin}: this file is for a {role}, not for a {wanted}"
            )
            del values["role"]
        if options:
            values[_options_field(self._model)] = options
        try:
            return self._model.model_validate(values)
        except ValidationError as error:
            self._problems += _field_problems(error, plain)
            return None

    def _origins(self, plain: dict[str, Setting], sections: Sections) -> dict[str, str]:
        origins = {key: setting.origin for key, setting in plain.items()}
        for name, given in sections.items():
            for key, setting in given.items():
                origins[f"{self._section}.{name}.{key}"] = setting.origin
        return origins


def _known_anywhere() -> set[str]:
    """First parts of every key of any role."""
    known = {key for model in ROLES.values() for key in plain_fields(model)}
    return known | {model.plugin_section for model in ROLES.values() if model.plugin_section}


def _options_field(model: type[DaemonConfig]) -> str:
    return "cc" if model.plugin_section == "cc" else "queues"


def _with_bare_unit(field: Any, value: object) -> object:
    """A number without a unit, with the unit this key gives to such numbers."""
    form = form_of(field.annotation, field.metadata)
    if form is None or not form.bare or isinstance(value, bool):
        return value
    if isinstance(value, int | float) or (isinstance(value, str) and _NUMBER.fullmatch(value)):
        return f"{value}{form.bare}"
    return value


def _field_problems(error: ValidationError, plain: dict[str, Setting]) -> Iterator[str]:
    for item in error.errors(include_url=False):
        key = str(item["loc"][0]) if item["loc"] else ""
        if item["type"] == "missing":
            yield f"{key} is needed: {flag_name(key)}, {env_name(key)} or {key} = in a file"
            continue
        single = ValueError(item["msg"].removeprefix("Value error, "))
        message = problem_text(single, item["input"])
        if key:
            yield f"{plain[key].origin}: {key}: {message}"
        else:
            named = [plain[word].origin for word in message.split() if word in plain]
            yield f"{', '.join(named)}: {message}"


def _choice_problems(
    config: DaemonConfig, plain: dict[str, Setting], sections: Sections
) -> Iterator[str]:
    """A plug-in that is named but not there, or cannot do what is asked of it."""
    for key, check in config.choices():
        try:
            check()
        except ConfigError as error:
            chosen = str(getattr(config, key))
            involved = [plain[key]] if key in plain else []
            involved += sections.get(chosen, {}).values()
            yield f"{_origins(involved)}{key}: {error}"
            return


def _origins(settings: Iterable[Setting]) -> str:
    """The start of a message about several settings: where each was written."""
    places = list(dict.fromkeys(setting.origin for setting in settings))
    return f"{', '.join(places)}: " if places else ""


def _line_number(problem: str) -> float:
    """Problems of the file come first, in the order of its lines."""
    match = re.match(r"[^\n]*?:(\d+): ", problem)
    return float(match[1]) if match else math.inf
