"""Figures of a report, as SVG and PNG: boxes over runs, and time series of one run.

The same results give the same SVG: no date in it, identifiers from a fixed salt.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streamd.errors import StreamdError
from streamd.lab.analyse import Results
from streamd.lab.experiment import Figure, Panel
from streamd.lab.extra import need
from streamd.lab.metrics import heading, shown
from streamd.lab.store import Store

COLORS = ("#c1666b", "#2a7f9e", "#7a9e2a", "#8e5ea2", "#d4a017", "#555555")
_GROUND = "#bbbbbb"
_STYLE = {
    "svg.hashsalt": "streamd",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
}
_SERIES_TABLE = "series"
_TIME = "time_s"


def draw(results: Results, store: Store, folder: Path) -> list[tuple[str, Path]]:
    """Draw every figure into `folder`; title and SVG file of each.

    StreamdError when a file cannot be written.
    """
    matplotlib = need("matplotlib")
    need("matplotlib.figure")
    drawn = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with matplotlib.rc_context(_STYLE):
            for figure in results.experiment.figures:
                make = _boxes if figure.kind == "boxes" else _series
                for name, title, canvas in make(matplotlib, results, store, figure):
                    drawn.append((title, _save(canvas, folder / name)))
    except OSError as error:
        raise StreamdError(f"{folder}: cannot be written: {error.strerror or error}") from None
    return drawn


def _save(canvas: Any, stem: Path) -> Path:
    svg = stem.with_name(f"{stem.name}.svg")
    canvas.savefig(svg, metadata={"Date": None})
    canvas.savefig(stem.with_name(f"{stem.name}.png"), dpi=150)
    return svg


Drawn = list[tuple[str, str, Any]]


def _boxes(matplotlib: Any, results: Results, _store: Store, figure: Figure) -> Drawn:
    """One set of axes per metric, a box per cell and level, published values as diamonds."""
    count = len(figure.metrics)
    columns = min(count, 3)
    rows = -(-count // columns)
    canvas = matplotlib.figure.Figure(figsize=(3.6 * columns, 2.9 * rows), layout="constrained")
    axes = canvas.subplots(rows, columns, squeeze=False)
    for index, metric in enumerate(figure.metrics):
        _box_axes(axes[index // columns][index % columns], results, metric)
    for index in range(count, rows * columns):
        axes[index // columns][index % columns].set_axis_off()
    return [(figure.name, figure.title, canvas)]


def _box_axes(axes: Any, results: Results, metric: str) -> None:
    how = shown(metric)
    ticks, names = [], []
    position = 0
    for cell in results.cells:
        for index, level in enumerate(results.compared):
            position += 1
            color = COLORS[index % len(COLORS)]
            values = [v * how.factor for v in results.values(cell, level, metric) if v is not None]
            if values:
                _box(axes, position, values, color)
            known = results.published(cell, level, metric)
            if known is not None:
                axes.plot([position + 0.38], [known * how.factor], "D", color="black", ms=4)
            ticks.append(position)
            names.append(_name(results, cell, level))
        position += 1
    axes.set_xticks(ticks, names, rotation=0 if len(ticks) <= 3 else 30, ha="center")
    axes.set_xlim(0.3, max(position, 1) - 0.2)
    axes.set_ylim(0, _top(axes))
    axes.set_title(heading(metric), fontsize=9)


def _top(axes: Any) -> float:
    """Room above the highest thing drawn, also where everything is 0."""
    highest = float(axes.dataLim.y1)
    return 1.1 * highest if 0 < highest < float("inf") else 1.0


def _box(axes: Any, position: int, values: Sequence[float], color: str) -> None:
    axes.boxplot(
        [values],
        positions=[position],
        widths=0.5,
        showfliers=False,
        patch_artist=True,
        boxprops={"facecolor": color, "alpha": 0.5},
        medianprops={"color": "black"},
    )
    axes.plot([position] * len(values), values, "o", color=color, ms=2.5)


def _name(results: Results, cell: dict[str, str], level: str) -> str:
    several = [name for name in cell if len(results.manifest["levels"][name]) > 1]
    return "\n".join([*(cell[name] for name in several), *([level] if level else [])]) or "runs"


def _series(matplotlib: Any, results: Results, store: Store, figure: Figure) -> Drawn:
    """Of every cell one figure: a column per level, a row per panel, from the first seed."""
    drawn: Drawn = []
    for cell in results.cells:
        tables = [
            (level, _of_flow(store.table(run["key"], _SERIES_TABLE), results.flow_number(run)))
            for level in results.compared
            for run in results.finished(cell, level)[:1]
        ]
        found = [(level, table) for level, table in tables if table is not None]
        if not found:
            continue
        canvas = matplotlib.figure.Figure(
            figsize=(4.6 * len(found), 2.0 * len(figure.panels)), layout="constrained"
        )
        grid = canvas.subplots(
            len(figure.panels), len(found), squeeze=False, sharex=True, sharey="row"
        )
        for column, (level, table) in enumerate(found):
            for row, panel in enumerate(figure.panels):
                _panel(grid[row][column], table, panel, level if row == 0 else "")
            grid[-1][column].set_xlabel("time (s)")
        suffix = "-".join(["", *cell.values()]).replace("/", "_")
        where = f" ({', '.join(cell.values())})" if cell else ""
        drawn.append((f"{figure.name}{suffix}", f"{figure.title}{where}", canvas))
    return drawn


def _of_flow(table: Any, number: int) -> Any:
    """The rows of one flow, where there are several."""
    if table is None or "flow" not in table.columns:
        return table
    return table.filter(table["flow"] == number)


def _panel(axes: Any, table: Any, panel: Panel, title: str) -> None:
    times = table[_TIME].to_list()
    several = len(panel.columns) > 1
    for index, name in enumerate(panel.columns):
        if name not in table.columns:
            continue
        values = [None if v is None else v * panel.scale for v in table[name].to_list()]
        held = [float("nan") if v is None else v for v in values]
        label = name.rpartition("_")[0] or name
        # The first of several is the ground the others stand on, such as the link's capacity.
        color = _GROUND if several and not index else COLORS[(index + 1) % len(COLORS)]
        axes.plot(times, held, lw=0.9, color=color, label=label)
    if several:
        axes.legend(fontsize=7, frameon=False, loc="upper right")
    axes.set_ylabel(panel.label)
    axes.set_ylim(0, panel.limit if panel.limit else _top(axes))
    axes.set_title(title, fontsize=9)
