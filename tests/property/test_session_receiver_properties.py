"""The receiver session: nothing makes it raise or spin, no frame is shown twice or out of order.

Everything that enters a session from the network is a byte string from
anywhere; the tests mix valid packets, damaged ones and noise, with time passing
and peers that change.
"""

from dataclasses import dataclass
from itertools import groupby

from hypothesis import given, settings
from hypothesis import strategies as st

from streamd.datagram import Address, Datagram
from streamd.media.model import EncodedFrame
from streamd.session.events import FrameReady, SessionClosed
from streamd.session.packetize import Packetizer, StreamIdentity
from streamd.session.receiver import ReceiverOptions, ReceiverSession
from streamd.wire.ntp import unix_to_ntp
from streamd.wire.rtcp import Goodbye, SenderReport, encode_compound

SSRC = 0xABCD0001
PEERS: list[Address] = [("192.0.2.1", 5000), ("192.0.2.2", 6000), ("::1", 7, 0, 0)]

peers = st.sampled_from([0, 0, 0, 0, 1, 2])
steps = st.one_of(
    st.floats(0.0, 0.05, allow_nan=False),
    st.sampled_from([0.0, 0.0005, 0.1, 1.0, 3.0, 70.0]),
)


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
class Damaged:
    """A valid packet with a byte changed or its end missing."""

    kind: int
    position: int
    value: int
    keep: int
    peer: int


@dataclass(frozen=True)
class Media:
    """Packets `start` to `start + count` of the prepared stream, as a run."""

    start: int
    count: int
    peer: int
    ecn: int | None
    stream: int


waits = st.builds(Wait, steps)
raws = st.builds(Raw, st.binary(max_size=80), peers, st.integers(1, 40))
damaged = st.builds(
    Damaged, st.integers(0, 5), st.integers(0, 200), st.integers(0, 255), st.integers(0, 300), peers
)
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
