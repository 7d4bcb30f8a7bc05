"""What drives a receiver session in tests: a rig stepped by hand."""

from session_parts import OFFSET, SENDER, Source, drain_events, drain_transmits

from streamd.datagram import Address, Datagram
from streamd.session.events import Event, FrameReady
from streamd.session.receiver import ReceiverOptions, ReceiverSession
from streamd.wire.rtcp import PictureLossIndication, RtcpPacket, decode_compound


class Rig:
    """A receiver session stepped by hand in 50 ms housekeeping steps."""

    def __init__(
        self, *, peer: Address | None = None, bwtool: bool = False, now: float = 10.0
    ) -> None:
        self.now = now
        self.session = ReceiverSession(
            ReceiverOptions(ssrc=77, peer=peer, bwtool=bwtool, minus_one=bwtool),
            now=now,
            unix_offset=OFFSET,
        )
        self.events: list[Event] = []
        self.sent: list[tuple[float, Address, bytes]] = []

    @property
    def stats_invalid(self) -> dict[str, int]:
        return self.session.stats.invalid

    def give(self, *datagrams: Datagram) -> list[Event]:
        """Hand datagrams in at their arrival time; the events that came of it."""
        for datagram in datagrams:
            self.now = max(self.now, datagram.received_at)
            self.session.handle_datagrams([datagram], now=self.now)
            self._collect()
        return self._new_events()

    def raw(self, data: bytes, address: Address = SENDER) -> list[Event]:
        return self.give(Datagram(data, address, 0, self.now))

    def until(self, end: float) -> list[Event]:
        """Let timeouts pass up to `end`."""
        while (due := self.session.next_timeout()) is not None and due <= end:
            self.now = max(self.now, due)
            self.session.handle_timeout(now=self.now)
            self._collect()
        self.now = end
        return self._new_events()

    def decode(self, *frames: FrameReady) -> None:
        for frame in frames:
            self.session.handle_decoded(frame.frame_no, 1, now=self.now)

    def rtcp(self) -> list[RtcpPacket]:
        """All RTCP packets sent so far."""
        return [packet for _, _, data in self.sent for packet in decode_compound(data)]

    def requests(self) -> list[float]:
        """Times of key-frame requests."""
        return [
            at
            for at, _, data in self.sent
            if any(isinstance(item, PictureLossIndication) for item in decode_compound(data))
        ]

    def _collect(self) -> None:
        for transmit in drain_transmits(self.session, self.now):
            assert transmit.ecn == 0
            self.sent += [(self.now, transmit.address, data) for data in transmit.segments]
        self.events += drain_events(self.session)

    def _new_events(self) -> list[Event]:
        events, self.events = self.events, []
        return events


def frames_in(events: list[Event]) -> list[FrameReady]:
    return [event for event in events if isinstance(event, FrameReady)]


def numbers(events: list[Event]) -> list[int]:
    return [frame.frame_no for frame in frames_in(events)]


def started(rig: Rig, source: Source, at: float = 10.0) -> None:
    """The source's first frame, a key frame, is there and decoded."""
    events = rig.give(*source.frame(at, key=True))
    assert frames_in(events), rig.stats_invalid
    rig.decode(*frames_in(events))
