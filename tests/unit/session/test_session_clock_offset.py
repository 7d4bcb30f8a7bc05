"""The sender's clock against ours: questions, answers, what is believed."""

import pytest

from streamd.errors import ProtocolViolation
from streamd.session.clock_offset import ClockOffset, Mapping, host_part
from streamd.wire.ntp import ntp_to_short, unix_to_ntp
from streamd.wire.rtcp import ExtendedReport, RtcpPacket, SenderReport, cname_description
from streamd.wire.xr import LastReference

US = 77
SENDER = 5
UNIX = 1_700_000_000.0
"""Our wall clock at session time 0."""


def clock(cname: str = "receiver@here") -> ClockOffset:
    return ClockOffset(ssrc=US, cname=cname, unix_offset=UNIX)


def asked(ours: ClockOffset, now: float) -> int:
    """Ask at `now`; the question in its short form."""
    ntp = ours.ask(now).reference_time()
    assert ntp == unix_to_ntp(UNIX + now)
    return ntp_to_short(ntp)


def report(at: float, ssrc: int = SENDER) -> SenderReport:
    """Of the sender, whose clock shows `at` seconds more than ours at session time 0."""
    return SenderReport(ssrc, unix_to_ntp(UNIX + at), 0, 0, 0)


def answer(question: int, delay: float, *, to: int = US, by: int = SENDER) -> ExtendedReport:
    return ExtendedReport.of_answer(by, LastReference(to, question, int(delay * 65536)))


def exchange(ours: ClockOffset, t1: float, t2: float, t3: float, t4: float) -> None:
    """t1 and t4 of our clock, t2 and t3 of the sender's."""
    question = asked(ours, t1)
    ours.read([report(t3), answer(question, t3 - t2)], source=SENDER, now=t4)


def test_the_worked_example() -> None:
    ours = clock()
    assert ours.mapping(0.0) is None
    exchange(ours, 0, 15, 16, 11)
    assert ours.mapping(11.0) == Mapping(offset=10.0, bound=5.0)


def test_delays_cut_to_ticks_leave_the_true_offset_within_the_bound() -> None:
    ours = clock()
    exchange(ours, 1.0, 4.010003, 4.250001, 1.259998)
    found = ours.mapping(1.3)
    assert found is not None
    assert found.bound == pytest.approx(0.01, abs=20e-6)
    assert found.offset == pytest.approx(3.0, abs=20e-6)


def test_of_ten_seconds_the_shortest_round_trip_is_believed() -> None:
    ours = clock()
    for second, rtt in enumerate((0.5, 0.0625, 0.25)):
        exchange(ours, second, 100 + second + rtt, 100 + second + rtt, second + rtt)
    assert ours.mapping(2.5) == Mapping(100.03125, 0.03125)
    assert ours.mapping(11.5) == Mapping(100.125, 0.125)


def test_the_last_exchange_is_kept_and_its_bound_grows_by_the_drift_of_clocks() -> None:
    ours = clock()
    exchange(ours, 0.0, 7.0, 7.0, 0.0625)
    kept = ours.mapping(1010.0625)
    assert kept is not None
    assert kept.offset == 6.96875
    assert kept.bound == pytest.approx(0.03125 + 0.015, abs=1e-9)


def test_an_answer_counts_once_and_only_for_who_asked() -> None:
    ours = clock()
    question = asked(ours, 0.0)
    ours.read([report(1.0), answer(question, 0.0, to=78)], source=SENDER, now=0.25)
    ours.read([report(1.0), answer(question ^ 1, 0.0)], source=SENDER, now=0.25)
    ours.read([report(1.0), answer(question, 0.0, by=6)], source=SENDER, now=0.25)
    ours.read([answer(question, 0.0)], source=SENDER, now=0.25)
    ours.read([report(1.0, ssrc=6), answer(question, 0.0)], source=SENDER, now=0.25)
    assert ours.mapping(0.25) is None
    ours.read([report(1.0), answer(question, 0.0)], source=SENDER, now=0.5)
    ours.read([report(1.0), answer(question, 0.0)], source=SENDER, now=0.5)
    assert ours.mapping(0.5) == Mapping(0.75, 0.25)


def test_old_questions_are_forgotten() -> None:
    ours = clock()
    first = asked(ours, 0.0)
    for second in range(1, 17):
        asked(ours, float(second))
    ours.read([report(20.0), answer(first, 0.0)], source=SENDER, now=16.5)
    assert ours.mapping(16.5) is None


def test_an_answer_held_for_longer_than_it_was_away_is_a_violation() -> None:
    ours = clock()
    question = asked(ours, 0.0)
    with pytest.raises(ProtocolViolation) as caught:
        ours.read([report(1.0), answer(question, 0.5)], source=SENDER, now=0.25)
    assert caught.value.reason == "clock_answer"
    assert ours.mapping(0.25) is None


def named(host: str) -> list[RtcpPacket]:
    return [report(0.0), cname_description(SENDER, f"sender@{host}")]


def test_one_machine_has_one_clock_whatever_queue_stands_in_the_path() -> None:
    ours = clock()
    ours.read(named("here"), source=None, now=0.0)
    assert ours.mapping(0.0) == Mapping(0.0, 0.0001)
    # 100 ms one way, 10 ms the other: 45 ms would be taken for an offset
    exchange(ours, 1.0, 1.01, 1.01, 1.11)
    assert ours.mapping(1.2) == Mapping(0.0, 0.0001)


def test_an_exchange_that_proves_otherwise_is_believed() -> None:
    ours = clock()
    ours.read(named("here"), source=None, now=0.0)
    exchange(ours, 1.0, 1.5, 1.5, 1.0625)
    assert ours.mapping(1.2) == Mapping(0.46875, 0.03125)


@pytest.mark.parametrize("ours", ["receiver@here", "receiver", "receiver@"])
def test_other_names_are_other_machines(ours: str) -> None:
    receiver = clock(ours)
    receiver.read(named(""), source=None, now=0.0)
    receiver.read(named("there"), source=None, now=0.0)
    assert receiver.mapping(0.0) is None


def test_another_sender_is_another_clock() -> None:
    ours = clock()
    ours.read(named("here"), source=None, now=0.0)
    exchange(ours, 0.0, 9.0, 9.0, 0.0625)
    ours.attend(SENDER)
    assert ours.mapping(1.0) is not None
    ours.attend(6)
    assert ours.mapping(1.0) is None


def test_the_host_is_what_follows_the_at() -> None:
    assert host_part(b"sender@machine") == b"machine"
    assert host_part(b"sender") == b""
