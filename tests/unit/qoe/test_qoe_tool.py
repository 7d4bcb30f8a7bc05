"""The BW tool's averaged queue delay."""

import pytest

from streamd.qoe.tool import ToolQueueDelay


def test_it_prints_the_average_every_two_seconds() -> None:
    tool = ToolQueueDelay(tick=0.1, start=0.0)
    tool.on_estimate(0.010, 0.05)
    tool.on_estimate(0.060, 0.15)
    tool.advance(4.05)
    # one tick at 10 ms sets the average, 19 ticks at 60 ms move it: 60 - 50 * 0.98^19
    assert tool.samples.values() == pytest.approx([0.026, 0.037])


def test_nothing_is_printed_before_the_first_estimate() -> None:
    tool = ToolQueueDelay(tick=0.05, start=100.0)
    tool.advance(103.0)
    assert tool.samples.count == 0
    tool.on_estimate(0.0304, 103.0)
    tool.advance(106.01)
    assert tool.samples.values() == [0.030, 0.030]


def test_a_short_spike_hardly_shows() -> None:
    tool = ToolQueueDelay(tick=0.1, start=0.0)
    tool.on_estimate(0.001, 0.05)
    tool.on_estimate(0.500, 1.85)
    tool.on_estimate(0.001, 1.95)
    tool.advance(2.05)
    assert tool.samples.values() == [0.011]
