"""`streamd demo`."""

from pathlib import Path
from typing import Annotated

import typer


def demo(
    seconds: Annotated[str, typer.Option(metavar="DURATION", help="How long to stream.")] = "30",
    trace: Annotated[
        str, typer.Option(metavar="TRACE|RATE", help="What the link carries.")
    ] = "lte",
    source: Annotated[
        str, typer.Option(metavar="low|medium|high|synthetic|FILE", help="What to stream.")
    ] = "medium",
    codec: Annotated[str, typer.Option(metavar="vp9|vp8|h264", help="Video codec.")] = "vp9",
    controller: Annotated[str, typer.Option(help="Congestion controller.")] = "scream",
    delay: Annotated[
        str, typer.Option(metavar="DURATION", help="One-way delay; a bare number is in ms.")
    ] = "10ms",
    loss: Annotated[str, typer.Option(metavar="RATIO", help="Random loss behind the queue.")] = "0",
    queue: Annotated[str, typer.Option(help="Queue discipline of the link.")] = "dualpi2",
    queue_arg: Annotated[
        list[str] | None,
        typer.Option(
            "--queue-arg", metavar="KEY=VALUE", help="Parameter of the queue; may be repeated."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of every random choice.")] = 1,
    json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the results to this file.")
    ] = None,
) -> None:
    """Stream the same video over equal links twice at once, Classic and L4S, and compare."""
    from streamd.config.units import parse_duration, parse_ratio
    from streamd.errors import ConfigError
    from streamd.stack.demo import DemoOptions, run

    defaults = DemoOptions()
    # The demo's own parameters are those of its own queue.
    own = defaults.queue_args if queue == defaults.queue else ()
    try:
        options = DemoOptions(
            seconds=parse_duration(seconds),
            trace=trace,
            source=source,
            codec=codec,
            controller=controller,
            delay_ms=parse_duration(delay, bare=1e-3) * 1e3,
            loss=parse_ratio(loss),
            queue=queue,
            queue_args=(*own, *(queue_arg or ())),
            seed=seed,
            json_file=json,
        )
    except ValueError as error:
        raise ConfigError(str(error)) from None
    raise typer.Exit(run(options))
