"""Plug-ins by entry point: found without importing, loaded by name, one failing alone.

Our own controllers and queue disciplines come through the same door as a
third party's. This module knows neither kind: `streamd.config.plugins` names the
two groups.
"""

import dataclasses
from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, Protocol, TypeVar

from streamd.errors import ConfigError


class Spec(Protocol):
    """What every plug-in's spec object has, of whatever kind it is."""

    @property
    def name(self) -> str:
        """The name users write; equal to the entry point's."""

    @property
    def summary(self) -> str:
        """One line for the listing."""

    @property
    def config_type(self) -> type:
        """A frozen dataclass with a default for every field."""

    @property
    def api_version(self) -> int:
        """The version of the plug-in interface it was written for."""


S = TypeVar("S", bound=Spec)


@dataclasses.dataclass(frozen=True, slots=True)
class Plugin(Generic[S]):
    """One installed plug-in as the listing shows it; `spec` is None when it does not load."""

    name: str
    distribution: str
    version: str
    target: str
    """`module:attribute`."""
    spec: S | None
    error: str | None


def find_entry_points(group: str) -> Iterable[EntryPoint]:
    """Every installed entry point of a group."""
    return entry_points(group=group)


class Registry(Generic[S]):
    """The plug-ins of one entry-point group."""

    def __init__(
        self,
        group: str,
        *,
        kind: str,
        spec_type: type[S],
        api_version: int = 1,
        find: Callable[[str], Iterable[EntryPoint]] = find_entry_points,
    ) -> None:
        """`kind` is what error messages call a member, e.g. "controller"."""
        self.group = group
        self.kind = kind
        self._spec_type = spec_type
        self._api_version = api_version
        self._find = find
        self._entries: dict[str, list[EntryPoint]] | None = None
        self._loaded: dict[str, S] = {}

    def names(self) -> list[str]:
        """Names of everything installed, sorted, whether it loads or not."""
        return sorted(self._discover())

    def get(self, name: str) -> S:
        """The spec of this name; imports it when first asked for.

        ConfigError when the name is unknown (the message lists what is
        installed), claimed by two distributions (it names both) or does not load.
        """
        spec = self._loaded.get(name)
        if spec is None:
            spec = self._loaded[name] = self._load(self._entry(name))
        return spec

    def plugins(self) -> list[Plugin[S]]:
        """Everything installed, by name; a plug-in that fails to load carries the reason."""
        return [
            self._describe(name, entry)
            for name, entries in sorted(self._discover().items())
            for entry in entries
        ]

    def _discover(self) -> dict[str, list[EntryPoint]]:
        """Entry points by name. One distribution seen twice on the path counts once."""
        if self._entries is None:
            unique: dict[tuple[str, str, str], EntryPoint] = {}
            for entry in self._find(self.group):
                unique.setdefault((entry.name, _distribution(entry), entry.value), entry)
            self._entries = {}
            for entry in unique.values():
                self._entries.setdefault(entry.name, []).append(entry)
        return self._entries

    def _entry(self, name: str) -> EntryPoint:
        entries = self._discover().get(name)
        if not entries:
            installed = ", ".join(self.names()) or "none"
            raise ConfigError(f"unknown {self.kind} {name!r}; installed: {installed}")
        if len(entries) > 1:
            owners = " and ".join(sorted(_owner(entry) for entry in entries))
            raise ConfigError(f"two installed {self.kind}s are named {name!r}: {owners}")
        return entries[0]

    def _describe(self, name: str, entry: EntryPoint) -> Plugin[S]:
        spec, error = None, None
        try:
            spec = self.get(name)
        except ConfigError as failure:
            error = str(failure)
        version = entry.dist.version if entry.dist else "?"
        return Plugin(name, _distribution(entry), version, entry.value, spec, error)

    def _load(self, entry: EntryPoint) -> S:
        where = f"{self.kind} {entry.name!r} ({entry.value} of {_distribution(entry)})"
        try:
            spec = entry.load()
        # Foreign module-level code may raise anything; the other plug-ins must go on working.
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise ConfigError(f"{where} does not load: {reason}") from error
        problem = self._problem(entry.name, spec)
        if problem:
            raise ConfigError(f"{where} {problem}")
        assert isinstance(spec, self._spec_type)
        return spec

    def _problem(self, name: str, spec: object) -> str | None:
        """What is wrong with a loaded spec, as the end of a sentence."""
        if not isinstance(spec, self._spec_type):
            return f"is a {type(spec).__name__}, not a {self._spec_type.__name__}"
        if spec.name != name:
            return f"calls itself {spec.name!r}: the two names must agree"
        if spec.api_version != self._api_version:
            return f"needs plug-in interface {spec.api_version}; this is {self._api_version}"
        return _config_problem(spec.config_type)


def _config_problem(config_type: type) -> str | None:
    if not dataclasses.is_dataclass(config_type):
        return f"has a config_type that is no dataclass: {config_type!r}"
    if not config_type.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        return "has a config_type that is not frozen"
    for field in dataclasses.fields(config_type):
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            return f"has a config_type without a default for {field.name!r}"
    return None


def _distribution(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else "?"


def _owner(entry: EntryPoint) -> str:
    version = f" {entry.dist.version}" if entry.dist else ""
    return f"{_distribution(entry)}{version} ({entry.value})"
