"""The entry-point registry, fed with fake distributions."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import Distribution, EntryPoint
from pathlib import Path

import pytest

from streamd.errors import ConfigError
from streamd.registry import Registry

Find = Callable[[str], Iterable[EntryPoint]]


@dataclass(frozen=True)
class GoodConfig:
    size: int = 1


@dataclass
class MutableConfig:
    size: int = 1


@dataclass(frozen=True)
class NoDefaultConfig:
    size: int


@dataclass(frozen=True)
class FakeSpec:
    name: str
    summary: str = "a fake"
    config_type: type = GoodConfig
    api_version: int = 1


ALPHA = FakeSpec("alpha")
BETA = FakeSpec("beta")
MISNAMED = FakeSpec("other")
FUTURE = FakeSpec("future", api_version=2)
MUTABLE = FakeSpec("mutable", config_type=MutableConfig)
NO_DEFAULT = FakeSpec("nodefault", config_type=NoDefaultConfig)
NO_DATACLASS = FakeSpec("nodataclass", config_type=int)
NOT_A_SPEC = 7
HERE = __name__


def distribution(folder: Path, name: str, version: str, entries: dict[str, str]) -> Distribution:
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = "".join(f"{key} = {value}\n" for key, value in entries.items())
    (info / "entry_points.txt").write_text(f"[fakes]\n{lines}")
    return Distribution.at(info)


def finder(*distributions: Distribution) -> Find:
    def find(group: str) -> Iterable[EntryPoint]:
        return [e for d in distributions for e in d.entry_points if e.group == group]

    return find


def registry(find: Find) -> Registry[FakeSpec]:
    return Registry("fakes", kind="fake", spec_type=FakeSpec, find=find)


def test_finds_by_name_and_lists_with_distribution(tmp_path: Path) -> None:
    one = distribution(tmp_path, "one", "1.2", {"alpha": f"{HERE}:ALPHA"})
    two = distribution(tmp_path, "two", "3.4", {"beta": f"{HERE}:BETA"})
    fakes = registry(finder(two, one))
    assert fakes.names() == ["alpha", "beta"]
    assert fakes.get("alpha") is ALPHA
    listed = [(p.name, p.distribution, p.version, p.spec, p.error) for p in fakes.plugins()]
    assert listed == [("alpha", "one", "1.2", ALPHA, None), ("beta", "two", "3.4", BETA, None)]


def test_unknown_name_lists_what_is_installed(tmp_path: Path) -> None:
    one = distribution(tmp_path, "one", "1.2", {"beta": f"{HERE}:BETA", "alpha": f"{HERE}:ALPHA"})
    with pytest.raises(ConfigError) as caught:
        registry(finder(one)).get("gamma")
    assert str(caught.value) == "unknown fake 'gamma'; installed: alpha, beta"


def test_unknown_name_with_nothing_installed() -> None:
    with pytest.raises(ConfigError) as caught:
        registry(finder()).get("gamma")
    assert str(caught.value) == "unknown fake 'gamma'; installed: none"


def test_two_distributions_with_one_name_are_both_named(tmp_path: Path) -> None:
    one = distribution(tmp_path, "one", "1.2", {"alpha": f"{HERE}:ALPHA"})
    two = distribution(tmp_path, "two", "3.4", {"alpha": f"{HERE}:BETA", "beta": f"{HERE}:BETA"})
    fakes = registry(finder(two, one))
    with pytest.raises(ConfigError) as caught:
        fakes.get("alpha")
    assert str(caught.value) == (
        f"two installed fakes are named 'alpha': one 1.2 ({HERE}:ALPHA) and two 3.4 ({HERE}:BETA)"
    )
    assert fakes.get("beta") is BETA
    assert [(p.name, p.distribution, p.error is None) for p in fakes.plugins()] == [
        ("alpha", "two", False),
        ("alpha", "one", False),
        ("beta", "two", True),
    ]


def test_one_distribution_seen_twice_is_no_clash(tmp_path: Path) -> None:
    one = distribution(tmp_path, "one", "1.2", {"alpha": f"{HERE}:ALPHA"})
    assert registry(finder(one, one)).get("alpha") is ALPHA


def test_an_import_failure_is_that_plugin_s_alone(tmp_path: Path) -> None:
    one = distribution(
        tmp_path, "one", "1.2", {"broken": "no_such_module_here:SPEC", "alpha": f"{HERE}:ALPHA"}
    )
    fakes = registry(finder(one))
    assert fakes.get("alpha") is ALPHA
    by_name = {plugin.name: plugin for plugin in fakes.plugins()}
    assert by_name["alpha"].error is None
    assert by_name["broken"].spec is None
    assert by_name["broken"].error == (
        "fake 'broken' (no_such_module_here:SPEC of one) does not load: "
        "ModuleNotFoundError: No module named 'no_such_module_here'"
    )


def test_nothing_is_imported_before_it_is_asked_for(tmp_path: Path) -> None:
    one = distribution(tmp_path, "one", "1.2", {"broken": "no_such_module_here:SPEC"})
    assert registry(finder(one)).names() == ["broken"]


@pytest.mark.parametrize(
    ("name", "attribute", "problem"),
    [
        ("wrong", "NOT_A_SPEC", "is a int, not a FakeSpec"),
        ("misnamed", "MISNAMED", "calls itself 'other': the two names must agree"),
        ("future", "FUTURE", "needs plug-in interface 2; this is 1"),
        ("mutable", "MUTABLE", "has a config_type that is not frozen"),
        ("nodefault", "NO_DEFAULT", "has a config_type without a default for 'size'"),
        (
            "nodataclass",
            "NO_DATACLASS",
            "has a config_type that is no dataclass: <class 'int'>",
        ),
    ],
)
def test_a_spec_that_breaks_the_contract_says_how(
    tmp_path: Path, name: str, attribute: str, problem: str
) -> None:
    one = distribution(tmp_path, "one", "1.2", {name: f"{HERE}:{attribute}"})
    with pytest.raises(ConfigError) as caught:
        registry(finder(one)).get(name)
    assert str(caught.value) == f"fake {name!r} ({HERE}:{attribute} of one) {problem}"
