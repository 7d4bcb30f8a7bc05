"""Where in an experiment's file a key of a run's configuration was set."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from streamd.config.lines import Parts, line_of
from streamd.errors import ConfigError

Lines = Mapping[Parts, int]


class Unfit(ConfigError):
    """A configuration no run can be made of: every problem with the key it is about."""

    def __init__(self, problems: Sequence[tuple[Parts, str]]) -> None:
        """Keys are those of the configuration, flows by their name."""
        super().__init__("; ".join(text for _, text in problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Places:
    """The lines of an experiment's file, and of its scenario's if that is another one."""

    name: str = ""
    lines: Lines = field(default_factory=dict)
    scenario: tuple[str, Lines] | None = None
    flows: Sequence[str] = ()
    """Names of the scenario's flows, in its order."""

    def of(self, key: Parts) -> str:
        """`file:line` of a key of the experiment."""
        return _at(self.name, self.lines, key)

    def of_base(self, key: Parts) -> str:
        """`file:line` of a key of the scenario or the probe, before any level sets it."""
        if len(key) > 1 and key[0] == "flows" and key[1] in self.flows:
            key = ("flows", str(self.flows.index(key[1])), *key[2:])
        if self.scenario is not None:
            return _at(*self.scenario, key)
        table = "scenario" if ("scenario",) in self._tables() else "probe"
        return self.of((table, *key))

    def _tables(self) -> set[Parts]:
        return {key[:1] for key in self.lines}


def covers(setting: str, key: Parts) -> bool:
    """Whether a dotted key that a level sets is this key, in it or around it."""
    parts = tuple(setting.split("."))
    shared = min(len(parts), len(key))
    return parts[:shared] == key[:shared]


def _at(name: str, lines: Lines, key: Parts) -> str:
    # `[a.b]` alone gives `a` no line of its own: its first part is the place.
    inside = (number for known, number in lines.items() if key and known[: len(key)] == key)
    line = min(inside, default=None) or line_of(dict(lines), key)
    return name if line is None else f"{name}:{line}"
