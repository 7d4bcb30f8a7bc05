"""The ledger of packets sent: each is acknowledged, held or forgotten, and counted once."""

from hypothesis import given, settings
from hypothesis import strategies as st

from streamd.cc.api import FeedbackReport, StreamReport
from streamd.session.history import SentHistory
from streamd.session.queue import MediaPacket
from streamd.wire.ccfb import BlockList, CongestionFeedback

SSRC = 0xABCD0001
U16 = st.integers(0, 0xFFFF)

words = st.lists(st.one_of(st.just(0), st.integers(0x8000, 0xFFFF), U16), max_size=90)


@settings(deadline=None)
@given(
    first=st.sampled_from([0, 1, 65_500, 200_000]),
    steps=st.lists(
        st.one_of(
            st.integers(1, 70),
            st.tuples(st.integers(-80, 80), words),
            st.just("expire"),
            st.just("repair"),
            st.just("give up"),
        ),
        max_size=40,
    ),
)
def test_every_packet_sent_is_acknowledged_held_or_forgotten(
    first: int, steps: list[int | tuple[int, list[int]] | str]
) -> None:
    history = SentHistory(SSRC)
    next_seq, now, forgotten = first, 100.0, 0
    acked: list[int] = []
    lost: set[int] = set()
    for step in steps:
        now += 0.02
        if isinstance(step, int):
            for _ in range(step):
                history.on_sent(MediaPacket(SSRC, next_seq, 0, False, b"x", now), now)
                next_seq += 1
        elif isinstance(step, tuple):
            behind, blocks = step
            lists = [BlockList(SSRC, next_seq - behind & 0xFFFF, blocks)]
            feedback = CongestionFeedback(1, lists, int(now * 65536) & 0xFFFFFFFF)
            report = history.on_feedback(feedback, now=now)
            _check_report(report, first, next_seq)
            for stream in report.streams:
                acked += [packet.seq for packet in stream.acked]
                lost.update(packet.seq for packet in stream.lost)
        elif step == "expire":
            before = len(history) + history.given_up_count
            history.expire(now + 9.9)
            forgotten += before - len(history) - history.given_up_count
        elif step == "give up":
            for seq in list(history.overtaken()):
                history.give_up(seq)
        else:
            for packet in list(history.overtaken().values()):
                history.on_sent(packet, now)
        outstanding = [packet.seq for packet in history.outstanding()]
        assert outstanding == sorted(set(outstanding))
        assert list(history.overtaken()) == [
            seq for seq in outstanding if seq < history.highest_acked
        ]
        held = len(history) + history.given_up_count
        assert len(acked) + held + forgotten == next_seq - first
        assert history.first_sent_count == next_seq - first
    assert len(acked) == len(set(acked))
    assert lost <= set(range(first, next_seq))


def _check_report(report: FeedbackReport, first: int, next_seq: int) -> None:
    for stream in report.streams:
        assert isinstance(stream, StreamReport)
        seqs = [packet.seq for packet in stream.acked]
        assert seqs == sorted(set(seqs))
        assert first <= stream.end_seq < next_seq
        if seqs:
            assert first <= seqs[0]
            assert seqs[-1] <= stream.end_seq
        assert all(packet.acked for packet in stream.acked)
        assert not any(packet.acked for packet in stream.lost)
