"""The per-packet record: rows, bounds, windows, percentiles."""

import pytest

from streamd.link.queue import Packet
from streamd.link.record import PacketRecord, Row, percentile


def is_media(data: bytes) -> bool:
    return data.startswith(b"m")


def delivered(
    record: PacketRecord, arrived: float, dequeued: float, departed: float, data: bytes = b"m"
) -> None:
    packet = Packet(data, 1240, 1, arrived)
    packet.dequeued_at, packet.departed_at = dequeued, departed
    record.on_delivered(packet)


def test_a_row_says_what_happened() -> None:
    record = PacketRecord(is_media)
    packet = Packet(b"media", 1240, 1, 1.0)
    packet.ecn = 3
    packet.dequeued_at, packet.departed_at = 1.25, 1.5
    record.on_delivered(packet)
    early = Packet(b"rtcp", 80, 0, 2.0)
    record.on_drop(early, "limit_packets", 2.0)
    record.on_drop(Packet(b"rtcp", 80, 0, 2.5), "limit_packets", 2.5)
    late = Packet(b"m", 1240, 2, 3.0)
    late.dequeued_at, late.departed_at = 3.5, 3.75
    record.on_drop(late, "loss", 3.75)
    assert list(record.rows()) == [
        Row(1.0, 1.25, 1.5, 1240, 1, 3, "delivered", True),
        Row(2.0, None, 2.0, 80, 0, 0, "limit_packets", False),
        Row(2.5, None, 2.5, 80, 0, 0, "limit_packets", False),
        Row(3.0, 3.5, 3.75, 1240, 2, 2, "loss", True),
    ]
    assert len(record) == 4


def test_it_stops_at_its_limit_and_counts_the_rest() -> None:
    record = PacketRecord(is_media, limit=2)
    for n in range(5):
        delivered(record, n, n + 0.5, n + 1.0)
    assert (len(record), record.not_recorded) == (2, 3)


def test_percentiles_interpolate() -> None:
    values = [10.0, 12.0, 15.0, 20.0, 50.0]
    assert percentile(values, 0.10) == pytest.approx(10.8)
    assert percentile(values, 0.50) == 15.0
    assert percentile(values, 0.95) == pytest.approx(44.0)
    assert percentile(values, 1.0) == 50.0
    assert percentile([7.0], 0.95) == 7.0
    assert percentile([], 0.5) is None


def test_sojourn_is_of_media_that_reached_the_link_in_the_window() -> None:
    record = PacketRecord(is_media)
    delivered(record, 0.0, 0.010, 1.0)
    delivered(record, 1.0, 1.020, 2.0)
    delivered(record, 2.0, 2.040, 3.0)
    delivered(record, 2.0, 2.080, 2.5, data=b"x")
    record.on_drop(Packet(b"m", 100, 0, 2.2), "classic", 2.2)
    assert record.sojourns() == pytest.approx([0.010, 0.020, 0.040])
    assert record.sojourns(since=1.0, until=3.0) == pytest.approx([0.010, 0.020])
    assert record.sojourns(media_only=False) == pytest.approx([0.010, 0.020, 0.040, 0.080])
    assert record.sojourn_percentiles([0.5, 0.95]) == pytest.approx([0.020, 0.038])
    assert record.sojourn_percentiles([0.5], since=9.0) == [None]


def test_the_rate_is_of_media_that_left_the_link_from_a_time_on() -> None:
    record = PacketRecord(is_media)
    assert record.first_arrival is None
    assert record.delivered_bps(since=0.0) is None
    delivered(record, 1.5, 1.75, 1.75)
    delivered(record, 1.0, 2.0, 2.5)
    delivered(record, 2.0, 3.0, 4.0)
    delivered(record, 2.0, 3.0, 5.0, data=b"rtcp")
    record.on_drop(Packet(b"m", 1240, 1, 3.5), "limit_packets", 6.0)
    assert record.first_arrival == 1.0
    # two packets of 1240 bytes in the two seconds up to the last departure of media
    assert record.delivered_bps(since=2.0) == 9920.0
    assert record.delivered_bps(since=4.0) is None
