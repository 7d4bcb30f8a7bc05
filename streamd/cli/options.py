"""Daemon commands made from the configuration models: every key is a flag, with the key's help."""

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic.fields import FieldInfo

from streamd.cli.arguments import Flag
from streamd.config.docs import metavar, written_default
from streamd.config.layers import env_name, flag_name
from streamd.config.load import Loaded, load
from streamd.config.model import DaemonConfig, plain_fields

Action = Callable[[Loaded[Any]], int]


def daemon_command(model: type[DaemonConfig], action: Action, summary: str) -> Callable[..., None]:
    """A command function for typer: its flags come from `model`, then `action` is called."""
    fields = plain_fields(model)
    with_queue = "queue" in fields

    def command(ctx: typer.Context, config: Path | None, **values: Any) -> None:
        flags: list[Flag] = [
            (key, values[_parameter(key)], flag_name(key))
            for key in fields
            if values.get(_parameter(key)) is not None
        ]
        flags += _queue_arguments(values.get("queue_arg") or [])
        flags += ctx.obj or []
        loaded = load(model, file=config, environ=os.environ, flags=flags)
        raise typer.Exit(action(loaded))

    parameters = [
        _keyword("ctx", typer.Context, inspect.Parameter.empty),
        _keyword("config", _CONFIG, None),
        *(_option(key, field) for key, field in fields.items() if key != "role"),
    ]
    if with_queue:
        parameters.append(_keyword("queue_arg", _QUEUE_ARG, None))
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    command.__doc__ = f"{summary}\n\n{_EPILOG}"
    return command


_EPILOG = (
    "Every option is also a key of the file and an environment variable STREAMD_...; the command "
    "line counts most, then the environment, then the file. Parameters of plug-ins are given as "
    "--cc.NAME.KEY VALUE and --queue.NAME.KEY VALUE; see streamd controllers and streamd queues."
)
_CONFIG = Annotated[
    Path | None, typer.Argument(metavar="[CONFIG.toml]", help="Configuration file.")
]
_QUEUE_ARG = Annotated[
    list[str] | None,
    typer.Option(
        "--queue-arg",
        metavar="KEY=VALUE",
        help="Parameter of the queue discipline chosen; may be repeated.",
        show_default=False,
    ),
]


def _option(key: str, field: FieldInfo) -> inspect.Parameter:
    flag = flag_name(key)
    help_text = f"{field.description} [{env_name(key)}]{_default_text(field)}"
    if field.annotation is bool:
        flag = f"{flag}/--no-{flag.removeprefix('--')}"
        boolean = typer.Option(flag, help=help_text, show_default=False)
        return _keyword(_parameter(key), Annotated[bool | None, boolean], None)
    text = typer.Option(flag, metavar=metavar(field), help=help_text, show_default=False)
    return _keyword(_parameter(key), Annotated[str | None, text], None)


def _default_text(field: FieldInfo) -> str:
    """How a default is written by a user; nothing for one the description explains."""
    default = field.get_default(call_default_factory=True)
    if field.is_required():
        return " (needed)"
    if default is None or field.annotation is bool:
        return ""
    return f" (default {written_default(field)})"


def _parameter(key: str) -> str:
    # `json` and the like would hide modules and builtins if they were bare names.
    return f"opt_{key}"


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default
    )


def _queue_arguments(given: list[str]) -> list[Flag]:
    flags: list[Flag] = []
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise typer.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="--queue-arg")
        flags.append((f"queue..{key.strip()}", value.strip(), "--queue-arg"))
    return flags
