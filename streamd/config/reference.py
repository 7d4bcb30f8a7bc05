"""Writes docs/config.md from the models: `python -m streamd.config.reference FILE`."""

import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

from pydantic.fields import FieldInfo

from streamd.config.docs import default_text, field_docs, metavar, type_text, written_default
from streamd.config.model import ROLES, DaemonConfig, plain_fields
from streamd.config.plugins import CONTROLLERS, QUEUES
from streamd.registry import Registry

_HEAD = """# Configuration

Generated from the code by `make docs`; do not edit.

Every setting comes from one of four places. A later one overrides an earlier one:

1. the built-in default,
2. the configuration file (TOML), the argument of `streamd sender|receiver|bottleneck`,
3. the environment,
4. the command line.

`streamd config show ROLE [FILE] [OPTIONS]` prints every value in force with its origin;
`streamd config check FILE` ends with 0 if a daemon would take the file and with 78 if not. An
unknown key or variable is an error; all that is wrong is reported at once, with file and line.

Names derive from the key. The key `start_rate` is `start_rate = "2Mbps"` in a file,
`STREAMD_START_RATE` in the environment and `--start-rate` on the command line. A dot in a key is a
table in a file, two underscores in a variable and a dot in a flag: the parameter `packets` of
the queue discipline `droptail` is `packets = 100` under `[queue.droptail]`,
`STREAMD_QUEUE__DROPTAIL__PACKETS` and `--queue.droptail.packets`. `--queue-arg packets=100` sets a
parameter of whichever discipline `--queue` chooses. An empty variable counts as not set, and a
variable that belongs to another role is left alone.

How values are written:

| form | examples | a bare number is in |
|---|---|---|
| DURATION | `25ms`, `2s`, `1.5min` | seconds (`delay`: milliseconds) |
| RATE | `12Mbps`, `500kbps`, `2.5Mbit/s` | bit/s |
| SIZE | `1500`, `64kB`, `4MiB` | bytes |
| RATIO | `0.01`, `1%` | |
| HOST:PORT | `192.0.2.1:5004`, `[2001:db8::1]:5004`; `:5004` is every local address | |
| TRACE\\|RATE | `12Mbps`, `lte` (built in), `trace.up` (Mahimahi trace), `unlimited` | bit/s |
"""


def reference() -> str:
    """The whole page."""
    parts = [_HEAD]
    for role, model in ROLES.items():
        parts.append("\n".join(_role(role, model)))
    parts.append("\n".join(_plugins("Congestion controllers", "cc", CONTROLLERS)))
    parts.append("\n".join(_plugins("Queue disciplines", "queue", QUEUES)))
    return "\n".join(parts)


def _role(role: str, model: type[DaemonConfig]) -> Iterator[str]:
    yield f"## streamd {role}\n"
    yield "| key | value | default | meaning |"
    yield "|---|---|---|---|"
    for key, field in plain_fields(model).items():
        name = "queue.name" if key == "queue" else key
        yield _row(f"`{name}`", metavar(field), _default(field), field.description or "")
    yield ""


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "needed"
    return "" if field.default is None else f"`{written_default(field)}`"


def _plugins(title: str, section: str, registry: Registry[Any]) -> Iterator[str]:
    """The sections of what streamd itself brings along; others have their own documentation."""
    yield f"## {title}\n"
    for plugin in registry.plugins():
        if plugin.distribution != "streamd" or plugin.spec is None:
            continue
        spec = plugin.spec
        yield f"### `[{section}.{spec.name}]`\n"
        yield f"{spec.summary[0].upper()}{spec.summary[1:]}.\n"
        yield "| key | type | default | meaning |"
        yield "|---|---|---|---|"
        docs, hints = field_docs(spec.config_type), get_type_hints(spec.config_type)
        for field in dataclasses.fields(spec.config_type):
            default = default_text(field)
            shown = "" if default == "unset" else f"`{default}`"
            hint = type_text(hints[field.name])
            yield _row(f"`{field.name}`", hint, shown, docs.get(field.name, ""))
        yield ""


def _row(*cells: str) -> str:
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference(), encoding="utf-8")
