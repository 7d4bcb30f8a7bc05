"""The event log: digests cover everything, memory does not."""

import hashlib
import struct

from streamd.sim.events import BLOCK, EventLog, EventTable, Names


def table(limit: int = 10_000) -> EventTable:
    return EventTable("t", {"a": "H", "b": "d"}, limit=limit)


def test_rows_become_columns() -> None:
    rows = table()
    rows.add((1, 0.5))
    rows.add((2, 0.25))
    rows.settle()
    assert list(rows.columns()["a"]) == []
    rows.settle(final=True)
    assert list(rows.columns()["a"]) == [1, 2]
    assert list(rows.columns()["b"]) == [0.5, 0.25]
    assert rows.count == 2


def test_the_digest_is_that_of_the_little_endian_columns() -> None:
    rows = table()
    rows.add((1, 0.5))
    rows.add((2, 0.25))
    rows.settle(final=True)
    expected = hashlib.sha256(b"t:a,b" + struct.pack("<HHdd", 1, 2, 0.5, 0.25)).digest()
    assert rows.digest() == expected


def test_rows_beyond_the_limit_are_in_the_digest_only() -> None:
    short, long = table(limit=3), table()
    for number in range(BLOCK + 5):
        short.add((number & 7, 1.0))
        long.add((number & 7, 1.0))
    short.settle(final=True)
    long.settle(final=True)
    assert short.digest() == long.digest()
    assert list(short.columns()["a"]) == [0, 1, 2]
    assert short.not_kept == BLOCK + 2
    assert long.not_kept == 0


def test_settling_early_or_late_makes_no_difference() -> None:
    early, late = table(), table()
    for number in range(3 * BLOCK + 1):
        early.add((number & 7, 0.0))
        late.add((number & 7, 0.0))
        early.settle()
    early.settle(final=True)
    late.settle(final=True)
    assert early.digest() == late.digest()


def test_one_changed_value_changes_the_digest_of_the_log() -> None:
    digests = []
    for rtt in (0.02, 0.020000001):
        log = EventLog(["f"], ["up"])
        log.feedback.add((0, 1.0, rtt, 0.0))
        log.settle(final=True)
        digests.append(log.sha256())
    assert digests[0] != digests[1]
    assert len(digests[0]) == 64


def test_names_are_numbered_as_they_come() -> None:
    names = Names(("delivered",))
    assert [names.number(text) for text in ("tail", "delivered", "tail", "aqm")] == [1, 0, 1, 2]
    assert names.texts() == ["delivered", "tail", "aqm"]
