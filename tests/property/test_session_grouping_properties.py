"""Streams without our extension: whole frames only, in order, once; anything may come in."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from streamd.datagram import Datagram
from streamd.session.events import FrameReady
from streamd.session.grouping import MAX_WAIT, FrameGrouper
from streamd.session.receiver import ReceiverOptions, ReceiverSession
from streamd.wire.payload.formats import FORMATS
from streamd.wire.rtp import MARKER, pack_header

CODECS = ("vp8", "vp9", "h264")
SENDER = ("192.0.2.1", 5004)
FIRST = 65_530
"""The numbers wrap."""


def bitstream(codec: str, number: int, size: int) -> bytes:
    """A key frame that says its number, `size` bytes and a few."""
    text = b"%06d" % number + b"x" * size
    return {"h264": b"\x00\x00\x00\x01\x65", "vp9": b"\x82", "vp8": b"\x00"}[codec] + text


def packets(codec: str, sizes: list[int], ssrc: int = 5) -> list[bytes]:
    """Frames of these sizes as RTP packets, as others send them."""
    out: list[bytes] = []
    for number, size in enumerate(sizes):
        data = bitstream(codec, number, size)
        parts = FORMATS[codec].cut(data, keyframe=True, picture_id=number, size=20)
        for index, part in enumerate(parts):
            second = 96 | (MARKER if index == len(parts) - 1 else 0)
            out.append(pack_header(second, FIRST + len(out), 3000 * number, ssrc) + part)
    return out


sizes = st.lists(st.integers(0, 60), min_size=3, max_size=12)
codecs = st.sampled_from(CODECS)


@given(codec=codecs, sizes=sizes, data=st.data())
def test_reordered_by_a_few_places_nothing_is_missing(
    codec: str, sizes: list[int], data: st.DataObject
) -> None:
    form = FORMATS[codec]
    parts: list[tuple[int, int, bool, bytes]] = []
    for number, size in enumerate(sizes):
        cut = form.cut(bitstream(codec, number, size), keyframe=True, picture_id=number, size=20)
        for index, part in enumerate(cut):
            parts.append((len(parts), 3000 * number, index == len(cut) - 1, part))
    # each is moved back by at most ten places; the first stays
    keys = [0] + [n + data.draw(st.integers(0, 10)) for n in range(1, len(parts))]
    order = sorted(range(len(parts)), key=lambda n: (keys[n], n))
    grouper = FrameGrouper(form)
    got = [frame for n in order for frame in grouper.add(*parts[n], 0.0)]
    assert [frame.number for frame in got] == list(range(len(sizes)))
    assert [frame.data for frame in got] == [bitstream(codec, n, s) for n, s in enumerate(sizes)]
    assert all(frame.keyframe for frame in got)
    assert (grouper.gaps, grouper.bytes_held, grouper.take_errors()) == (0, 0, [])


@given(codec=codecs, sizes=sizes, lost=st.sets(st.integers(1, 60), max_size=6))
def test_what_is_lost_costs_frames_and_none_is_shown_in_part(
    codec: str, sizes: list[int], lost: set[int]
) -> None:
    session = ReceiverSession(
        ReceiverOptions(ssrc=1, formats={96: codec}), now=0.0, unix_offset=1e9
    )
    now, shown = 0.0, []
    for number, packet in enumerate(packets(codec, sizes)):
        now += 0.25
        if number not in lost:
            session.handle_datagrams([Datagram(packet, SENDER, 0, now)], now=now)
        session.handle_timeout(now=now)
        while (event := session.poll_event()) is not None:
            if isinstance(event, FrameReady):
                shown.append(event.data)
                session.handle_decoded(event.frame_no, 1, now=now)
    frames = [bitstream(codec, n, s) for n, s in enumerate(sizes)]
    places = [frames.index(data) for data in shown]
    assert places == sorted(set(places))
    if not lost:
        assert places == list(range(len(sizes)))


@dataclass(frozen=True)
class Noise:
    """A packet of some number with some payload."""

    step: int
    timestamp: int
    marker: bool
    payload: bytes
    wait: float


noise = st.builds(
    Noise,
    st.integers(-5, 9),
    st.integers(0, 3),
    st.booleans(),
    st.binary(max_size=12),
    st.sampled_from([0.0, 0.01, 0.3]),
)


@given(codec=codecs, items=st.lists(noise, max_size=80))
def test_anything_may_come_in(codec: str, items: list[Noise]) -> None:
    grouper = FrameGrouper(FORMATS[codec])
    seq, now, last = 100, 0.0, -1
    seen: set[int] = set()
    for item in items:
        seq += item.step
        now += item.wait
        if seq in seen:
            continue
        seen.add(seq)
        for frame in grouper.add(seq, item.timestamp, item.marker, item.payload, now):
            assert frame.number > last
            last = frame.number
        assert 0 <= grouper.bytes_held <= 12 * len(seen)
    assert all(error.reason.endswith("_payload") for error in grouper.take_errors())


@given(codec=codecs, gap=st.integers(1, 28_000))
def test_after_any_gap_the_next_whole_frame_is_shown(codec: str, gap: int) -> None:
    form = FORMATS[codec]
    grouper = FrameGrouper(form)
    (part,) = form.cut(bitstream(codec, 0, 1), keyframe=True, picture_id=0, size=99)
    assert len(grouper.add(0, 0, True, part, 0.0)) == 1
    got = []
    for step in range(MAX_WAIT + 2):
        got += grouper.add(1 + gap + step, 3000 * (2 + step), True, part, 0.0)
    # the first one behind a gap may be the end of a larger frame
    assert [frame.rtp_time for frame in got] == [3000 * (3 + n) for n in range(MAX_WAIT + 1)]
