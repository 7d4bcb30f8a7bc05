"""Scenario files: what is understood, and how what is wrong is told."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from sim_scenarios import data, scenario

from streamd.cc.fixed import FixedConfig
from streamd.cc.scream.config import ScreamConfig
from streamd.config.model import BottleneckConfig, SenderConfig
from streamd.ecn import Ecn
from streamd.errors import ConfigError
from streamd.sim.reference import reference
from streamd.sim.scenario import FlowSpec, PathSpec, Scenario, load_scenario

DOCS = Path(__file__).parents[3] / "docs"

GOOD = """name = "l4s-12mbps"
duration = "30s"

[paths.up]
capacity = "12Mbps"
queue = "dualpi2"
queue_options = { packets = 100, mode = "linux" }
delay = "10ms"

[paths.down]
delay = "10ms"

[[flows]]
name = "video"
up = "up"
down = "down"
controller = "scream"
controller_options = { profile = "2026-03-04" }
ecn = "ect1"

[[flows]]
name = "other"
up = "up"
down = "down"
rate = "2Mbps"
start = "5s"
stop = "20s"
"""


def load(tmp_path: Path, text: str) -> Scenario:
    file = tmp_path / "s.toml"
    file.write_text(text)
    return load_scenario(file)


def refusal(tmp_path: Path, text: str) -> str:
    """What is said about a file, its folder left out."""
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    return str(caught.value).replace(f"{tmp_path}/", "")


def test_a_file_is_read_in_base_units(tmp_path: Path) -> None:
    loaded = load(tmp_path, GOOD)
    assert loaded.duration == 30.0
    assert loaded.paths["up"].capacity.rate_bps == 12_000_000
    assert loaded.paths["up"].delay == 0.01
    video, other = loaded.flows
    assert video.controller_choice()[1] == ScreamConfig(profile="2026-03-04")
    assert video.ecn_codepoint() == Ecn.ECT1
    assert other.controller_choice()[1] == FixedConfig(rate_bps=2e6, mss_bytes=1200)
    assert (other.start, other.stop) == (5.0, 20.0)


@pytest.mark.parametrize("encode_time", ["measured", "5ms", None])
def test_a_scenario_survives_being_written_as_json(encode_time: str | None) -> None:
    original = scenario(size="640x360", keyframe_on="loss", encode_time=encode_time)
    again = Scenario.model_validate(original.model_dump(mode="json"))
    assert again == original
    assert Scenario.model_validate_json(original.model_dump_json()) == original


def test_defaults_are_those_of_the_daemons() -> None:
    # The simulator's own source is synthetic, its files loop, its paths have no limit.
    for key in FlowSpec.model_fields.keys() & SenderConfig.model_fields.keys() - {"source", "loop"}:
        assert FlowSpec.model_fields[key].default == SenderConfig.model_fields[key].default, key
    for key in ("queue", "delay", "loss", "opportunity", "overhead", "repeat"):
        assert PathSpec.model_fields[key].default == BottleneckConfig.model_fields[key].default, key


def test_encode_time_depends_on_the_codec_unless_given() -> None:
    assert scenario().flows[0].modelled_encode_time == 0.0
    assert scenario(source="medium").flows[0].modelled_encode_time == 0.004
    assert scenario(encode_time="7ms").flows[0].modelled_encode_time == pytest.approx(0.007)
    assert scenario(encode_time="measured").flows[0].modelled_encode_time is None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('ecn = "ect1"', 'enc = "ect1"', "19: unknown key flows.video.enc; did you mean ecn?"),
        (
            'ecn = "ect1"',
            'ecn = "ect2"',
            "19: flows.video.ecn: Input should be 'notect', 'ect0'",
        ),
        (
            'rate = "2Mbps"',
            'rate = "2MB"',
            "25: flows.other.rate: unknown unit of rate 'MB' in '2MB'; use bps, kbps, Mbps or",
        ),
        (
            'down = "down"\nrate',
            'down = "dwon"\nrate',
            "24: flows.other.down: no path 'dwon'; there are: up, down",
        ),
        (
            'name = "other"',
            'name = "video"',
            "14: flows.video.name: 'video' names more than one",
        ),
        ('start = "5s"', 'start = "40s"', "27: flows.other.stop: 20 s is not after the start"),
        ('start = "5s"\nstop = "20s"', 'start = "30s"', "26: flows.other.start: 30 s is not"),
        (
            "packets = 100",
            "packts = 100",
            "7: unknown key paths.up.queue_options.packts; did",
        ),
        (
            "packets = 100",
            'packets = "many"',
            "7: paths.up.queue_options.packets: 'many' is",
        ),
        (
            'queue = "dualpi2"',
            'queue = "red"',
            "6: paths.up.queue: unknown queue discipline",
        ),
        ('"2026-03-04"', '"2025"', "18: flows.video.controller_options"),
        ('"scream"', '"bbr"', "17: flows.video.controller: unknown congestion controller 'bbr'"),
        (
            'delay = "10ms"\n\n[paths.down]',
            'delay = "-1ms"\n\n[paths.down]',
            "8: paths.up.del",
        ),
        ("[paths.down]", "[path.down]", "10: unknown key path; did you mean paths?"),
        ('duration = "30s"', "", " duration is needed"),
        ('duration = "30s"', 'duration = "30s"\nwarmup = "30s"', "3: warmup: 30 s leave"),
        (
            'duration = "30s"',
            "duration = true",
            "2: duration: true and false have no meaning",
        ),
        ('"12Mbps"', '"nothing.up"', "5: paths.up.capacity: cannot read trace nothing.up"),
        ('name = "l4s-12mbps"', 'name = "', "1: "),
        ('name = "l4s-12mbps"', 'name = "a b"', "1: name: String should match pattern"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in GOOD
    assert refusal(tmp_path, GOOD.replace(old, new, 1)).startswith(f"s.toml:{said}")


def test_every_problem_is_told_at_once(tmp_path: Path) -> None:
    text = GOOD.replace('ecn = "ect1"', "fps = -1").replace('capacity = "12Mbps"', "capcity = 1")
    said = refusal(tmp_path, text).splitlines()
    assert said[0].startswith("s.toml:5: unknown key paths.up.capcity; did you mean capacity?")
    assert said[1].startswith("s.toml:19: flows.video.fps: Input should be greater than 0")
    assert len(said) == 2


def test_a_malformed_trace_is_told_with_its_own_line(tmp_path: Path) -> None:
    trace = tmp_path / "t.up"
    trace.write_text("1\n3\n2\n")
    said = refusal(tmp_path, GOOD.replace("12Mbps", str(trace), 1))
    assert said == "s.toml:5: paths.up.capacity: t.up:3: 2 ms is before the 3 ms above"


def test_a_missing_file_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing\.toml: cannot be read: No such file"):
        load_scenario(tmp_path / "nothing.toml")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"min_rate": "2Mbps", "max_rate": "1Mbps"}, "min_rate"),
        ({"rate": "1Mbps", "controller": "nothing"}, "unknown congestion controller"),
        ({"first_seq": 65536}, "less than or equal to 65535"),
        ({"name": ""}, "match pattern"),
    ],
)
def test_values_that_do_not_fit_are_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Scenario.model_validate(data(**change))


def test_the_reference_page_is_up_to_date() -> None:
    assert (DOCS / "scenarios.md").read_text() == reference(), "run make docs"
