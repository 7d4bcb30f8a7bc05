"""Plain tables for benchmarks, and the line that says where they were taken."""

import os
import platform
from collections.abc import Sequence
from pathlib import Path


def machine() -> str:
    """Processor, cores, kernel and Python of this machine."""
    model = "unknown processor"
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return (
        f"{model}, {os.cpu_count()} cores, {platform.system()} {platform.release()},"
        f" {platform.python_implementation()} {platform.python_version()}"
    )


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns as wide as their widest cell."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    print(f"\n{title}")
    for row in (header, ["-" * width for width in widths], *rows):
        print("  " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)))
