"""The effective configuration as text: a TOML file in which a comment names each value's origin."""

import dataclasses
import json
from collections.abc import Iterator
from typing import Any

from streamd.config.load import Loaded
from streamd.config.model import (
    BottleneckConfig,
    DaemonConfig,
    SenderConfig,
    plain_fields,
)

_DEFAULT = "default"
_COLUMN = 44


def show(loaded: Loaded[Any]) -> str:
    """Every effective value with its origin; loads back to the same configuration."""
    rows = _rows(loaded.config, loaded.origins)
    return "".join(
        f"{text:<{_COLUMN}}  # {origin}\n" if origin else f"{text}\n" for text, origin in rows
    )


def as_toml(config: DaemonConfig) -> str:
    """The configuration without origins, to keep beside what a run recorded."""
    return "".join(f"{text}\n" for text, _ in _rows(config, {}))


def toml_value(value: object) -> str:
    """One TOML value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml_value(item) for item in value)}]"
    if isinstance(value, int | float):
        return repr(value)
    return json.dumps(str(value), ensure_ascii=False)


def _rows(config: DaemonConfig, origins: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Lines and the origin to name behind each; headings have none."""
    dumped = config.model_dump(mode="json", by_alias=True)
    keys = list(plain_fields(type(config)))
    for key in keys:
        if key != "queue":
            yield _setting(key, dumped[key]), origins.get(key, _DEFAULT)
    if "queue" in keys:
        yield "\n[queue]", ""
        yield _setting("name", dumped["queue"]), origins.get("queue", _DEFAULT)
    for section, options in _sections(config):
        yield f"\n[{section}]", ""
        for field in dataclasses.fields(options):
            text = _setting(field.name, getattr(options, field.name))
            yield text, origins.get(f"{section}.{field.name}", _DEFAULT)


def _setting(key: str, value: object) -> str:
    return f"# {key} is not set" if value is None else f"{key} = {toml_value(value)}"


def _sections(config: DaemonConfig) -> Iterator[tuple[str, Any]]:
    """Parameters of every plug-in in use and of every other one that was configured."""
    found: dict[str, Any] = {}
    if isinstance(config, SenderConfig):
        spec, options = config.controller_choice()
        if config.rate is None:
            found[spec.name] = options
        found |= {name: options for name, options in config.cc.items() if name not in found}
    elif isinstance(config, BottleneckConfig):
        for direction in ("uplink", "downlink"):
            queue, options = config.queue_choice(direction)
            found[queue.name] = options
        found |= {name: options for name, options in config.queues.items() if name not in found}
    for name, options in found.items():
        yield f"{config.plugin_section}.{name}", options
