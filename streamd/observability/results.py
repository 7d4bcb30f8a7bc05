"""Result files: flat keys with the unit in the name, written whole or not at all."""

import contextlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path

from streamd.errors import StartupError, StreamdError


def check_writable(path: Path) -> None:
    """Find out at the start, not after the run. StartupError when a file cannot be written."""
    folder = path.parent
    if path.is_dir():
        reason = "it is a folder"
    elif not folder.is_dir():
        reason = f"there is no folder {folder}"
    elif not os.access(path if path.exists() else folder, os.W_OK):
        reason = "not permitted"
    else:
        return
    raise StartupError(f"{path}: cannot be written: {reason}")


def write_json(path: Path, values: Mapping[str, object]) -> None:
    """Write a result file; what is not a number becomes null.

    A reader never sees half a file. A link or a device, such as /dev/stdout, is written through
    and stays what it is. StreamdError when it cannot be written.
    """
    write_text(path, json.dumps(plain(values), indent=2) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all, by the rules of `write_json`."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            path.write_text(text, encoding="utf-8")
            return
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise StreamdError(f"{path}: cannot be written: {error.strerror or error}") from error


def plain(value: object) -> object:
    """JSON has no NaN and no infinity; both mean "not available" here."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
