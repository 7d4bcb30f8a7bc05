"""The real clock: wall time as one offset from the monotonic clock."""

import pytest

from streamd import clock


class Interrupted:
    """Both clocks of a machine; the program stands still for 50 ms after its third look."""

    def __init__(self) -> None:
        self.at = 100.0
        self.looks = 0

    def _look(self) -> float:
        self.looks += 1
        self.at += 1e-7 if self.looks != 3 else 0.05
        return self.at

    monotonic = _look

    def time(self) -> float:
        return 1_700_000_000.0 + self._look()


def test_an_interruption_between_the_clocks_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Interrupted()
    monkeypatch.setattr(clock, "time", fake)
    unix = clock.MonotonicClock().unix()
    assert unix == pytest.approx(1_700_000_000.0 + fake.at, abs=1e-6)
