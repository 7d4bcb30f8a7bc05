"""Where settings come from (file, environment, command line), each value with its origin."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamd.config.lines import Parts, key_lines, line_of
from streamd.errors import ConfigError

ENV_PREFIX = "STREAMD_"
ENV_RESERVED = frozenset({"STREAMD_REVISION", "STREAMD_VECTORS"})
"""Variables that are not configuration: the image's source revision, the tests' reference data."""
# Kubernetes puts such variables into every container for a service named streamd-*.
_SERVICE_LINK = re.compile(r"_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP)(_\w+)?)?)$")
MAX_FILE_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Setting:
    """A value as it was written, and where."""

    value: object
    origin: str


Layer = dict[Parts, Setting]


def read_toml(path: Path) -> tuple[dict[str, Any], dict[Parts, int]]:
    """The contents of a TOML file and the line of each key.

    ConfigError when it cannot be read or parsed.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    if len(raw) > MAX_FILE_BYTES:
        raise ConfigError(f"{path}: larger than {MAX_FILE_BYTES} bytes: not a configuration file")
    try:
        text = raw.decode()
        tree = tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text (byte {error.start})") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(_syntax_error(path, str(error))) from error
    return tree, key_lines(text.replace("\r\n", "\n"))


def file_layer(path: Path) -> Layer:
    """The settings of a TOML file; ConfigError when it cannot be read or parsed."""
    tree, lines = read_toml(path)
    layer: Layer = {}
    for key, value in _flatten(tree):
        line = line_of(lines, key)
        layer[key] = Setting(value, f"{path}:{line}" if line else str(path))
    return layer


def environment_layer(environ: Mapping[str, str]) -> Layer:
    """Settings from `STREAMD_*`; empty variables and those that are not ours are left out."""
    layer: Layer = {}
    for name in sorted(environ):
        if not name.startswith(ENV_PREFIX) or name in ENV_RESERVED or not environ[name]:
            continue
        parts = tuple(name.removeprefix(ENV_PREFIX).lower().split("__"))
        layer[parts] = Setting(environ[name], f"environment {name}")
    return layer


def is_service_link(name: str) -> bool:
    """Whether a variable is one an orchestrator sets for a service that happens to be ours."""
    return _SERVICE_LINK.search(name) is not None


def flag_layer(flags: Iterable[tuple[str, object, str]]) -> Layer:
    """Settings from the command line: key with dots, value, and the flag as it was written.

    The last of equal keys counts.
    """
    return {
        tuple(key.split(".")): Setting(value, f"command line {flag}") for key, value, flag in flags
    }


def flag_name(key: str) -> str:
    """The flag of a configuration key."""
    return "--" + key.replace("_", "-")


def env_name(key: str) -> str:
    """The environment variable of a configuration key."""
    return ENV_PREFIX + key.replace(".", "__").upper()


def _flatten(tree: Mapping[str, object], prefix: Parts = ()) -> Iterable[tuple[Parts, object]]:
    """Leaves by path; an empty table is a leaf, so that its name is checked too."""
    for name, value in tree.items():
        key = (*prefix, name)
        if isinstance(value, dict) and value:
            yield from _flatten(value, key)
        else:
            yield key, value


def _syntax_error(path: Path, message: str) -> str:
    match = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", message)
    if match is None:
        return f"{path}: {message}"
    return f"{path}:{match[2]}: {match[1]} (column {match[3]})"
