"""The form in which metrics leave: one row each, with unit, mode, sample count and warnings."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isinf
from typing import Final

NO_FRAMES: Final = "no frames"
TAIL_FREEZE: Final = "tail freeze"
NEGATIVE_DELAY: Final = "negative delay"
CLOCK_ERROR: Final = "clock error bound above 2 ms"
UNFINISHED_FLOWS: Final = "unfinished flows"
OVER_CAPACITY: Final = "utilisation above 1.01"
COUNTS_DIFFER: Final = "counts do not add up"

COLUMNS: Final = ("metric", "value", "unit", "mode", "samples", "warnings")


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One metric of one run."""

    metric: str
    value: float | None
    """None = not available: null in JSON, an empty cell in CSV, never 0."""
    unit: str
    mode: str = ""
    """Which of several definitions, where there are several (`webrtc`, `est_run`, ...)."""
    samples: int = 0
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """The row for JSON, which has no infinity: there it is the string "inf"."""
        return {
            "metric": self.metric,
            "value": _finite(self.value),
            "unit": self.unit,
            "mode": self.mode,
            "samples": self.samples,
            "warnings": list(self.warnings),
        }

    def as_cells(self) -> list[str]:
        """The row for CSV, in the order of COLUMNS."""
        value = "" if self.value is None else repr(self.value)
        warnings = "; ".join(self.warnings)
        return [self.metric, value, self.unit, self.mode, str(self.samples), warnings]


def all_warnings(rows: Iterable[MetricRow]) -> list[str]:
    """Every warning of a run once, in the order they first appear."""
    return list(dict.fromkeys(text for row in rows for text in row.warnings))


def warn_utilisation(value: float | None) -> tuple[str, ...]:
    """The warning a utilisation carries: more than the link can give is a fault of the numbers."""
    return (OVER_CAPACITY,) if value is not None and value > 1.01 else ()


def warn_delays(minimum: float | None) -> tuple[str, ...]:
    """The warning a set of delays carries: a negative one is a fault of the clocks."""
    return (NEGATIVE_DELAY,) if minimum is not None and minimum < 0 else ()


def warn_frames(captured: int, counts: Sequence[int]) -> tuple[str, ...]:
    """The warnings of a frame count by status."""
    none = (NO_FRAMES,) if not captured else ()
    return none if sum(counts) == captured else (*none, COUNTS_DIFFER)


def _finite(value: float | None) -> float | str | None:
    if value is None or not isinf(value):
        return value
    return "inf" if value > 0 else "-inf"
