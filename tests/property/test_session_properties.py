"""Sessions: no datagram makes them raise or spin, no frame is shown twice or out of order.

Everything that enters a session from the network is a byte string from
anywhere; the tests mix valid packets, damaged ones and noise, with time passing
and peers that change.
"""

import random
from dataclasses import dataclass, field
from itertools import groupby

from hypothesis import given, settings
from hypothesis import strategies as st

from streamd.cc.api import FeedbackReport, Limits, StreamReport
from streamd.cc.fixed import SPEC as FIXED
from streamd.cc.scream import SPEC as SCREAM
from streamd.datagram import Address, Datagram
from streamd.ecn import Ecn
from streamd.media.model import EncodedFrame
from streamd.session.events import FrameReady, SessionClosed
from streamd.session.frames import FrameAssembler
from streamd.session.history import SentHistory
from streamd.session.packetize import Packetizer, StreamIdentity
from streamd.session.queue import MediaPacket
from streamd.session.receiver import ReceiverOptions, ReceiverSession
from streamd.session.sender import SenderOptions, SenderSession
from streamd.wire.ccfb import BlockList, CongestionFeedback, encode_ccfb
from streamd.wire.ntp import unix_to_ntp
from streamd.wire.rtcp import (
    Goodbye,
    PictureLossIndication,
    ReceiverReport,
    SenderReport,
    encode_compound,
)

SSRC = 0xABCD0001
PEERS: list[Address] = [("192.0.2.1", 5000), ("192.0.2.2", 6000), ("::1", 7, 0, 0)]
U16 = st.integers(0, 0xFFFF)
U32 = st.integers(0, 0xFFFFFFFF)

peers = st.sampled_from([0, 0, 0, 0, 1, 2])
steps = st.one_of(
    st.floats(0.0, 0.05, allow_nan=False),
    st.sampled_from([0.0, 0.0005, 0.1, 1.0, 3.0, 70.0]),
)


@dataclass(frozen=True)
class Frame:
    """The application hands over a frame, or the encoder has dropped it."""

    size: int | None
    key: bool


@dataclass(frozen=True)
class Wait:
    """Time passes."""

    seconds: float


@dataclass(frozen=True)
class Raw:
    """Bytes arrive, as a run of segments."""

    data: bytes
    peer: int
    segment: int


@dataclass(frozen=True)
class Report:
    """Feedback about numbers near the ones sent; `lag` shifts the receiver's clock."""

    behind: int
    words: list[int]
    peer: int
    lag: float
    ssrc: int


@dataclass(frozen=True)
class Damaged:
    """A valid packet with a byte changed or its end missing."""

    kind: int
    position: int
    value: int
    keep: int
    peer: int


words = st.lists(st.one_of(st.just(0), st.integers(0x8000, 0xFFFF), U16), max_size=90)
waits = st.builds(Wait, steps)
raws = st.builds(Raw, st.binary(max_size=80), peers, st.integers(1, 40))
damaged = st.builds(
    Damaged, st.integers(0, 5), st.integers(0, 200), st.integers(0, 255), st.integers(0, 300), peers
)
sender_actions = st.lists(
    st.one_of(
        st.builds(Frame, st.one_of(st.none(), st.integers(0, 20_000)), st.booleans()),
        waits,
        waits,
        raws,
        damaged,
        st.builds(
            Report,
            st.integers(-70, 80),
            words,
            peers,
            st.sampled_from([0.0, 0.0, 0.0, 0.5, -3.0, 100.0, 30_000.0]),
            st.sampled_from([SSRC, SSRC, SSRC, 1]),
        ),
    ),
    max_size=60,
)


