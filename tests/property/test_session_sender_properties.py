"""The sender session: no datagram makes it raise or spin.

Everything that enters a session from the network is a byte string from
anywhere; the tests mix valid packets, damaged ones and noise, with time passing
and peers that change.
"""

import random
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from streamd.cc.api import Limits
from streamd.cc.fixed import SPEC as FIXED
from streamd.cc.scream import SPEC as SCREAM
from streamd.datagram import Address, Datagram
from streamd.ecn import Ecn
from streamd.media.model import EncodedFrame
from streamd.session.events import SessionClosed
from streamd.session.packetize import StreamIdentity
from streamd.session.sender import SenderSession
from streamd.session.sender_options import SenderOptions
from streamd.wire.ccfb import BlockList, CongestionFeedback, encode_ccfb
from streamd.wire.rtcp import Goodbye, PictureLossIndication, ReceiverReport, encode_compound

SSRC = 0xABCD0001
PEERS: list[Address] = [("192.0.2.1", 5000), ("192.0.2.2", 6000), ("::1", 7, 0, 0)]
U16 = st.integers(0, 0xFFFF)

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
