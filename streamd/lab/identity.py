"""What a run is known by: a digest of its configuration and of the code.

Two runs with the same key would give the same figures, so one of them need not be
done. File names say nothing about content and differ between machines: a trace or
a clip enters the key by the digest of its bytes.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as distribution_version
from pathlib import Path
from typing import Any

import streamd
from streamd.config.units import parse_capacity
from streamd.errors import ConfigError
from streamd.link.generate import BUILTIN_NAMES
from streamd.media.factory import CLIPS, SYNTHETIC

KEY_LENGTH = 20
"""Hex digits of a key: enough for any number of runs, short enough for a folder name."""
NOT_IN_RESULTS = ("bench", "cli", "daemon", "io", "lab", "observability", "stack", "testing")
"""Sub-packages that no simulated figure depends on; docs/experiments.md has the list too."""
_PARTS = ("lab/execute.py", "lab/probes.py")
"""Files of those that figures do depend on."""
LIVE = ("daemon", "io", "observability", "stack")
"""Of the sub-packages above: those that take part in a live run."""


@lru_cache
def code_digest(*, live: bool = False, root: Path | None = None) -> str:
    """SHA-256 of every source file that has a part in a run's figures.

    What only shows, stores or measures is left out, so that a change to a report does not
    make every run be done anew. `root`: the package's folder.
    """
    root = root or Path(streamd.__file__).parent
    left_out = [name for name in NOT_IN_RESULTS if not (live and name in LIVE)]
    digest = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        name = file.relative_to(root).as_posix()
        if name.partition("/")[0] in left_out and name not in _PARTS:
            continue
        digest.update(f"{name}\0".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def library_versions() -> dict[str, str]:
    """The libraries whose version can change a figure; the codecs come with av."""
    try:
        return {"av": distribution_version("av")}
    except PackageNotFoundError:
        return {}


def run_key(kind: str, config: Mapping[str, Any], seed: int, *, live: bool = False) -> str:
    """The key of a run: configuration, seed, code and codecs. Equal on every machine.

    ConfigError when a file the configuration names cannot be read.
    """
    known = {
        "kind": kind,
        "config": portable(config),
        "seed": seed,
        "live": live,
        "code": code_digest(live=live),
        "libraries": library_versions(),
    }
    return digest_of(known)[:KEY_LENGTH]


def digest_of(value: Any) -> str:
    """SHA-256 of a value's canonical JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def portable(config: Mapping[str, Any], *, needed: bool = True) -> dict[str, Any]:
    """The configuration with every file replaced by its name and digest.

    ConfigError for a file that cannot be read; if the files are not `needed`, by its name alone.
    """
    changed: dict[str, Any] = {}
    for key, value in config.items():
        # A level of an experiment sets keys such as flows.video.source.
        find = _FILES.get(key.rpartition(".")[2])
        members = value if isinstance(value, list) else [value]
        told = [_told(member, find, needed=needed) for member in members]
        changed[key] = told if isinstance(value, list) else told[0]
    return changed


def _told(value: Any, find: Callable[[str], str] | None, *, needed: bool) -> Any:
    if isinstance(value, Mapping):
        return portable(value, needed=needed)
    if find is None or not isinstance(value, str):
        return value
    try:
        return find(value)
    except ConfigError:
        if needed:
            raise
        return Path(value).name


def _capacity(text: str) -> str:
    try:
        trace = parse_capacity(text).trace
    except ValueError as error:
        raise ConfigError(f"capacity: {error}") from None
    return text if trace is None or trace in BUILTIN_NAMES else _file(trace)


def _source(text: str) -> str:
    return text if text in (*CLIPS, SYNTHETIC) else _file(text)


def _file(name: str) -> str:
    path = Path(name)
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise ConfigError(f"{name}: cannot be read: {error.strerror or error}") from None
    return f"{path.name} sha256:{digest}"


_FILES: dict[str, Callable[[str], str]] = {"capacity": _capacity, "source": _source}
