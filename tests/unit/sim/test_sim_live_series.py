"""Periodic lines of the daemons as the table `series`."""

from math import isnan

from streamd.sim.live_series import LiveSeries
from streamd.sim.tables import SERIES

LINK = {"capacity_bps": 12e6, "queue_delay_p50_ms": 2.0}


def line(event: str, second: float, **figures: float | None) -> dict[str, object]:
    return {"event": event, "timestamp": f"2026-11-30T12:00:{second:09.6f}+00:00", **figures}


def test_lines_fall_into_the_bins_they_close_counted_from_the_senders_start() -> None:
    series = LiveSeries()
    series.watch("bottleneck", line("report", 0.0, **LINK))
    series.watch("sender", line("started", 1.0))
    series.watch("sender", line("report", 1.1, tx_bps=1e6, rtt_ms=20.0, target_bps=9e5))
    series.watch("bottleneck", line("report", 1.102, **LINK))
    series.watch("receiver", line("report", 1.31, rx_bps=2e6))
    columns = series.columns()
    assert columns.keys() == {"flow", *SERIES}
    assert list(columns["time_s"]) == [0.0, 0.1, 0.2]
    assert columns["tx_bps"][0] == 1e6
    assert columns["rtt_s"][0] == 0.02
    assert columns["queue_delay_s"][0] == 0.002
    assert columns["capacity_bps"][0] == 12e6
    assert isnan(columns["rx_bps"][0])
    assert columns["rx_bps"][2] == 2e6
    assert isnan(columns["tx_bps"][1])


def test_what_a_daemon_does_not_know_is_nothing() -> None:
    series = LiveSeries()
    series.watch("sender", line("started", 1.0))
    series.watch("sender", line("report", 1.1, tx_bps=0.0, rtt_ms=None, target_bps=1e6))
    assert isnan(series.columns()["rtt_s"][0])


def test_a_run_that_said_nothing_has_an_empty_table() -> None:
    assert all(len(column) == 0 for column in LiveSeries().columns().values())
