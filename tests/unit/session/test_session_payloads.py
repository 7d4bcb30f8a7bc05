"""The receiver with standard payloads: with our extension, without it, and with both mixed."""

from session_parts import OFFSET, SENDER, drain_events

from streamd.datagram import Datagram
from streamd.media.model import EncodedFrame
from streamd.session.events import FrameReady, StreamStarted
from streamd.session.packetize import Packetizer, StreamIdentity
from streamd.session.receiver import ReceiverOptions, ReceiverSession

VP9 = 98
KEY = b"\x82" + b"k" * 249


def identity(*, extension: bool = True, kind: int = VP9, payload: str = "vp9") -> StreamIdentity:
    return StreamIdentity(5, kind, first_seq=10, video_extension=extension, payload=payload)


class Rig:
    """Frames of one sender, a packet a time, to a session that takes VP9 as 98 and 120."""

    def __init__(self, sender: StreamIdentity, formats: dict[int, str] | None = None) -> None:
        self.packetizer = Packetizer(sender)
        self.session = ReceiverSession(
            ReceiverOptions(ssrc=1, formats=formats or {VP9: "vp9"}), now=0.0, unix_offset=OFFSET
        )
        self.number = 0
        self.shown: list[tuple[bytes, bool]] = []
        self.started = 0

    def packets(self, data: bytes, *, key: bool = False) -> list[bytes]:
        frame = EncodedFrame(data, key, self.number / 32)
        self.number += 1
        return [item.data for item in self.packetizer.packetize(frame, payload=100, now=0.0)]

    def give(self, *packets: bytes, segment: int | None = None) -> None:
        now = self.number / 32
        data = b"".join(packets)
        items = (
            [Datagram(item, SENDER, 0, now) for item in packets]
            if segment is None
            else [Datagram(data, SENDER, 0, now, segment)]
        )
        self.session.handle_datagrams(items, now=now)
        for event in drain_events(self.session):
            if isinstance(event, FrameReady):
                self.shown.append((event.data, event.keyframe))
                self.session.handle_decoded(event.frame_no, 1, now=now)
            elif isinstance(event, StreamStarted):
                self.started += 1

    def frame(self, data: bytes, *, key: bool = False) -> None:
        self.give(*self.packets(data, key=key))

    @property
    def invalid(self) -> dict[str, int]:
        return self.session.stats.invalid


def without_extension(packet: bytes) -> bytes:
    return b"\x80" + packet[1:12] + packet[24:]


def test_the_descriptors_are_gone_from_what_is_shown() -> None:
    rig = Rig(identity())
    rig.frame(KEY, key=True)
    rig.frame(b"d" * 99)
    assert rig.shown == [(KEY, True), (b"d" * 99, False)]
    assert rig.invalid == {}


def test_runs_of_a_frame_are_joined_too() -> None:
    rig = Rig(identity())
    rig.frame(KEY, key=True)
    whole = rig.packets(b"d" * 250)
    rig.give(*whole, segment=len(whole[0]))
    assert rig.shown[1:] == [(b"d" * 250, False)]


def test_a_packet_without_its_extension_changes_nothing_for_the_others() -> None:
    rig = Rig(identity())
    rig.frame(KEY, key=True)
    first, *others = rig.packets(b"d" * 250)
    rig.give(without_extension(first), *others)
    assert rig.invalid == {"video_ext_missing": 1}
    rig.frame(KEY, key=True)
    assert rig.shown == [(KEY, True), (KEY, True)]


def test_a_sender_without_the_extension_is_shown() -> None:
    rig = Rig(identity(extension=False))
    rig.frame(KEY, key=True)
    rig.frame(b"d" * 250)
    assert rig.shown == [(KEY, True), (b"d" * 250, False)]
    assert rig.session.stats.frames_completed == 2
    assert rig.started == 1


def test_one_packet_with_an_extension_makes_no_difference_to_such_a_stream() -> None:
    rig = Rig(identity(extension=False))
    rig.frame(KEY, key=True)
    ours = Packetizer(StreamIdentity(5, VP9, first_seq=13, payload="vp9"))
    frame = EncodedFrame(b"d" * 250, False, 1 / 32)
    rig.number += 1
    forged = [item.data for item in ours.packetize(frame, payload=100, now=0.0)]
    rig.give(*forged, segment=len(forged[0]))
    assert rig.shown == [(KEY, True), (b"d" * 250, False)]


def test_a_frame_whose_payloads_contradict_waits_for_a_key_frame() -> None:
    rig = Rig(identity())
    rig.frame(KEY, key=True)
    first, *others = rig.packets(b"d" * 250)
    # the beginning of a frame denies that it is one
    rig.give(first[:24] + bytes((first[24] & ~0x08,)) + first[25:], *others)
    rig.frame(b"e" * 50)
    assert rig.shown == [(KEY, True)]
    assert rig.invalid == {"vp9_payload": 1}
    assert rig.session.stats.frames_undecodable == 1
    rig.frame(KEY[:50], key=True)
    assert rig.shown[1:] == [(KEY[:50], True)]


def test_a_chosen_codec_is_what_any_dynamic_type_carries() -> None:
    rig = Rig(identity(extension=False, kind=120), dict.fromkeys(range(96, 128), "vp9"))
    rig.frame(KEY, key=True)
    assert rig.shown == [(KEY, True)]


def test_other_types_are_refused() -> None:
    rig = Rig(identity(kind=34))
    rig.frame(KEY, key=True)
    assert rig.shown == []
    assert rig.invalid == {"payload_type": 3}