class SenderRun:
    """A sender session under fire; `looks` bounds how often it may ask for time."""

    def __init__(self, *, scream: bool, first_seq: int, bwtool: bool, start: float) -> None:
        spec = SCREAM if scream else FIXED
        controller = spec.build(spec.config_type(), ecn=Ecn.ECT1, rng=random.Random(1), now=start)
        self.now = start
        self.next_seq = first_seq
        self.session = SenderSession(
            SenderOptions(
                identity=StreamIdentity(SSRC, 98, first_seq=first_seq),
                limits=Limits(100_000, 1_000_000, 10_000_000),
                peer=PEERS[0],
                bwtool=bwtool,
                minus_one=bwtool,
            ),
            controller,
            now=start,
            unix_offset=1.7e9,
        )
        self.bwtool = bwtool
        self.closed = 0

    def act(self, action: object) -> None:
        session = self.session
        if isinstance(action, Frame):
            session.next_frame(now=self.now)
            frame = None
            if action.size is not None:
                frame = EncodedFrame(bytes(action.size), action.key, self.now)
            session.handle_frame(frame, now=self.now)
        elif isinstance(action, Wait):
            self.wait(action.seconds)
        elif isinstance(action, Raw):
            self.give(action.data, action.peer, action.segment)
        elif isinstance(action, Report):
            self.give(self.report(action), action.peer)
        elif isinstance(action, Damaged):
            data = bytearray(self.valid(action.kind))
            data[action.position % len(data)] = action.value
            self.give(bytes(data[: action.keep]), action.peer)
        self.drain()

    def wait(self, seconds: float) -> None:
        end = self.now + seconds
        looks = 0
        while (due := self.session.next_timeout()) is not None and due <= end:
            self.now = max(self.now, due)
            self.session.handle_timeout(now=self.now)
            self.drain()
            looks += 1
            assert looks < 400 + 4000 * seconds
        self.now = end

    def give(self, data: bytes, peer: int, segment: int = 0) -> None:
        datagram = Datagram(data, PEERS[peer], 0, self.now, segment)
        self.session.handle_datagrams([datagram], now=self.now)

    def report(self, action: Report) -> bytes:
        begin = self.next_seq - action.behind & 0xFFFF
        ticks = int((self.now + action.lag + 10.0) * 65536) & 0xFFFFFFFF
        lists = [BlockList(action.ssrc, begin, action.words or [0])]
        return encode_ccfb(CongestionFeedback(5, lists, ticks), minus_one=self.bwtool)

    def valid(self, kind: int) -> bytes:
        if kind == 0:
            return encode_compound([PictureLossIndication(5, SSRC)])
        if kind == 1:
            return encode_compound([ReceiverReport(5), Goodbye([5])])
        return self.report(Report(20, [0x8000] * 20, 0, 0.0, SSRC))

    def drain(self) -> None:
        while (transmit := self.session.poll_transmit(now=self.now)) is not None:
            sizes = [len(item) for item in transmit.segments]
            assert set(sizes[:-1]) <= {sizes[0]}
            assert 0 < sizes[-1] <= sizes[0]
            for segment in transmit.segments:
                if segment[1] & 0x7F == 98:
                    seq = int.from_bytes(segment[2:4], "big")
                    self.next_seq = max(
                        self.next_seq,
                        self.next_seq + (seq + 1 - self.next_seq + 32768) % 65536 - 32768,
                    )
        while (event := self.session.poll_event()) is not None:
            self.closed += isinstance(event, SessionClosed)


@settings(deadline=None, max_examples=150)
@given(
    actions=sender_actions,
    scream=st.booleans(),
    first_seq=st.sampled_from([0, 65_530, 30_000]),
    bwtool=st.booleans(),
    start=st.sampled_from([0.0, 65_535.9, 1e6]),
)
def test_a_sender_session_takes_anything_and_closes(
    actions: list[object], scream: bool, first_seq: int, bwtool: bool, start: float
) -> None:
    run = SenderRun(scream=scream, first_seq=first_seq, bwtool=bwtool, start=start)
    for action in actions:
        run.act(action)
    run.session.close(now=run.now)
    run.drain()
    run.wait(2.25)
    assert run.closed == 1
    assert run.session.next_timeout() is None
    stats = run.session.stats
    lost, sent = run.session.network_loss(now=run.now + 10.0)
    assert 0 <= lost <= sent
    assert sum(stats.ecn_acked) <= sent <= stats.packets


