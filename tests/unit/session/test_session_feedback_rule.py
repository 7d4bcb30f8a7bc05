"""When the receiver reports, and the exact words of its lists."""

import random

import pytest

from streamd.session.feedback import (
    BW_TOOL_PROFILE,
    DEFAULT_PROFILE,
    FeedbackGenerator,
    FeedbackProfile,
)
from streamd.wire.ccfb import BlockList

SSRC = 100
R = 0x8000


def feed(generator: FeedbackGenerator, *seqs: int, now: float, marker: bool = False) -> bool:
    """Packets at one instant; True: a report is due."""
    due = False
    for seq in seqs:
        due = generator.on_packet(SSRC, seq & 0xFFFF, marker, 1, now=now)
    return due


def report(generator: FeedbackGenerator, now: float) -> list[BlockList]:
    lists = generator.poll_report(now=now)
    assert lists is not None
    return lists


def test_the_end_of_a_frame_is_reported_at_once() -> None:
    generator = FeedbackGenerator()
    assert not feed(generator, 40_000, 40_001, now=5.0)
    assert generator.poll_report(now=5.0) is None
    assert feed(generator, 40_002, now=5.5, marker=True)
    (item,) = report(generator, 5.5)
    assert (item.ssrc, item.begin_seq) == (SSRC, 40_000)
    assert item.blocks == [R | 1 << 13 | 512, R | 1 << 13 | 512, R | 1 << 13]
    assert generator.poll_report(now=5.5) is None


def test_every_32_packets_are_reported() -> None:
    generator = FeedbackGenerator()
    assert not feed(generator, *range(31), now=1.0)
    assert feed(generator, 31, now=1.0)
    (item,) = report(generator, 1.0)
    assert (item.begin_seq, len(item.blocks)) == (0, 32)


def test_a_list_repeats_the_newest_64() -> None:
    generator = FeedbackGenerator()
    feed(generator, *range(100), now=1.0, marker=True)
    while generator.poll_report(now=1.0):
        pass
    assert feed(generator, 101, now=1.0, marker=True)
    (item,) = report(generator, 1.0)
    assert item.begin_seq == 38
    assert item.blocks == [R | 1 << 13] * 62 + [0, R | 1 << 13]


def test_the_timer_reports_after_40_ms_while_packets_arrive() -> None:
    generator = FeedbackGenerator()
    feed(generator, 0, now=1.0, marker=True)
    report(generator, 1.0)
    assert generator.next_timeout() is None
    feed(generator, 1, now=1.2)
    due = generator.next_timeout()
    assert due == pytest.approx(1.1)
    report(generator, 1.2)
    feed(generator, 2, now=1.21)
    due = generator.next_timeout()
    assert due == pytest.approx(1.24)
    assert due is not None
    assert generator.poll_report(now=1.239) is None
    report(generator, due)
    assert generator.next_timeout() is None


def test_sequence_numbers_wrap() -> None:
    generator = FeedbackGenerator()
    assert feed(generator, *range(65_530, 65_562), now=1.0)
    (item,) = report(generator, 1.0)
    assert (item.begin_seq, len(item.blocks)) == (65_530, 32)
    assert feed(generator, 26, now=1.0, marker=True)
    (item,) = report(generator, 1.0)
    assert item.begin_seq == 65_530
    assert item.blocks[-1] >= R
    assert len(item.blocks) == 33


def test_a_gap_above_64_gives_several_lists_in_one_packet() -> None:
    generator = FeedbackGenerator()
    feed(generator, *range(100, 132), now=1.0)
    report(generator, 1.0)
    assert feed(generator, 300, now=1.0)
    lists = report(generator, 1.0)
    assert [item.begin_seq for item in lists] == [132, 196, 237]
    assert [item.blocks[-1] >= R for item in lists] == [False, False, True]


def test_a_packet_is_full_at_900_bytes_and_the_rest_follows() -> None:
    generator = FeedbackGenerator()
    feed(generator, *range(32), now=1.0)
    report(generator, 1.0)
    feed(generator, 520, now=1.0, marker=True)
    assert [item.begin_seq for item in report(generator, 1.0)] == [32 + 64 * i for i in range(7)]
    assert [item.begin_seq for item in report(generator, 1.0)] == [457]
    assert generator.poll_report(now=1.0) is None
    assert generator.next_timeout() is None


def test_what_is_older_than_the_history_is_not_told() -> None:
    generator = FeedbackGenerator()
    feed(generator, *range(32), now=1.0)
    report(generator, 1.0)
    feed(generator, 30_000, now=1.0, marker=True)
    begins = []
    while lists := generator.poll_report(now=1.0):
        begins += [item.begin_seq for item in lists]
    assert begins[0] == 30_000 - 511
    assert begins[-1] == 30_000 - 63
    assert len(begins) == 8


def test_a_duplicate_keeps_the_first_arrival_and_any_ce() -> None:
    generator = FeedbackGenerator()
    generator.on_packet(SSRC, 5, False, 1, now=1.0)
    generator.on_packet(SSRC, 5, False, 3, now=1.25)
    generator.on_packet(SSRC, 5, False, 1, now=1.25)
    (item,) = report(generator, 1.5)
    assert item.blocks == [R | 3 << 13 | 512]


