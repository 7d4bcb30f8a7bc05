"""`streamd lab`."""

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the summary to this file.")]


def lab_app() -> typer.Typer:
    """The commands of the lab."""
    app = typer.Typer(help="Run grids of experiments and report them.", no_args_is_help=True)
    app.command("list")(list_experiments)
    app.command("run")(run)
    app.command("report")(report)
    return app


def list_experiments(
    experiment: Annotated[
        str | None, typer.Argument(metavar="NAME|FILE.toml", help="Show what it varies.")
    ] = None,
) -> None:
    """List the experiments that come with streamd, or the parameters and levels of one."""
    from streamd.lab.experiment import load, shipped

    if experiment is not None:
        for line in load(experiment).outline():
            typer.echo(line)
        return
    names = shipped()
    width = max(map(len, names))
    for name in names:
        typer.echo(f"{name:<{width}}  {load(name).title}")


def run(
    name: Annotated[str, typer.Argument(metavar="NAME|FILE.toml", help="The experiment.")],
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of results; default lab-results/NAME."),
    ] = None,
    runs: Annotated[
        int | None, typer.Option(min=1, max=10_000, help="Runs (seeds) of every cell.")
    ] = None,
    arms: Annotated[
        str | None,
        typer.Option(metavar="all|ARM,...", help="Bottleneck arms: --select arm=..."),
    ] = None,
    select: Annotated[
        list[str] | None,
        typer.Option(metavar="PARAMETER=LEVEL,...", help="Levels to run; may be repeated."),
    ] = None,
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Mahimahi trace of the link.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Worker processes; default one per core.")
    ] = None,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Run on this Dask cluster.")
    ] = None,
    live: Annotated[bool, typer.Option("--live", help="Real processes, not simulated.")] = False,
    json: Json = None,
) -> None:
    """Run an experiment, or what is missing of it: finished runs in the folder are kept."""
    from streamd.lab.command import RunOptions, run_experiment

    options = RunOptions(
        name=name,
        out=out,
        runs=runs,
        select=(*(select or ()), *(() if arms is None else (f"arm={arms}",))),
        trace=trace,
        jobs=jobs,
        dask=dask,
        live=live,
        json_file=json,
    )
    raise typer.Exit(run_experiment(options))


def report(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Results of `lab run`.")],
    json: Json = None,
) -> None:
    """Write report.html and figures into a folder of results."""
    from streamd.lab.command import report_folder

    raise typer.Exit(report_folder(folder, json))
