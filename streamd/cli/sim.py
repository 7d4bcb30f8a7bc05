"""`streamd sim`."""

from pathlib import Path
from typing import Annotated

import typer


def sim(
    scenario: Annotated[
        Path, typer.Argument(metavar="SCENARIO.toml", help="What to simulate (docs/scenarios.md).")
    ],
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random choice.")] = 1,
    json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the results to this file.")
    ] = None,
) -> None:
    """Run a scenario on a virtual clock: same file, seed and version, same results."""
    from streamd.observability.results import check_writable, write_json
    from streamd.sim.scenario import load_scenario
    from streamd.sim.world import simulate
    from streamd.stack import demo_view

    loaded = load_scenario(scenario)
    if json is not None:
        check_writable(json)
    result = simulate(loaded, seed=seed)
    console = demo_view.console()
    console.print(demo_view.final(result.summary["flows"]))
    console.print(f"events {result.summary['events_sha256']}", highlight=False, soft_wrap=True)
    if json is not None:
        write_json(json, result.summary)