# --- the ledger --------------------------------------------------------------------------------


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


# --- frames ------------------------------------------------------------------------------------


@dataclass
class Clip:
    """Frames and the fragments of them that arrive, in the order they do."""

    first: int
    keys: list[bool]
    counts: list[int]
    arrivals: list[tuple[int, int]] = field(default_factory=list)


@st.composite
def clips(draw: st.DrawFn, *, lossless: bool) -> Clip:
    """Any order, repetition and (unless lossless) loss of the fragments of up to 40 frames."""
    length = draw(st.integers(1, 40))
    keys = [True] + [draw(st.integers(0, 9)) == 0 and not lossless for _ in range(length - 1)]
    counts = [draw(st.integers(1, 4)) for _ in range(length)]
    first = draw(st.sampled_from([0, 5, 65_530]))
    clip = Clip(first, keys, counts)
    fragments = [(frame, part) for frame in range(length) for part in range(counts[frame])]
    if lossless:
        clip.arrivals = draw(st.permutations(fragments))
    else:
        jitter = draw(st.integers(0, 30))
        rng = draw(st.randoms(use_true_random=False))
        kept = [item for item in fragments if rng.random() > 0.15]
        kept += [item for item in fragments if rng.random() < 0.1]
        clip.arrivals = sorted(kept, key=lambda item: sum(item) + rng.uniform(0, jitter))
    return clip


def _assemble(clip: Clip) -> tuple[list[int], FrameAssembler]:
    """Feed a clip; frame indices in the order they came out."""
    assembler = FrameAssembler()
    out: list[int] = []
    base: int | None = None
    for index, part in clip.arrivals:
        frame_id = clip.first + index & 0xFFFF
        if base is None:
            base = frame_id - index
        assembler.add(
            (0, frame_id, part, clip.counts[index]),
            clip.keys[index],
            index,
            b"%d.%d;" % (index, part),
            0.0,
        )
        for number, frame in assembler.poll(0.0):
            index_out = number - base
            assert frame.rtp_time == index_out
            assert frame.data() == b"".join(
                b"%d.%d;" % (index_out, piece) for piece in range(clip.counts[index_out])
            )
            out.append(index_out)
    return out, assembler


@settings(deadline=None)
@given(clips(lossless=True))
def test_without_loss_every_frame_comes_out_once_and_in_order(clip: Clip) -> None:
    out, assembler = _assemble(clip)
    assert out == list(range(len(clip.keys)))
    assembler.close()
    assert assembler.bytes_held == 0
    assert (assembler.lost, assembler.skipped) == (0, 0)


@settings(deadline=None, max_examples=300)
@given(clips(lossless=False))
def test_whatever_arrives_only_whole_chains_come_out_and_the_counts_add_up(clip: Clip) -> None:
    out, assembler = _assemble(clip)
    assert out == sorted(set(out))
    arrived = set(clip.arrivals)
    for index in out:
        assert clip.keys[index] or index - 1 in out
        assert all((index, part) in arrived for part in range(clip.counts[index]))
    assembler.close()
    assert assembler.bytes_held == 0
    assert len(out) + assembler.lost + assembler.skipped == assembler.take_seen()


# --- the receiver ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Media:
    """Packets `start` to `start + count` of the prepared stream, as a run."""

    start: int
    count: int
    peer: int
    ecn: int | None
    stream: int


receiver_actions = st.lists(
    st.one_of(
        st.builds(
            Media,
            st.integers(0, 200),
            st.integers(1, 12),
            peers,
            st.sampled_from([None, 0, 1, 2, 3]),
            st.integers(0, 2),
        ),
        waits,
        raws,
        damaged,
    ),
    max_size=60,
)


