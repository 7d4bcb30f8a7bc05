"""The time series of a live run, from what its daemons say now and then."""

from array import array
from collections.abc import Mapping
from datetime import datetime
from math import nan
from typing import Any

from streamd.sim.tables import BIN, SERIES

_COLUMNS = {
    "sender": (
        ("tx_bps", "tx_bps", 1.0),
        ("rtt_s", "rtt_ms", 1e-3),
        ("target_bps", "target_bps", 1.0),
    ),
    "bottleneck": (
        ("capacity_bps", "capacity_bps", 1.0),
        ("queue_delay_s", "queue_delay_p50_ms", 1e-3),
    ),
    "receiver": (("rx_bps", "rx_bps", 1.0),),
}
"""By role: column, key of its periodic line, factor."""


class LiveSeries:
    """What the daemons' periodic lines say, as the simulator's table `series`.

    A bin is the interval in which a line was written; `queue_delay_s` is the median of the
    bin, where the simulator has the mean.
    """

    def __init__(self) -> None:
        self._start: datetime | None = None
        self._bins: dict[int, dict[str, float]] = {}

    def watch(self, role: str, record: Mapping[str, Any]) -> None:
        """Take a line of a daemon's log; time begins when the sender has started."""
        at = datetime.fromisoformat(record["timestamp"])
        if role == "sender" and record["event"] == "started":
            self._start = at
        if record["event"] != "report" or self._start is None:
            return
        number = round((at - self._start).total_seconds() / BIN) - 1
        if number < 0:
            return
        row = self._bins.setdefault(number, {})
        for column, key, factor in _COLUMNS[role]:
            if record[key] is not None:
                row[column] = record[key] * factor

    def columns(self) -> dict[str, Any]:
        """A row per bin; NaN where no line told anything."""
        rows = [self._bins.get(number, {}) for number in range(max(self._bins, default=-1) + 1)]
        columns: dict[str, Any] = {"flow": array("H", [0] * len(rows))}
        for name in SERIES:
            columns[name] = array("d", [row.get(name, nan) for row in rows])
        columns["time_s"] = array("d", [number * BIN for number in range(len(rows))])
        return columns