def test_offsets_saturate_and_are_never_negative() -> None:
    generator = FeedbackGenerator(FeedbackProfile(idle_reset=100.0))
    generator.on_packet(SSRC, 0, False, 0, now=1.0)
    generator.on_packet(SSRC, 1, False, 0, now=1.0 + 2 / 1024)
    generator.on_packet(SSRC, 2, False, 0, now=1.0 + 8191 / 1024)
    (item,) = report(generator, 1.0 + 8190 / 1024)
    assert item.blocks == [R | 0x1FFE, R | 8188, R]


def test_a_late_packet_within_the_next_list_needs_none_of_its_own() -> None:
    generator = FeedbackGenerator()
    feed(generator, *(seq for seq in range(33) if seq != 7), now=1.0)
    report(generator, 1.0)
    feed(generator, 7, now=1.1)
    (item,) = report(generator, 1.2)
    assert (item.begin_seq, len(item.blocks)) == (0, 33)
    assert item.blocks[7] >= R
    assert generator.poll_report(now=1.2) is None


def test_packets_later_than_that_get_lists_of_32() -> None:
    generator = FeedbackGenerator()
    late = (3, 20, 60)
    for seq in range(200):
        if seq not in late:
            feed(generator, seq, now=1.0)
            while generator.poll_report(now=1.0):
                pass
    feed(generator, *late, now=1.1)
    (usual,) = report(generator, 1.2)
    assert usual.begin_seq == 136
    assert generator.next_timeout() is not None
    (first,) = report(generator, 1.2)
    assert (first.begin_seq, len(first.blocks)) == (3, 32)
    assert first.blocks[0] >= R
    assert first.blocks[17] >= R
    (second,) = report(generator, 1.2)
    assert second.begin_seq + len(second.blocks) > 60
    assert second.blocks[60 - second.begin_seq] >= R
    assert second.blocks[-1] >= R
    assert generator.poll_report(now=1.2) is None


def test_silence_of_two_seconds_forgets_everything() -> None:
    generator = FeedbackGenerator()
    feed(generator, *range(32), now=1.0)
    report(generator, 1.0)
    assert feed(generator, 9000, now=3.1, marker=True)
    (item,) = report(generator, 3.1)
    assert (item.begin_seq, item.blocks) == (9000, [R | 1 << 13])


def test_bw_tool_profile_counts_from_zero() -> None:
    generator = FeedbackGenerator(BW_TOOL_PROFILE)
    assert feed(generator, 150, now=0.001)
    assert generator.poll_report(now=0.001) is None  # one packet: left to the timer
    assert generator.next_timeout() == 0.001
    lists = report(generator, 0.0015)
    assert [(item.begin_seq, len(item.blocks)) for item in lists] == [(1, 64), (65, 64), (87, 64)]
    generator = FeedbackGenerator(BW_TOOL_PROFILE)
    assert feed(generator, 0, 1, 2, now=0.001, marker=True)
    (item,) = report(generator, 0.001)
    assert item.begin_seq == 0xFFC3
    assert item.blocks == [0] * 61 + [R | 1 << 13] * 3


def test_a_frame_end_takes_every_ssrc_with_news_along() -> None:
    generator = FeedbackGenerator()
    generator.on_packet(1, 10, False, 1, now=1.0)
    generator.on_packet(2, 20, False, 1, now=1.001)
    assert generator.on_packet(2, 21, True, 1, now=1.002)
    assert [(i.ssrc, i.begin_seq) for i in report(generator, 1.002)] == [(1, 10), (2, 20)]
    assert generator.on_packet(2, 22, True, 1, now=1.003)
    assert [(i.ssrc, len(i.blocks)) for i in report(generator, 1.003)] == [(2, 3)]


def test_the_number_of_sources_is_bounded() -> None:
    generator = FeedbackGenerator()
    for ssrc in range(100):
        generator.on_packet(ssrc, 0, False, 1, now=1.0)
    assert generator.ignored_sources == 100 - DEFAULT_PROFILE.max_sources
    assert len(report(generator, 1.5)) == DEFAULT_PROFILE.max_sources


@pytest.mark.parametrize("profile", [DEFAULT_PROFILE, BW_TOOL_PROFILE])
@pytest.mark.parametrize("seed", range(6))
def test_every_arrival_is_reported_soon_and_nothing_else_is(
    profile: FeedbackProfile, seed: int
) -> None:
    """Loss, bursts, reordering and the wrap; polled as a session does."""
    rng = random.Random(f"feedback:{seed}")
    generator = FeedbackGenerator(profile)
    first = 0 if profile.from_zero else rng.randrange(65_536)
    pending: dict[int, float] = {}
    arrived: set[int] = set()
    now = 1.0
    order = [seq for seq in range(first, first + 3000) if rng.random() > 0.1]
    for place in range(len(order) - 1):
        if rng.random() < 0.05:
            other = min(len(order) - 1, place + rng.randrange(1, 90))
            order[place], order[other] = order[other], order[place]
    if not profile.from_zero:
        order.insert(0, first)
    for seq in order:
        now += rng.choice((0.0, 0.0001, 0.001, 0.01))
        arrived.add(seq & 0xFFFF)
        pending.setdefault(seq & 0xFFFF, now)
        due = generator.on_packet(SSRC, seq & 0xFFFF, rng.random() < 0.05, 1, now=now)
        at = generator.next_timeout()
        if due or (at is not None and at <= now):
            while lists := generator.poll_report(now=now):
                for item in lists:
                    for place, block in enumerate(item.blocks):
                        number = (item.begin_seq + place) & 0xFFFF
                        if block >= R:
                            assert number in arrived
                            pending.pop(number, None)
        assert all(now - since < 0.06 + 0.1 * (now < 1.3) for since in pending.values())