def _media(ssrc: int, first_seq: int, *, extension: bool) -> list[bytes]:
    """200 packets: frames of one to six fragments, a key frame every ten."""
    identity = StreamIdentity(ssrc, 98, first_seq=first_seq, video_extension=extension)
    packetizer = Packetizer(identity)
    packets: list[bytes] = []
    number = 0
    while len(packets) < 213:
        frame = EncodedFrame(bytes(50 * (number * 7 % 6) + 20), number % 10 == 0, number / 30)
        packets += [item.data for item in packetizer.packetize(frame, payload=50, now=0.0)]
        number += 1
    return packets


STREAMS = [
    _media(SSRC, 65_450, extension=True),
    _media(SSRC + 1, 5, extension=True),
    _media(SSRC, 30_000, extension=False),
]


class ReceiverRun:
    """A receiver session under fire."""

    def __init__(self, *, bwtool: bool, peer: Address | None, start: float) -> None:
        self.now = start
        self.session = ReceiverSession(
            ReceiverOptions(ssrc=5, peer=peer, bwtool=bwtool, minus_one=bwtool),
            now=start,
            unix_offset=1.7e9,
        )
        self.numbers: list[int] = []
        self.closed = 0

    def act(self, action: object) -> None:
        if isinstance(action, Media):
            packets = STREAMS[action.stream][action.start : action.start + action.count]
            for size, run in groupby(packets, len):
                self.give(b"".join(run), action.peer, size, action.ecn)
        elif isinstance(action, Wait):
            self.wait(action.seconds)
        elif isinstance(action, Raw):
            self.give(action.data, action.peer, action.segment, 1)
        elif isinstance(action, Damaged):
            data = bytearray(self.valid(action.kind))
            data[action.position % len(data)] = action.value
            self.give(bytes(data[: action.keep]), action.peer, 0, 1)

    def valid(self, kind: int) -> bytes:
        report = SenderReport(SSRC, unix_to_ntp(1.7e9), 0, 1, 1)
        if kind == 0:
            return encode_compound([report])
        if kind == 1:
            return encode_compound([report, Goodbye([SSRC])])
        return STREAMS[kind % 3][kind]

    def give(self, data: bytes, peer: int, segment: int, ecn: int | None) -> None:
        datagram = Datagram(data, PEERS[peer], ecn, self.now, segment)
        self.session.handle_datagrams([datagram], now=self.now)
        self.drain()

    def wait(self, seconds: float) -> None:
        end = self.now + seconds
        looks = 0
        while (due := self.session.next_timeout()) is not None and due <= end:
            self.now = max(self.now, due)
            self.session.handle_timeout(now=self.now)
            self.drain()
            looks += 1
            assert looks < 100 + 100 * seconds
        self.now = end

    def drain(self) -> None:
        while (transmit := self.session.poll_transmit(now=self.now)) is not None:
            assert transmit.segments[0]
        while (event := self.session.poll_event()) is not None:
            self.closed += isinstance(event, SessionClosed)
            if isinstance(event, FrameReady):
                self.numbers.append(event.frame_no)
                good = len(event.data) % 3 != 0
                self.session.handle_decoded(event.frame_no, int(good), now=self.now)


@settings(deadline=None, max_examples=150)
@given(
    actions=receiver_actions,
    bwtool=st.booleans(),
    peer=st.sampled_from([None, PEERS[0]]),
    start=st.sampled_from([0.0, 65_535.9, 1e6]),
)
def test_a_receiver_session_takes_anything_and_closes(
    actions: list[object], bwtool: bool, peer: Address | None, start: float
) -> None:
    run = ReceiverRun(bwtool=bwtool, peer=peer, start=start)
    for action in actions:
        run.act(action)
    run.session.close(now=run.now)
    run.drain()
    assert run.closed == 1
    assert run.session.next_timeout() is None
    assert run.numbers == sorted(set(run.numbers))
    stats = run.session.stats
    assert stats.frames_decoded + stats.frames_undecodable == len(run.numbers)
    assert sum(stats.ecn) + stats.ecn_unknown == stats.packets


