"""Differences of counters between two periodic lines."""


class Interval:
    """Remembers counters; each step gives what was added since the step before."""

    def __init__(self) -> None:
        self._at: float | None = None
        self._before: dict[str, float] = {}

    def step(self, now: float, **counters: float) -> dict[str, float]:
        """The increments, and `seconds` since the step before (0 at the first)."""
        before = self._before
        result = {name: value - before.get(name, 0) for name, value in counters.items()}
        result["seconds"] = 0.0 if self._at is None else now - self._at
        self._at, self._before = now, dict(counters)
        return result
