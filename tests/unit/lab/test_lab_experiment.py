"""Experiment files: what is read, and what is refused with file and line."""

from pathlib import Path

import pytest
from lab_fakes import EXPERIMENT, experiment

from streamd.errors import ConfigError
from streamd.lab.execute import check
from streamd.lab.experiment import load, load_file, parse, shipped
from streamd.lab.grid import Choices, build

SHIPPED = [
    "fig1-synthetic-12mbps",
    "fig2-medium-motion",
    "fig3-synthetic",
    "fig4-loss-1pct",
    "fig5-6-motion",
    "robust-video",
    "table1-trace",
    "table2-ti",
]


def test_the_experiments_of_the_paper_are_shipped() -> None:
    assert shipped() == SHIPPED


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_experiment_makes_a_grid(name: str) -> None:
    found = load(name)
    assert found.name == name
    grid = build(found, Choices(), check)
    assert grid.jobs
    if "arm" in grid.levels:
        assert grid.levels["arm"] == ["weak-10ms"]
        every = build(found, Choices(select={"arm": ["all"]}), check)
        assert every.levels["arm"] == ["right-1ms", "weak-1ms", "weak-10ms"]
        assert len(every.jobs) == 3 * len(grid.jobs)


def test_levels_of_a_parameter_and_of_varied_keys() -> None:
    text = EXPERIMENT + '\n[vary]\n"flows.video.fps" = [25, 50]\n'
    levels = experiment(text).levels()
    assert list(levels) == ["arm", "mode", "flows.video.fps"]
    assert levels["flows.video.fps"]["50"] == {"flows.video.fps": 50}
    assert levels["mode"]["l4s"] == {"flows.video.ecn": "ect1"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('title = "', 'titel = "', r"small\.toml:2: unknown key titel; did you mean title\?"),
        ("runs = 3", "runs = 0", r"small\.toml:3: runs: .*greater than or equal to 1, got 0"),
        ('metrics = ["tx_bps", "freeze_count"]\n', "", r"small\.toml: metrics is needed"),
        ('compare = "mode"', 'compare = "mood"', r"small\.toml:4: .*no parameter mood"),
        ('arm = ["weak"]', 'arm = ["wek"]', r"small\.toml:8: arm has no level wek; did you mean"),
        ('arm = ["weak"]', "arm = []", r"small\.toml:8: no level of arm is chosen"),
        (
            '"flows.video.ecn" = "ect1"',
            '"paths.up.queue_options.gain" = 2',
            r"small\.toml:\d+: arm and mode both set paths\.up\.queue_options\.gain",
        ),
        (
            'at = { mode = "l4s" }',
            'at = { mode = "l5s" }',
            r"small\.toml:39: published tx_bps: mode has no level l5s",
        ),
        (
            'kind = "boxes"\nmetrics = ["tx_bps"]',
            'kind = "boxes"',
            r"figure boxes .* needs metrics",
        ),
        ("runs = 3", 'runs = 3\nkind = "trace"', r"kind trace needs a table \[probe\]"),
        ("runs = 3", "runs = = 3", r"small\.toml: not TOML: .*line 3"),
    ],
)
def test_a_bad_experiment_is_one_clear_error(old: str, new: str, message: str) -> None:
    assert old in EXPERIMENT
    with pytest.raises(ConfigError, match=message):
        experiment(EXPERIMENT.replace(old, new))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('[vary]\n"flows.video.fps" = []\n', "flows.video.fps has no levels"),
        ('[vary]\n"flows.video.fps" = [25, 25]\n', "has a value twice"),
        ('[vary]\nmode = ["a"]\n', "mode is the name of a parameter as well"),
        ("[parameters.empty]\n", "parameter empty has no levels"),
    ],
)
def test_an_impossible_grid(more: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        experiment(f"{EXPERIMENT}\n{more}")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'metrics = ["tx_bps", "freeze_count"]',
            'metrics = ["tx_bps", "freezes_count"]',
            r"small\.toml:\d+: metrics: no run has a figure freezes_count; did you mean freeze_",
        ),
        (
            'kind = "boxes"\nmetrics = ["tx_bps"]',
            'kind = "boxes"\nmetrics = ["tx_bsp"]',
            r"small\.toml:\d+: figures: no run has a figure tx_bsp; did you mean [tr]x_bps",
        ),
        (
            'metric = "tx_bps"',
            'metric = "tx"',
            r"small\.toml:\d+: published: no run has a figure tx",
        ),
        (
            'metrics = ["tx_bps", "freeze_count"]',
            'metrics = ["keyframe_requests_count"]',
            r"no run has a figure keyframe_requests_count; did you mean keyframes_count",
        ),
    ],
)
def test_a_figure_no_run_has_is_an_error(old: str, new: str, message: str) -> None:
    assert old in EXPERIMENT
    with pytest.raises(ConfigError, match=message):
        experiment(EXPERIMENT.replace(old, new))


def test_a_flow_the_scenario_does_not_have_is_an_error() -> None:
    with pytest.raises(
        ConfigError, match=r"^small\.toml:1: flow: the scenario has no flow vidoe; d"
    ):
        experiment('flow = "vidoe"\n' + EXPERIMENT)
    assert experiment('flow = "video"\n' + EXPERIMENT).flow == "video"


def test_a_series_no_run_has_is_an_error() -> None:
    text = (
        EXPERIMENT
        + """
[[figures]]
name = "more"
title = "More"
kind = "series"
panels = [{ label = "rate", columns = ["tx_bps", "tx_rate"] }]
"""
    )
    with pytest.raises(ConfigError, match=r"figure more: no series tx_rate; known: time_s"):
        experiment(text)


def test_the_scenario_may_be_a_file_beside_the_experiment(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text('name = "base"\nduration = "5s"\n', encoding="utf-8")
    file = tmp_path / "mine.toml"
    file.write_text(
        'name = "mine"\ntitle = "t"\nmetrics = ["tx_bps"]\nscenario = "base.toml"\n',
        encoding="utf-8",
    )
    assert load(str(file)).base() == {"name": "base", "duration": "5s"}
    (tmp_path / "base.toml").unlink()
    with pytest.raises(ConfigError, match=r"base\.toml: cannot be read: No such file"):
        load_file(file)


def test_an_unknown_name_lists_what_there_is() -> None:
    with pytest.raises(ConfigError, match=r"no file is named 'fig2'.*fig2-medium-motion"):
        load("fig2")
    with pytest.raises(ConfigError, match=r"gone\.toml: cannot be read"):
        load("gone.toml")


def test_an_experiment_without_scenario_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"x\.toml: kind scenario needs a table \[scenario\]"):
        parse('name = "x"\ntitle = "t"\nmetrics = ["a"]\n', "x.toml", Path())


def test_the_example_of_the_manual_is_what_it_says() -> None:
    manual = Path(__file__).parents[3] / "docs" / "experiments.md"
    _, _, rest = manual.read_text(encoding="utf-8").partition("```toml\n")
    found = parse(rest.partition("```")[0], "step.toml", Path())
    grid = build(found, Choices(), check)
    # "2 steps x 2 capacities x 3 seeds = 12 runs"
    assert len(grid.jobs) == 12
    assert grid.levels == {"step": ["1ms", "5ms"], "paths.up.capacity": ["6Mbps", "24Mbps"]}
    assert grid.jobs[0].config["paths"]["up"]["capacity"] == "6Mbps"
