"""A bottleneck's record as the table `packets`."""

from math import isnan
from pathlib import Path

from streamd.daemon.bottleneck import write_record
from streamd.link.queue import Packet
from streamd.link.record import PacketRecord
from streamd.results.link import is_media
from streamd.sim.live_packets import packet_columns, read_packets

MEDIA = bytes([0x80, 98]) + bytes(10)
RTCP = bytes([0x80, 205]) + bytes(10)


def test_what_a_bottleneck_records_is_read_back(tmp_path: Path) -> None:
    record = PacketRecord(is_media)
    delivered = Packet(MEDIA, 1240, 1, 100.0)
    delivered.arrived_at, delivered.dequeued_at, delivered.departed_at = 100.0, 100.5, 100.75
    delivered.ecn = 3
    record.on_delivered(delivered)
    dropped = Packet(RTCP, 60, 0, 99.5)
    record.on_drop(dropped, "fifo_limit_packets", 101.0)
    write_record(record, tmp_path / "packets.csv")
    found = read_packets(tmp_path / "packets.csv", path=1)
    assert isnan(found["dequeued_at"].pop())
    assert {name: list(column) for name, column in found.items()} == {
        "flow": [0, 0],
        "path": [1, 1],
        "media": [1, 0],
        "size": [1240, 60],
        "sent_at": [0.5, 0.0],
        "dequeued_at": [1.0],
        "departed_at": [1.25, 1.5],
        "ecn_in": [1, 0],
        "ecn_out": [3, 0],
        "fate": ["delivered", "fifo_limit_packets"],
    }


def test_a_run_without_packets_has_an_empty_table() -> None:
    assert all(len(column) == 0 for column in packet_columns([], path=0).values())
