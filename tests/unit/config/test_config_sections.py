"""A plug-in's section against its dataclass, with a dataclass made for the purpose."""

from dataclasses import dataclass
from typing import Literal

import pytest

from streamd.config.docs import field_docs, type_text
from streamd.config.layers import Setting
from streamd.config.sections import SectionProblems, build_options
from streamd.errors import ConfigError


@dataclass(frozen=True)
class Parameters:
    target: float = 0.015
    """Queue delay (s)
    to aim at."""
    limit_bps: float = 1e6
    window_ms: float = 5.0
    share: float = 0.5
    packets: int | None = None
    """Most packets held."""
    mode: Literal["a", "b"] = "a"
    name: str = ""
    on: bool = False
    sizes: tuple[int, ...] = (1200,)

    def __post_init__(self) -> None:
        if self.target <= 0:
            raise ConfigError(f"target must be above 0, got {self.target}")


def build(**values: object) -> Parameters:
    settings = {key: Setting(value, f"f:{n}") for n, (key, value) in enumerate(values.items(), 1)}
    options = build_options(Parameters, "cc.x", settings)
    assert isinstance(options, Parameters)
    return options


@pytest.mark.parametrize(
    ("name", "written", "value"),
    [
        ("target", "5ms", 0.005),
        ("target", "0.25", 0.25),
        ("target", 1, 1.0),
        ("limit_bps", "3Mbps", 3e6),
        ("window_ms", "20ms", 20.0),
        ("window_ms", "20", 20.0),
        ("window_ms", "1s", 1000.0),
        ("share", "25%", 0.25),
        ("share", "1/4", 0.25),
        ("packets", "none", None),
        ("packets", "64KiB", 65536),
        ("packets", 7, 7),
        ("mode", "b", "b"),
        ("name", "5ms", "5ms"),
        ("on", "true", True),
        ("on", False, False),
        ("sizes", [500, 1200], (500, 1200)),
    ],
)
def test_values_as_they_are_written(name: str, written: object, value: object) -> None:
    assert getattr(build(**{name: written}), name) == pytest.approx(value)


def test_nothing_given_is_the_defaults() -> None:
    assert build() == Parameters()


def test_every_problem_is_named() -> None:
    with pytest.raises(SectionProblems) as caught:
        build(targt=1, packets=1.5, mode="c", on=3, share="1/0", limit_bps="5MBps", target=True)
    assert caught.value.lines == [
        "f:1: unknown key cc.x.targt; did you mean target?",
        "f:2: cc.x.packets: Input should be a valid integer, got a number with a fractional part,"
        " got 1.5",
        "f:3: cc.x.mode: Input should be 'a' or 'b', got 'c'",
        "f:4: cc.x.on: Input should be a valid boolean, unable to interpret input, got 3",
        "f:5: cc.x.share: Input should be a valid number, unable to parse string as a number,"
        " got '1/0'",
        "f:6: cc.x.limit_bps: unknown unit of rate 'MBps' in '5MBps'; use bps, kbps, Mbps or Gbps",
        "f:7: cc.x.target: true and false have no meaning here, got True",
    ]


def test_what_the_plugin_itself_refuses_names_the_place() -> None:
    with pytest.raises(SectionProblems) as caught:
        build(target=-1.0, share=0.1)
    assert caught.value.lines == ["f:1, f:2: cc.x: target must be above 0, got -1.0"]


def test_descriptions_stand_below_the_fields() -> None:
    assert field_docs(Parameters) == {
        "target": "Queue delay (s) to aim at.",
        "packets": "Most packets held.",
    }


def test_types_in_words() -> None:
    words = [
        type_text(hint) for hint in (int | None, Literal["a", "b"], tuple[int, ...], bool, str)
    ]
    assert words == ["integer", "a|b", "list of integer", "true|false", "text"]
