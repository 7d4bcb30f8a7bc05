"""Which machine this is, as far as clocks are concerned."""

import hashlib
from functools import cache
from pathlib import Path

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""One per start of the kernel: programs that read the same have the same clock, also in
containers."""


@cache
def machine_id(path: Path = BOOT_ID) -> str | None:
    """A digest that tells machines apart until the next start; None where there is none."""
    try:
        text = path.read_bytes()
    except OSError:
        return None
    return hashlib.sha256(b"streamd " + text.strip()).hexdigest()[:16]


def cname(role: str, path: Path = BOOT_ID) -> str:
    """The canonical name of our end of a session (RFC 3550 section 6.5.1)."""
    machine = machine_id(path)
    return role if machine is None else f"{role}@{machine}"
