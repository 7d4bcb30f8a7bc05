"""From runs to tables: medians, intervals, published values, one page that needs nothing else."""

from pathlib import Path

import pytest
from lab_fakes import EXPERIMENT, InLine, grid, run_fake, run_or_raise

from streamd.lab import runner
from streamd.lab.analyse import analyse, difference, read, wall
from streamd.lab.grid import Choices
from streamd.lab.metrics import number, value_of
from streamd.lab.report import change, lines, write
from streamd.lab.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A folder with the six runs of the small experiment."""
    made = Store(tmp_path)
    runner.run(grid(), made, InLine(run_fake), runner.Silent())
    return made


def test_medians_quartiles_and_published_values(store: Store) -> None:
    (cell,) = analyse(read(store))["cells"]
    assert cell["at"] == {"arm": "weak"}
    assert cell["levels"]["classic"]["tx_bps"] == {
        "median": 3_200_000.0,
        "quartile_low": 3_150_000.0,
        "quartile_high": 3_250_000.0,
        "runs": 3,
        "published": 3_000_000.0,
    }
    assert cell["levels"]["l4s"]["freeze_count"]["median"] is None
    assert cell["differences"]["l4s"]["tx_bps"] == {
        "difference": -2_000_000.0,
        "low": -2_200_000.0,
        "high": -1_800_000.0,
        "published": -1_300_000.0,
    }


def test_the_interval_is_a_function_of_the_values_and_the_seed() -> None:
    base, other = [10.0, 11.0, 12.0, 13.0, 30.0], [7.0, 8.0, 8.5, 9.0, 9.5]
    found = difference(base, other, seed="a")
    assert found is not None
    assert found == difference(base, other, seed="a")
    assert found.difference == -3.5
    assert found.low < -3.5 < found.high < 0
    same = difference([5.0, 5.0], [5.0, 5.0], seed="a")
    assert same == (0.0, 0.0, 0.0)
    assert difference([], other, seed="a") is None


def test_the_interval_covers_what_it_says() -> None:
    # Medians of 200 values 0..199 and the same shifted by 1000: far apart, tight.
    base = [float(value) for value in range(200)]
    found = difference(base, [value + 1000 for value in base], seed="b")
    assert found is not None
    assert 960 < found.low < 1000 < found.high < 1040


def test_the_analysis_is_the_same_in_another_folder(store: Store, tmp_path: Path) -> None:
    other = Store(tmp_path / "again")
    runner.run(grid(), other, InLine(run_fake), runner.Silent())
    assert analyse(read(other)) == analyse(read(store))
    assert wall(read(other), other)["folder"] != wall(read(store), store)["folder"]


def test_the_page_stands_alone(store: Store) -> None:
    page, _, _ = write(store)
    text = page.read_text(encoding="utf-8")
    assert "<title>Classic &lt;against&gt; L4S</title>" in text
    assert "<td>3.20 [3.15, 3.25]</td>" in text
    assert '<td class="published">3.00</td>' in text
    assert "<td>-2.00 [-2.20, -1.80]</td><td>-62.5 %</td>" in text
    assert '<td class="published">-1.30</td>' in text
    assert text.count("data:image/svg+xml;base64,") == 2
    assert 'src="http' not in text
    assert "href=" not in text


def test_figures_are_svg_and_png_and_the_same_each_time(store: Store) -> None:
    write(store)
    folder = store.folder / "figures"
    assert sorted(path.name for path in folder.iterdir()) == [
        "boxes.png",
        "boxes.svg",
        "series-weak.png",
        "series-weak.svg",
    ]
    first = {path.name: path.read_bytes() for path in folder.glob("*.svg")}
    write(store)
    assert {path.name: path.read_bytes() for path in folder.glob("*.svg")} == first


def test_missing_and_crashed_runs_are_said_first(tmp_path: Path) -> None:
    store = Store(tmp_path)
    runner.run(grid(), store, InLine(run_or_raise), runner.Silent())
    page, _, analysis = write(store)
    text = page.read_text(encoding="utf-8")
    assert "1 of 6 runs are missing." in text
    assert "1 runs crashed: ValueError: no such thing as seed 2" in text
    assert [run["finished"] for run in analysis["runs"]] == [True, True, True, True, False, True]


def test_a_report_of_nothing_finished(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write_manifest(runner.manifest(grid()))
    page, _, _ = write(store)
    assert "6 of 6 runs are missing." in page.read_text(encoding="utf-8")


def test_another_trace_than_the_published_one_is_said(tmp_path: Path) -> None:
    text = EXPERIMENT + '\n[traces]\nup = { file = "published.up", otherwise = "lte" }\n'
    store = Store(tmp_path)
    store.write_manifest(runner.manifest(grid(text=text)))
    page, _, _ = write(store)
    expected = "up: lte took the place of the published published.up."
    assert expected in page.read_text(encoding="utf-8")


def test_without_a_comparison_there_is_a_row_per_cell(tmp_path: Path) -> None:
    text = EXPERIMENT.replace('compare = "mode"\n', "")
    store = Store(tmp_path)
    chosen = grid(Choices(runs=1), text)
    runner.run(chosen, store, InLine(run_fake), runner.Silent())
    page, _, _ = write(store)
    found = page.read_text(encoding="utf-8")
    assert '<tr><td>weak, l4s</td><td>1.10</td><td class="published">1.70</td>' in found


def test_the_tables_as_text(store: Store) -> None:
    found = list(lines(analyse(read(store))))
    assert found[0] == "weak classic"
    assert found[1].split() == [
        "Tx",
        "rate",
        "3.20",
        "[3.15,",
        "3.25]",
        "Mbps",
        "(published",
        "3.00)",
    ]
    assert found[2].split() == ["Freezes", "n/a"]


def test_numbers_for_people() -> None:
    assert number("tx_bps", 1_234_567.0, unit=True) == "1.23 Mbps"
    assert number("queue_delay_p95_s", None, unit=True) == "n/a"
    assert number("my_own_s", 0.25, unit=True) == "250.0 ms"
    assert number("freeze_count", 2.0, sign=True) == "+2.0"
    assert number("queue_delay_p95_s", -1e-9, sign=True) == "+0.0"
    assert change(-1.0, 4.0) == "-25.0 %"
    assert change(1.0, 0.0) == "n/a"
    assert value_of({"a": True, "b": "x", "c": 3}, "c") == 3.0
    assert value_of({"a": True, "b": "x", "c": 3}, "a") is None
    assert value_of({"a": True, "b": "x", "c": 3}, "b") is None
