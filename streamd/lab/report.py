"""A report of one folder of results: one HTML page that needs nothing else, and its figures.

Every table has the published value beside ours. What is missing is said at the top: runs
not done, runs that crashed, links that carried another trace than the one published.
"""

import base64
from collections import Counter
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

from streamd.lab import figures
from streamd.lab.analyse import CONFIDENCE, Results, analyse, read, warnings
from streamd.lab.metrics import heading, number, shown
from streamd.lab.store import Store
from streamd.observability.results import write_text

PAGE = "report.html"

_CSS = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem;
  color: #222; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid #ddd; text-align: right; }
th:first-child, td:first-child { text-align: left; }
thead th { border-bottom: 2px solid #888; vertical-align: bottom; }
td.published, th.published { color: #666; font-style: italic; }
.note { background: #fff6dd; padding: .5rem 1rem; border-left: 4px solid #d4a017; }
img { max-width: 100%; }
code { font-size: 90%; }
"""

_DEFINITIONS = """
Values are medians over runs with quartiles in brackets. A difference is that of the medians,
with a {confidence:.0f} % bootstrap interval over runs. "True sojourn" is dequeue minus arrival of
every media packet at the bottleneck; "queue delay as the BW tool averages it" is an exponential
average sampled every two seconds, which is what the tool prints and papers based on it publish.
The two are different quantities: compare each only with itself. Freezes follow the WebRTC rule
unless the scenario says otherwise. A dash: nothing was published for this place.
"""


def write(store: Store) -> tuple[Path, Results, dict[str, Any]]:
    """Write the page and the figures of a folder; the page, the results and their analysis.

    ConfigError when the folder holds no results, StreamdError when it cannot be written to.
    """
    results = read(store)
    analysis = analyse(results)
    drawn = figures.draw(results, store, store.folder / "figures")
    page = store.folder / PAGE
    text = "".join(_page(results, analysis, drawn, store))
    write_text(page, text)
    return page, results, analysis


def _page(
    results: Results, analysis: dict[str, Any], drawn: list[tuple[str, Path]], store: Store
) -> Iterator[str]:
    experiment = results.experiment
    yield '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
    yield f"<title>{escape(experiment.title)}</title>\n<style>{_CSS}</style></head><body>\n"
    yield f"<h1>{escape(experiment.title)}</h1>\n"
    yield f"<p>{escape(experiment.description)}</p>\n"
    for note in notes(results, store):
        yield f'<p class="note">{escape(note)}</p>\n'
    for cell in analysis["cells"] if experiment.compare else ():
        yield from _comparison(cell)
    if not experiment.compare:
        yield from _listing(experiment.metrics, analysis["cells"])
    for title, file in drawn:
        yield from _picture(title, file)
    yield f"<p>{escape(_DEFINITIONS.format(confidence=100 * CONFIDENCE).strip())}</p>\n"
    yield from _origin(analysis)
    yield "</body></html>\n"


def notes(results: Results, store: Store) -> list[str]:
    """What a reader must know before the tables."""
    found = []
    missing = [run for run in results.runs if "summary" not in run]
    crashed = [text for run in missing if (text := store.failure(run["key"]))]
    if missing:
        found.append(f"{len(missing)} of {len(results.runs)} runs are missing.")
    if crashed:
        kinds = "; ".join(dict.fromkeys(crashed))
        found.append(f"{len(crashed)} runs crashed: {kinds}")
    doubtful = [text for run in results.runs for text in warnings(run.get("summary", {}))]
    for text, count in Counter(doubtful).items():
        found.append(f"In {count} runs: {text}")
    for path, choice in results.experiment.traces.items():
        carried = results.manifest["traces"][path]["capacity"]
        if not carried.startswith(f"{choice.file} "):
            found.append(f"{path}: {carried} took the place of the published {choice.file}.")
    return found


def _comparison(cell: Mapping[str, Any]) -> Iterator[str]:
    """A row per metric, a pair of columns per level, three per difference."""
    yield _title(cell["at"])
    yield "<table><thead><tr><th></th>"
    for level in cell["levels"]:
        yield f'<th>{escape(level)}</th><th class="published">published</th>'
    base = next(iter(cell["levels"]))
    for level in cell["differences"]:
        text = f"{escape(level)} &minus; {escape(base)}"
        yield f'<th>{text}</th><th>change</th><th class="published">published</th>'
    yield "</tr></thead><tbody>\n"
    for metric in next(iter(cell["levels"].values())):
        yield f"<tr><td>{escape(heading(metric))}</td>"
        for values in cell["levels"].values():
            yield f"<td>{spread(metric, values[metric])}</td>"
            yield f'<td class="published">{_published(metric, values[metric]["published"])}</td>'
        for values in cell["differences"].values():
            yield from _difference(metric, values[metric], cell["levels"][base][metric]["median"])
        yield "</tr>\n"
    yield "</tbody></table>\n"


def _difference(
    metric: str, values: Mapping[str, float | None], base: float | None
) -> Iterator[str]:
    yield f"<td>{interval(metric, values)}</td><td>{change(values['difference'], base)}</td>"
    known = values["published"]
    text = "&ndash;" if known is None else number(metric, known, sign=True)
    yield f'<td class="published">{text}</td>'


def spread(metric: str, values: Mapping[str, float | None]) -> str:
    """Median and quartiles."""
    middle = number(metric, values["median"])
    if values["median"] is None or values["runs"] == 1:
        return middle
    low, high = values["quartile_low"], values["quartile_high"]
    return f"{middle} [{number(metric, low)}, {number(metric, high)}]"


def interval(metric: str, values: Mapping[str, float | None]) -> str:
    """A difference and its interval."""
    if values["difference"] is None:
        return number(metric, None)
    ends = [number(metric, values[end], sign=True) for end in ("low", "high")]
    return f"{number(metric, values['difference'], sign=True)} [{', '.join(ends)}]"


def change(difference: float | None, base: float | None) -> str:
    """A difference relative to what it is a difference to."""
    if difference is None or not base:
        return "n/a"
    return f"{100 * difference / base:+.1f} %"


def _published(metric: str, value: float | None) -> str:
    return "&ndash;" if value is None else number(metric, value)


def _listing(metrics: list[str], cells: list[dict[str, Any]]) -> Iterator[str]:
    """Nothing is compared: a row per cell, a pair of columns per metric."""
    yield "<table><thead><tr><th></th>"
    for metric in metrics:
        yield f'<th>{escape(heading(metric))}</th><th class="published">published</th>'
    yield "</tr></thead><tbody>\n"
    for cell in cells:
        yield f"<tr><td>{escape(', '.join(cell['at'].values()) or 'runs')}</td>"
        for metric in metrics:
            values = next(iter(cell["levels"].values()))[metric]
            yield f"<td>{spread(metric, values)}</td>"
            yield f'<td class="published">{_published(metric, values["published"])}</td>'
        yield "</tr>\n"
    yield "</tbody></table>\n"


def _title(at: Mapping[str, str]) -> str:
    return f"<h2>{escape(', '.join(f'{k}: {v}' for k, v in at.items()))}</h2>\n" if at else ""


def _picture(title: str, file: Path) -> Iterator[str]:
    data = base64.b64encode(file.read_bytes()).decode()
    yield f"<figure><figcaption>{escape(title)}</figcaption>"
    yield f'<img alt="{escape(title)}" src="data:image/svg+xml;base64,{data}"></figure>\n'


def _origin(analysis: Mapping[str, Any]) -> Iterator[str]:
    """Where the numbers come from: enough to make them again."""
    seeds = analysis["seeds"]
    yield f"<p>Published values: {escape(analysis['published_source'])}. "
    yield f"streamd {escape(analysis['streamd'])}, code <code>{analysis['code'][:16]}</code>, "
    yield f"{len(seeds)} seeds per cell ({seeds[0]} to {seeds[-1]}).</p>\n"
    if analysis["traces"]:
        yield "<p>Links: "
        carried = [f"{path} {chosen['capacity']}" for path, chosen in analysis["traces"].items()]
        yield f"{escape('; '.join(carried))}.</p>\n"
    yield "<details><summary>Runs</summary><table><thead><tr><th>key</th><th>cell</th><th>seed</th>"
    yield "<th>events</th></tr></thead><tbody>\n"
    for run in analysis["runs"]:
        events = (run["events_sha256"] or "")[:16] or ("done" if run["finished"] else "missing")
        where = ", ".join(run["at"].values())
        yield f"<tr><td><code>{run['key']}</code></td><td>{escape(where)}</td>"
        yield f"<td>{run['seed']}</td><td><code>{events}</code></td></tr>\n"
    yield "</tbody></table></details>\n"


def lines(analysis: Mapping[str, Any]) -> Iterator[str]:
    """The tables as plain text, for a terminal."""
    for cell in analysis["cells"]:
        where = ", ".join(cell["at"].values())
        for level, metrics in cell["levels"].items():
            yield " ".join(filter(None, [where, level])) or "runs"
            for metric, values in metrics.items():
                known = values["published"]
                beside = "" if known is None else f"  (published {number(metric, known)})"
                unit = f" {shown(metric).unit}".rstrip()
                yield f"  {shown(metric).label:<48} {spread(metric, values):>26}{unit}{beside}"
