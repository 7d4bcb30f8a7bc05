"""Copies in a stream of their own (RFC 4588), seen by the receiver."""

from session_parts import SSRC, STRANGER, Source
from session_receiver_rig import Rig, frames_in

from streamd.session.events import FrameReady
from streamd.wire.ccfb import CongestionFeedback
from streamd.wire.rtx import wrap

COPIES = 0x0BADCAFE


def test_a_copy_completes_its_frame_and_is_reported_under_its_own_ssrc() -> None:
    rig, source = Rig(), Source()
    rig.give(*source.frame(10.0, key=True))
    first, second = source.frame(10.03125)
    assert frames_in(rig.give(first)) == []
    copy = wrap(second.data, ssrc=COPIES, payload_type=108, seq=900)
    (ready,) = frames_in(rig.raw(copy, second.address))
    assert isinstance(ready, FrameReady)
    assert ready.data == source.frames[1]
    assert rig.session.stats.copies == 1
    rig.until(10.25)
    reported = [
        (blocks.ssrc, blocks.begin_seq, len(blocks.blocks))
        for item in rig.rtcp()
        if isinstance(item, CongestionFeedback)
        for blocks in item.lists
    ]
    assert (COPIES, 900, 1) in [(ssrc, begin + n - 1, 1) for ssrc, begin, n in reported]


def test_a_copy_of_what_is_there_is_a_duplicate() -> None:
    rig, source = Rig(), Source()
    packets = source.frame(10.0, key=True)
    rig.give(*packets)
    rig.raw(wrap(packets[0].data, ssrc=COPIES, payload_type=108, seq=1))
    assert rig.session.stats.duplicates == 1
    assert rig.stats_invalid == {}


def test_what_is_no_copy_of_our_stream_is_counted_by_reason() -> None:
    rig, source = Rig(), Source()
    packets = source.frame(10.0, key=True)
    rig.give(*packets)
    other = Source(first_seq=30_000).frame(10.0)[0].data
    rig.raw(wrap(other, ssrc=COPIES, payload_type=108, seq=1))
    assert rig.stats_invalid == {"rtx_number": 1}
    rig.raw(wrap(packets[0].data, ssrc=COPIES, payload_type=108, seq=1)[:13])
    assert rig.stats_invalid["rtp_extension"] == 1
    rig.raw(wrap(packets[0].data, ssrc=COPIES, payload_type=108, seq=2), STRANGER)
    assert rig.stats_invalid["foreign_source"] == 1
    rig.raw(wrap(packets[0].data, ssrc=COPIES, payload_type=108, seq=2))
    rig.raw(wrap(packets[0].data, ssrc=SSRC + 5, payload_type=108, seq=3))
    assert rig.stats_invalid["second_stream"] == 1


def test_copies_before_there_is_a_stream_start_none() -> None:
    rig, source = Rig(), Source()
    for seq, packet in enumerate(source.frame(10.0, key=True, fragments=4)):
        rig.raw(wrap(packet.data, ssrc=COPIES, payload_type=108, seq=seq))
    assert rig.session.stats.streams == 0
    assert rig.stats_invalid == {"payload_type": 4}