@settings(deadline=None, max_examples=150)
@given(
    actions=st.lists(
        st.one_of(
            st.builds(
                Media,
                st.integers(0, 200),
                st.integers(1, 12),
                peers,
                st.just(1),
                st.integers(0, 1),
            ),
            waits,
        ),
        max_size=60,
    )
)
def test_every_frame_of_every_stream_ends_in_exactly_one_count(actions: list[object]) -> None:
    run = ReceiverRun(bwtool=False, peer=None, start=10.0)
    for action in actions:
        run.act(action)
    run.session.close(now=run.now)
    stats = run.session.stats
    ends = (
        stats.frames_decoded + stats.frames_undecodable + stats.frames_lost + stats.frames_skipped
    )
    assert ends == stats.frames_seen


class Outcome:
    """What a receiver made of a list of reads, fed whole or segment by segment."""

    def __init__(self, reads: list[tuple[float, Datagram]], *, whole: bool) -> None:
        self.session = ReceiverSession(ReceiverOptions(ssrc=5), now=10.0, unix_offset=1.7e9)
        self.frames: list[tuple[int, bytes, bool]] = []
        for at, datagram in reads:
            while (due := self.session.next_timeout()) is not None and due <= at:
                self.session.handle_timeout(now=due)
                self._drain(due)
            for part in [datagram] if whole else self._apart(datagram):
                self.session.handle_datagrams([part], now=at)
            self._drain(at)
        self.session.close(now=100.0)

    @staticmethod
    def _apart(datagram: Datagram) -> list[Datagram]:
        address, ecn, at = datagram.address, datagram.ecn, datagram.received_at
        return [Datagram(data, address, ecn, at) for data in datagram.segments()]

    def _drain(self, now: float) -> None:
        while self.session.poll_transmit(now=now) is not None:
            pass
        while (event := self.session.poll_event()) is not None:
            if isinstance(event, FrameReady):
                self.frames.append((event.frame_no, event.data, event.keyframe))
                self.session.handle_decoded(event.frame_no, 1, now=now)

    def counts(self) -> dict[str, object]:
        stats = self.session.stats
        names = (
            "packets bytes payload_bytes duplicates reordered ecn ecn_unknown streams invalid"
            " frames_seen frames_completed frames_key frames_decoded frames_lost frames_skipped"
            " late_fragments last_arrival"
        )
        return {name: getattr(stats, name) for name in names.split()}


@st.composite
def reads(draw: st.DrawFn) -> list[tuple[float, Datagram]]:
    """Runs cut out of a stream, mostly in order, now and then again, damaged or foreign."""
    now, found = 10.0, []
    position = 0
    packets = STREAMS[0]
    for _ in range(draw(st.integers(0, 40))):
        now += draw(st.sampled_from([0.0, 0.001, 0.02]))
        position = max(0, position + draw(st.sampled_from([0, 0, 0, 0, 0, 1, 3, -2, -7])))
        taken = packets[position : position + draw(st.integers(1, 9))]
        if not taken:
            break
        position += len(taken)
        size = len(taken[0])
        run = [taken[0]]
        for packet in taken[1:]:
            if len(packet) > size or len(run[-1]) < size:
                break
            run.append(packet)
        position -= len(taken) - len(run)
        data = bytearray(b"".join(run))
        if draw(st.integers(0, 9)) == 0:
            data[draw(st.integers(0, len(data) - 1))] ^= 1 << draw(st.integers(0, 7))
        peer = PEERS[draw(st.sampled_from([0, 0, 0, 0, 0, 1]))]
        ecn = draw(st.sampled_from([1, 1, 3, None]))
        found.append((now, Datagram(bytes(data), peer, ecn, now, size)))
    return found


@settings(deadline=None, max_examples=300)
@given(reads())
def test_a_run_is_worth_its_packets(found: list[tuple[float, Datagram]]) -> None:
    whole, apart = Outcome(found, whole=True), Outcome(found, whole=False)
    assert whole.frames == apart.frames
    assert whole.counts() == apart.counts()
    assert abs(whole.session.stats.jitter - apart.session.stats.jitter) < 1e-12
