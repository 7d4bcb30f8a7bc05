"""Grids: which runs an experiment has, what each is known by, and grids that cannot be."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from lab_fakes import EXPERIMENT, accept, experiment, grid

from streamd.errors import ConfigError
from streamd.lab import identity, runner
from streamd.lab.execute import check
from streamd.lab.experiment import Kind, parse
from streamd.lab.grid import Choices, build, set_key
from streamd.lab.identity import portable, run_key

SCENARIO = """\
name = "one"
title = "One cell of a real scenario"
metrics = ["tx_bps"]

[scenario]
name = "one"
duration = "2s"

[scenario.paths.up]
capacity = "12Mbps"
delay = "5ms"

[[scenario.flows]]
name = "video"
up = "up"
down = "up"
"""
TRACED = EXPERIMENT + '\n[traces]\nup = { file = "a.up", otherwise = "lte" }\n'


def test_the_product_of_levels_and_seeds() -> None:
    found = grid()
    assert [(job.at["arm"], job.at["mode"], job.seed) for job in found.jobs] == [
        *(("weak", "classic", seed) for seed in (1, 2, 3)),
        *(("weak", "l4s", seed) for seed in (1, 2, 3)),
    ]
    job = found.jobs[3]
    assert job.config["paths"]["up"]["queue_options"] == {"mode": "mahimahi", "gain": 0.25}
    assert job.config["flows"][0]["ecn"] == "ect1"
    assert len({job.key for job in found.jobs}) == 6


def test_the_base_is_not_touched() -> None:
    made = experiment()
    build(made, Choices(select={"arm": ["all"]}), accept)
    assert made.base()["paths"]["up"]["queue_options"] == {"mode": "mahimahi"}


def test_choices_on_the_command_line() -> None:
    found = grid(Choices(runs=1, select={"arm": ["all"], "mode": ["l4s"]}))
    assert found.levels == {"arm": ["right", "weak"], "mode": ["l4s"]}
    assert [job.seed for job in found.jobs] == [1, 1]


@pytest.mark.parametrize(
    ("select", "message"),
    [
        ({"arm": ["rigt"]}, "arm has no level rigt; did you mean right"),
        ({"arms": ["all"]}, "no parameter arms; did you mean arm"),
        ({"mode": []}, "no level of mode is chosen"),
    ],
)
def test_a_choice_that_is_not_there(select: dict[str, list[str]], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        grid(Choices(select=select))


def test_too_many_runs() -> None:
    values = ", ".join(map(str, range(1, 60)))
    text = EXPERIMENT + f'\n[vary]\n"flows.video.fps" = [{values}]\n'
    with pytest.raises(ConfigError, match="1180000 runs; an experiment has at most 100000"):
        grid(Choices(runs=10_000), text)


def test_a_configuration_that_cannot_be_run_is_named_by_its_levels() -> None:
    def refuse(kind: Kind, config: dict[str, Any]) -> None:
        if config["flows"][0]["ecn"] == "ect1":
            raise ConfigError("flows.0.ecn: not today")

    with pytest.raises(ConfigError, match=r"small, arm weak, mode l4s: flows\.0\.ecn: not today"):
        build(experiment(), Choices(), refuse)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("paths.upp.delay", "there is no path upp; did you mean up"),
        ("flows.audio.fps", "nothing there is named audio"),
        ("flows.video", "video is a table, not a value"),
        ("name.x", "name is a value, not a table"),
    ],
)
def test_a_key_the_scenario_has_no_place_for(key: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        set_key(experiment().base(), key, 1)


def test_the_key_of_a_run_changes_with_seed_configuration_and_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = run_key("scenario", {"a": {"b": 1, "c": 2}}, 1)
    assert run_key("scenario", {"a": {"c": 2, "b": 1}}, 1) == first
    assert len(first) == 20
    others = {
        run_key("scenario", {"a": {"b": 1, "c": 2}}, 2),
        run_key("scenario", {"a": {"b": 1, "c": 3}}, 1),
        run_key("scenario", {"a": {"b": 1, "c": 2}}, 1, live=True),
        run_key("trace", {"a": {"b": 1, "c": 2}}, 1),
    }
    monkeypatch.setattr(identity, "code_digest", lambda **_: "another version")
    others.add(run_key("scenario", {"a": {"b": 1, "c": 2}}, 1))
    assert len(others | {first}) == 6


def test_a_trace_counts_by_its_content_not_by_its_place(tmp_path: Path) -> None:
    for folder, text in (("one", "1\n"), ("two", "1\n"), ("three", "1\n2\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "t.up").write_text(text, encoding="ascii")
    configs = [
        {"paths": {"up": {"capacity": str(tmp_path / name / "t.up")}}}
        for name in ("one", "two", "three")
    ]
    keys = [run_key("scenario", config, 1) for config in configs]
    assert keys[0] == keys[1] != keys[2]
    # SHA-256 of "1\n".
    digest = "4355a46b19d348dc2f57c046f8ef63d4538ebb936000f3c9ee954a27460dd865"
    assert portable(configs[0]) == {"paths": {"up": {"capacity": f"t.up sha256:{digest}"}}}


@pytest.mark.parametrize("capacity", ["12Mbps", "unlimited", "lte"])
def test_what_is_no_file_stays_as_it_is(capacity: str) -> None:
    config = {"flows": [{"source": "medium"}], "paths": {"up": {"capacity": capacity}}}
    assert portable(config) == config


def test_a_missing_trace_or_source_is_named() -> None:
    with pytest.raises(ConfigError, match=r"gone\.up: cannot be read: No such file"):
        run_key("scenario", {"capacity": "gone.up"}, 1)
    with pytest.raises(ConfigError, match=r"film\.mp4: cannot be read"):
        run_key("scenario", {"source": "film.mp4"}, 1)


def test_a_trace_given_by_hand_brings_its_counterpart(tmp_path: Path) -> None:
    for name in ("b.up", "b.down"):
        (tmp_path / name).write_text("1\n", encoding="ascii")
    text = TRACED.replace("[scenario.paths.up]", "[scenario.paths.down]\n[scenario.paths.up]")
    text += 'down = { file = "a.down", otherwise = "unlimited" }\n'
    found = grid(Choices(trace=tmp_path / "b.up"), text)
    assert found.traces == {"up": str(tmp_path / "b.up"), "down": str(tmp_path / "b.down")}
    assert found.jobs[0].config["paths"]["down"]["capacity"] == str(tmp_path / "b.down")
    (tmp_path / "b.down").unlink()
    assert grid(Choices(trace=tmp_path / "b.up"), text).traces["down"] == "unlimited"


def test_a_trace_given_by_hand_must_be_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read trace .*no\.up: No such file"):
        grid(Choices(trace=tmp_path / "no.up"), TRACED)
    (tmp_path / "bad.up").write_text("5\n3\n", encoding="ascii")
    with pytest.raises(ConfigError, match=r"bad\.up:2: 3 ms is before the 5 ms above"):
        grid(Choices(trace=tmp_path / "bad.up"), TRACED)
    with pytest.raises(ConfigError, match="small has no link to put the trace"):
        grid(Choices(trace=tmp_path / "bad.up"))


def test_traces_are_looked_for_in_the_folder_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAMD_TRACES", str(tmp_path))
    assert grid(text=TRACED).traces == {"up": "lte"}
    (tmp_path / "a.up").write_text("1\n", encoding="ascii")
    assert grid(text=TRACED).traces == {"up": str(tmp_path / "a.up")}


def test_a_bad_trace_of_a_scenario_is_found_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "bad.up").write_text("5\nx\n", encoding="ascii")
    text = SCENARIO.replace("12Mbps", str(tmp_path / "bad.up"))
    with pytest.raises(
        ConfigError, match=r"^small\.toml:10: paths\.up\.capacity: .*bad\.up:2: 'x' is not a whole"
    ):
        build(experiment(text), Choices(), check)
    text = SCENARIO.replace("12Mbps", str(tmp_path / "gone.up"))
    with pytest.raises(
        ConfigError, match=r"^small\.toml:10: paths\.up\.capacity: cannot read trace .*gone\.up"
    ):
        build(experiment(text), Choices(), check)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('delay = "5ms"', 'dealy = "5ms"', r"11: unknown key paths\.up\.dealy"),
        ('duration = "2s"', 'duration = "fast"', r"7: duration: 'fast' is not a duration"),
        ('down = "up"', 'down = "back"', r"16: flows\.video\.down: no path 'back'"),
        ('down = "up"', 'down = "up"\nfps = nan', r"17: flows\.video\.fps: .*finite.*, got nan"),
        ('down = "up"', 'down = "up"\nfps = inf', r"17: flows\.video\.fps: .*finite.*, got inf"),
        ('down = "up"', 'down = "up"\nsource = "a.mp4"', r"17: flows\.video\.source: a\.mp4 is no"),
    ],
)
def test_a_scenario_that_is_none_is_one_line(old: str, new: str, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"^small\.toml:{message}[^\n]*$"):
        build(experiment(SCENARIO.replace(old, new)), Choices(), check)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            '[parameters.a.x]\n"flows.video.fpss" = 3\n"flows.video.rate" = "1m"',
            r"19: a x: flows\.video\.rate: [^\n]*\n"
            r"small\.toml:18: a x: unknown key flows\.video\.fpss; did you mean fps\?",
        ),
        ('[vary]\n"flows.video.fps" = [30, -3]', r"18: flows\.video\.fps: [^\n]*greater than 0.*"),
        ('[draw]\n"flows.video.fps" = ["-1s", "1s"]', r"18: flows\.video\.fps: from -1s to 1s .*"),
        (
            '[vary]\n"flows.vidoe.fps" = [30]',
            r"18: .*nothing there is named vidoe; did you mean .*",
        ),
        (
            '[traces]\nup = { file = "a.up", otherwise = "lto" }',
            r"18: paths\.up\.capacity: .*lto.*",
        ),
    ],
)
def test_what_a_level_sets_is_told_by_its_own_line(more: str, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"\Asmall\.toml:{message}\Z"):
        build(experiment(f"{SCENARIO}{more}\n"), Choices(), check)


def test_a_scenario_in_a_file_of_its_own_is_told_by_that_file(tmp_path: Path) -> None:
    head, _, scenario = SCENARIO.partition("[scenario]\n")
    scenario = scenario.replace("scenario.", "").replace('down = "up"', 'down = "up"\nfsp = 3')
    (tmp_path / "base.toml").write_text(scenario, encoding="utf-8")
    found = parse(f'{head}scenario = "base.toml"\n', "mine.toml", tmp_path)
    with pytest.raises(ConfigError, match=r"base\.toml:12: unknown key flows\.video\.fsp"):
        build(found, Choices(), check)


def test_files_of_levels_that_are_not_run_need_not_be_there() -> None:
    levels = '[parameters.link.a]\n"paths.up.capacity" = "6Mbps"\n'
    levels += '[parameters.link.b]\n"paths.up.capacity" = "elsewhere/gone.up"\n'
    found = build(experiment(SCENARIO + levels), Choices(select={"link": ["a"]}), check)
    told = runner.manifest(found)["experiment"]
    assert isinstance(told, dict)
    assert told["parameters"]["link"]["b"] == {"paths.up.capacity": "gone.up"}


DRAWN = EXPERIMENT + '\n[draw]\n"flows.video.start" = ["1s", "2s"]\n'


def test_each_seed_draws_its_own_duration_the_same_in_every_cell() -> None:
    starts = [job.config["flows"][0]["start"] for job in grid(text=DRAWN).jobs]
    assert starts == ["1146822us", "1134574us", "1512332us"] * 2
    assert len({job.key for job in grid(text=DRAWN).jobs}) == 6


def test_live_runs_draw_nothing() -> None:
    assert "start" not in grid(Choices(live=True), DRAWN).jobs[0].config["flows"][0]


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        ('"flows.video.start" = ["2s", "1s"]', "from 2s to 1s there is nothing to draw"),
        ('"flows.video.start" = ["now", "1s"]', "'now' is not a duration"),
        ('"flows.video.ecn" = ["0s", "1s"]', "flows.video.ecn is set by a parameter as well"),
        ('"flows.video.start" = ["0s"]', "draw.flows.video.start"),
    ],
)
def test_a_draw_that_cannot_be(draw: str, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"^small\.toml:\d+: .*{message}"):
        experiment(f"{EXPERIMENT}\n[draw]\n{draw}\n")


@pytest.mark.parametrize(
    ("file", "live", "changes"),
    [
        ("cc/scream/window.py", False, True),
        ("lab/execute.py", False, True),
        ("lab/report.py", False, False),
        ("observability/metrics.py", False, False),
        ("daemon/sender.py", False, False),
        ("daemon/sender.py", True, True),
        ("cli/app.py", True, False),
    ],
)
def test_the_digest_of_the_code_is_of_what_figures_depend_on(
    file: str, live: bool, changes: bool, tmp_path: Path
) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text("one\n")
    before = identity.code_digest(live=live, root=tmp_path)
    path.write_text("two\n")
    identity.code_digest.cache_clear()
    assert (identity.code_digest(live=live, root=tmp_path) != before) is changes


@pytest.mark.parametrize(
    ("module", "left_out"),
    [
        ("streamd.sim.world", set(identity.NOT_IN_RESULTS)),
        ("streamd.daemon.sender", set(identity.NOT_IN_RESULTS) - set(identity.LIVE)),
        ("streamd.daemon.receiver", set(identity.NOT_IN_RESULTS) - set(identity.LIVE)),
        ("streamd.daemon.bottleneck", set(identity.NOT_IN_RESULTS) - set(identity.LIVE)),
    ],
)
def test_no_run_is_made_by_code_that_is_left_out(module: str, left_out: set[str]) -> None:
    program = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    rooms = {name.split(".")[1] for name in done.stdout.split() if name.startswith("streamd.")}
    assert "session" in rooms
    assert rooms & left_out == set()
