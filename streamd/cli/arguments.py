"""What the option parser cannot know beforehand: plug-ins' flags, and a file's role."""

import tomllib
from pathlib import Path

from streamd.errors import ConfigError

DAEMONS = ("sender", "receiver", "bottleneck")
Flag = tuple[str, object, str]
"""Configuration key, value, and the flag as it was written."""


class UsageProblem(Exception):
    """The command line cannot be understood."""


def prepare(argv: list[str]) -> tuple[list[str], list[Flag]]:
    """The arguments for the parser, and the flags of plug-ins among them.

    `--cc.scream.x 1` and `--queue.dualpi2.y=2` name parameters of plug-ins that may not even be
    installed; they are taken out here. `config show FILE` gets the role the file is for.
    """
    if argv[:2] == ["config", "show"]:
        argv = [*argv[:2], *_with_role(argv[2:])]
    elif not argv or argv[0] not in DAEMONS:
        return argv, []
    plain: list[str] = []
    flags: list[Flag] = []
    rest = iter(argv)
    for argument in rest:
        name, equals, value = argument.partition("=")
        if not name.startswith(("--cc.", "--queue.")):
            plain.append(argument)
            continue
        if not equals:
            try:
                value = next(rest)
            except StopIteration:
                raise UsageProblem(f"option {name} needs a value") from None
        flags.append((name.removeprefix("--").replace("-", "_"), value, name))
    return plain, flags


def _with_role(arguments: list[str]) -> list[str]:
    """`show FILE ...` as `show ROLE FILE ...`."""
    first = next((a for a in arguments if not a.startswith("-")), None)
    if first is None or first in DAEMONS:
        return arguments
    return [file_role(Path(first)), *arguments]


def file_role(path: Path) -> str:
    """Which daemon a file is for: by its key `role`, else by what most of its keys belong to.

    ConfigError when it cannot be read; anything else wrong with it is found by who loads it.
    """
    from streamd.config.model import ROLES, plain_fields

    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    except tomllib.TOMLDecodeError:
        return DAEMONS[0]
    role = tree.get("role")
    if role in ROLES:
        return str(role)

    def known(name: str) -> int:
        model = ROLES[name]
        return sum(key in plain_fields(model) or key == model.plugin_section for key in tree)

    return max(DAEMONS, key=known)
