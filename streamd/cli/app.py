"""The tree of commands."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from streamd.cli.demo import demo
from streamd.cli.lab import lab_app
from streamd.cli.sim import sim

ABOUT = "Real-time video over RTP/UDP under congestion control, with L4S."
DAEMONS = {
    "sender": "Encode and send one stream under congestion control.",
    "receiver": "Receive a stream, send feedback, decode and judge it.",
    "bottleneck": "Relay UDP through a trace-driven link with a queue.",
}


def build_app(words: Sequence[str]) -> typer.Typer:
    """The parser for a command line that begins with `words`.

    A daemon's many options are made from its configuration model only when its command
    is meant, so that `--help` and health checks do not pay for them.
    """
    app = typer.Typer(
        name="streamd",
        help=ABOUT,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback(help=ABOUT)(_global_options)
    config = typer.Typer(help="Check and show configurations.", no_args_is_help=True)
    config.command("check")(config_check)
    config.add_typer(_show_app(words), name="show")
    for role, summary in DAEMONS.items():
        app.command(role)(_daemon(role, summary, run_daemon, meant=role in words[:1]))
    for command in (demo, sim, controllers, queues, health, version):
        app.command()(command)
    app.add_typer(config, name="config")
    app.add_typer(lab_app(), name="lab")
    return app


def _show_app(words: Sequence[str]) -> typer.Typer:
    show = typer.Typer(
        help="Print the configuration in force and where each value comes from.",
        no_args_is_help=True,
    )
    for role in DAEMONS:
        summary = f"The configuration a {role} would run with."
        meant = list(words[:3]) == ["config", "show", role]
        show.command(role)(_daemon(role, summary, show_config, meant=meant))
    return show


def _daemon(
    role: str, summary: str, action: Callable[[str, Any], int], *, meant: bool
) -> Callable[..., None]:
    """The command of a daemon; without its options when another one is meant."""
    if meant:
        from streamd.cli.options import daemon_command
        from streamd.config.model import ROLES

        return daemon_command(ROLES[role], lambda loaded: action(role, loaded), summary)

    def named_only() -> None:
        raise AssertionError("the command line was prepared for another command")

    named_only.__doc__ = summary
    return named_only


def run_daemon(role: str, loaded: Any) -> int:
    """Run a daemon to its end."""
    if role == "sender":
        from streamd.daemon.sender import run

        return run(loaded.config)
    if role == "receiver":
        from streamd.daemon.receiver import run as run_receiver

        return run_receiver(loaded.config)
    from streamd.daemon.bottleneck import run as run_bottleneck

    return run_bottleneck(loaded.config)


def show_config(_role: str, loaded: Any) -> int:
    """Print a loaded configuration."""
    from streamd.config.show import show

    typer.echo(show(loaded), nl=False)
    return 0


def config_check(
    file: Annotated[Path, typer.Argument(metavar="CONFIG.toml", help="File to check.")],
    role: Annotated[
        str | None,
        typer.Option(metavar="sender|receiver|bottleneck", help="Which daemon it is for."),
    ] = None,
) -> None:
    """Check a configuration file: exit code 0 when a daemon would take it, else 78."""
    from streamd.cli.listing import check_file

    raise typer.Exit(check_file(file, role))


def controllers(
    name: Annotated[str | None, typer.Argument(help="Show the parameters of this one.")] = None,
) -> None:
    """List the congestion controllers installed, or one's parameters."""
    from streamd.cli.listing import list_plugins
    from streamd.config.plugins import CONTROLLERS

    typer.echo(list_plugins(CONTROLLERS, "cc", name), nl=False)


def queues(
    name: Annotated[str | None, typer.Argument(help="Show the parameters of this one.")] = None,
) -> None:
    """List the queue disciplines installed, or one's parameters."""
    from streamd.cli.listing import list_plugins
    from streamd.config.plugins import QUEUES

    typer.echo(list_plugins(QUEUES, "queue", name), nl=False)


def health(
    url: Annotated[str, typer.Option(help="Page to ask.")] = "http://127.0.0.1:9464/-/ready",
    timeout: Annotated[
        str, typer.Option(metavar="DURATION", help="Longest wait for the answer.")
    ] = "3s",
) -> None:
    """Ask a daemon whether it is ready: exit code 0 if it says so, else 1."""
    from streamd.cli.health import ask

    raise typer.Exit(ask(url, timeout))


def _show_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


def _global_options(
    shown: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_show_version, help="Print the version and end."
        ),
    ] = False,
) -> None:
    """Options before the command: each acts by itself."""


def version() -> None:
    """Print the version."""
    from streamd import __version__

    typer.echo(__version__)
