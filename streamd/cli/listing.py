"""`streamd controllers`, `streamd queues` and `streamd config check`."""

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import typer

from streamd.cli.arguments import file_role
from streamd.config.docs import default_text, field_docs, type_text
from streamd.config.load import load
from streamd.config.model import ROLES
from streamd.registry import Plugin, Registry


def check_file(file: Path, role: str | None) -> int:
    """Load a file as the daemon it is for would; ConfigError if it is no good."""
    if role is not None and role not in ROLES:
        raise typer.BadParameter(f"{role!r} is not sender, receiver or bottleneck")
    role = role or file_role(file)
    load(ROLES[role], file=file, environ=os.environ)
    typer.echo(f"{file}: ok ({role})")
    return 0


def list_plugins(registry: Registry[Any], section: str, name: str | None) -> str:
    """All plug-ins of a kind, a line each, or everything about one of them."""
    if name is None:
        return "".join(f"{line}\n" for line in _table(registry.plugins()))
    return "".join(f"{line}\n" for line in _details(registry.get(name), section))


def _table(plugins: list[Plugin[Any]]) -> Iterator[str]:
    width = max((len(plugin.name) for plugin in plugins), default=0)
    for plugin in plugins:
        text = plugin.spec.summary if plugin.spec else f"does not work: {plugin.error}"
        yield f"{plugin.name:<{width}}  {text}  ({plugin.distribution} {plugin.version})"


def _details(spec: Any, section: str) -> Iterator[str]:
    yield f"{spec.name}: {spec.summary}"
    if spec.source:
        yield f"source: {spec.source}"
    for label in ("ecn_modes", "signals"):
        if values := getattr(spec, label, ()):
            yield f"{label.replace('_', ' ')}: {', '.join(values)}"
    yield f"parameters ([{section}.{spec.name}] in a file, --{section}.{spec.name}.KEY):"
    docs, hints = field_docs(spec.config_type), get_type_hints(spec.config_type)
    for field in dataclasses.fields(spec.config_type):
        yield f"  {field.name} = {default_text(field)}  ({type_text(hints[field.name])})"
        if field.name in docs:
            yield f"      {docs[field.name]}"
