"""A run read as a whole means the same as its packets read one by one.

Here packets are missing, doubled or moved within the runs. The receiver's properties
compare runs without gaps, with changed bits, other senders and ECN marks.
"""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamd.datagram import Datagram
from streamd.media.model import EncodedFrame
from streamd.session.events import FrameReady
from streamd.session.packetize import Packetizer, StreamIdentity
from streamd.session.receiver import ReceiverOptions, ReceiverSession
from streamd.session.runs import match_run

SOURCE = ("192.0.2.1", 4000)
PAYLOAD = 100
SAME = (
    "packets",
    "bytes",
    "payload_bytes",
    "duplicates",
    "reordered",
    "ecn",
    "invalid",
    "frames_completed",
    "frames_decoded",
    "frames_lost",
    "frames_skipped",
    "frames_seen",
    "late_fragments",
)


def packets(seed: int, first_seq: int) -> list[bytes]:
    """Frames of several sizes, with packets lost, doubled and moved."""
    rng = random.Random(seed)
    maker = Packetizer(StreamIdentity(7, first_seq=first_seq, first_timestamp=0xFFFFF000))
    found = []
    for number in range(12):
        size = rng.choice((40, 99, 100, 350, 1000, 2600))
        frame = EncodedFrame(rng.randbytes(size), number % 5 == 0, number * 0.02)
        found += [p.data for p in maker.packetize(frame, payload=PAYLOAD, now=number * 0.02)]
    for _ in range(rng.randrange(4)):
        del found[rng.randrange(2, len(found))]
    for _ in range(rng.randrange(3)):
        found.insert(rng.randrange(2, len(found)), rng.choice(found))
    for _ in range(rng.randrange(3)):
        here = rng.randrange(2, len(found) - 1)
        found[here], found[here + 1] = found[here + 1], found[here]
    return found


def grouped(found: list[bytes], rng: random.Random) -> list[list[bytes]]:
    """Neighbours of one size together, a shorter one at the end, as GSO and GRO do."""
    groups: list[list[bytes]] = [[]]
    for packet in found:
        group = groups[-1]
        full = group and (len(packet) > len(group[0]) or len(group[-1]) < len(group[0]))
        if full or len(group) >= rng.choice((1, 2, 5, 20)):
            groups.append([])
        groups[-1].append(packet)
    return groups


def receive(groups: list[list[bytes]], ecn: int) -> tuple[ReceiverSession, list[tuple[int, bytes]]]:
    """Feed a session one read per group, 1 ms apart; the frames it handed out."""
    session = ReceiverSession(ReceiverOptions(ssrc=9), now=0.0, unix_offset=0.0)
    frames = []
    for number, group in enumerate(groups):
        at = number * 0.001
        for read in group if ecn < 0 else [b"".join(group)]:
            size = len(group[0]) if len(read) > len(group[0]) else len(read)
            session.handle_datagrams([Datagram(read, SOURCE, abs(ecn), at, size)], now=at)
        while (event := session.poll_event()) is not None:
            if isinstance(event, FrameReady):
                frames.append((event.frame_no, event.data))
                session.handle_decoded(event.frame_no, 1, now=at)
        while session.poll_transmit(now=at) is not None:
            pass
    session.close(now=len(groups) * 0.001)
    return session, frames


@given(st.integers(0, 2**32), st.sampled_from((0, 1000, 0xFFF0)), st.sampled_from((1, 3)))
@settings(max_examples=60, deadline=None)
def test_runs_and_single_packets_agree(seed: int, first_seq: int, ecn: int) -> None:
    groups = grouped(packets(seed, first_seq), random.Random(seed))
    whole, whole_frames = receive(groups, ecn)
    single, single_frames = receive(groups, -ecn)
    assert whole_frames == single_frames
    for name in SAME:
        assert getattr(whole.stats, name) == getattr(single.stats, name), name
    assert whole.stats.jitter == pytest.approx(single.stats.jitter)


def run_of(count: int) -> list[bytes]:
    """The first packets of one large frame."""
    maker = Packetizer(StreamIdentity(7, first_seq=50))
    frame = EncodedFrame(bytes(950), True, 1.0)
    return [p.data for p in maker.packetize(frame, payload=PAYLOAD, now=1.0)][:count]


def test_a_run_is_cut_where_the_packets_were() -> None:
    run = match_run(b"".join(run_of(10)), 124)
    assert run is not None
    assert (run.seq, run.fragment, run.fragments, run.marker) == (50, 0, 10, True)
    assert [len(payload) for payload in run.payloads] == [100] * 9 + [50]
    assert run.payload_bytes == 950
    middle = match_run(b"".join(run_of(7)), 124)
    assert middle is not None
    assert not middle.marker
    assert len(middle.payloads) == 7


@given(st.integers(0, 23), st.integers(0, 4), st.integers(1, 255))
def test_any_changed_header_byte_makes_it_no_run(byte: int, packet: int, flip: int) -> None:
    data = bytearray(b"".join(run_of(5)))
    data[packet * 124 + byte] ^= flip
    assert match_run(bytes(data), 124) is None
