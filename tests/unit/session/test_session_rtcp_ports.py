"""RTCP to the media port and the one above: reports, BYE, and when that ends."""

import pytest
from session_parts import OFFSET, RECEIVER, SSRC, drain_transmits, report

from streamd.cc.api import Limits
from streamd.cc.fixed import FixedConfig, FixedController
from streamd.datagram import Address, Datagram
from streamd.ecn import NOT_ECT
from streamd.media.model import EncodedFrame
from streamd.session.packetize import StreamIdentity
from streamd.session.rtcp_ports import Muxing, RtcpPorts
from streamd.session.sender import SenderSession
from streamd.session.sender_options import SenderOptions
from streamd.wire.ccfb import encode_ccfb
from streamd.wire.rtcp import Goodbye, ReceiverReport, decode_compound, encode_compound

ABOVE: Address = (RECEIVER[0], RECEIVER[1] + 1)
MEDIA = 98


class Sender:
    """A session at a fixed rate that nobody answers."""

    def __init__(self, mux: Muxing, *, drain: float = 0.0) -> None:
        self.now = 10.0
        self.session = SenderSession(
            SenderOptions(
                StreamIdentity(SSRC, MEDIA),
                Limits(150_000, 1_000_000, 50_000_000),
                RECEIVER,
                rtcp_mux=mux,
                breaker=False,
                drain_seconds=drain,
            ),
            FixedController(FixedConfig(), ecn=NOT_ECT),
            now=self.now,
            unix_offset=OFFSET,
        )

    def step(self) -> list[tuple[Address, bytes]]:
        """A frame and one second; the RTCP that left, by address."""
        self.session.handle_frame(EncodedFrame(b"x", True, self.now), now=self.now)
        sent = self._drain()
        self.now += 1.0
        self.session.handle_timeout(now=self.now)
        return sent

    def close(self) -> list[tuple[Address, bytes]]:
        self.session.close(now=self.now)
        return self._drain()

    def answer(self) -> None:
        data = encode_compound([ReceiverReport(1, [])])
        self.session.handle_datagrams([Datagram(data, RECEIVER, 0, self.now)], now=self.now)

    def _drain(self) -> list[tuple[Address, bytes]]:
        return [
            (item.address, item.segments[0])
            for item in drain_transmits(self.session, self.now)
            if item.segments[0][1] & 0x7F != MEDIA
        ]


def test_muxed_it_goes_to_the_media_port_alone() -> None:
    sender = Sender("yes")
    assert [address for address, _ in sender.step()] == [RECEIVER]
    assert {address for address, _ in sender.close()} == {RECEIVER}


@pytest.mark.parametrize("mux", ["auto", "no"])
def test_else_to_both_and_so_does_bye(mux: Muxing) -> None:
    sender = Sender(mux)
    for _ in range(2):
        first, second = sender.step()
        assert (first[0], second[0]) == (RECEIVER, ABOVE)
        assert first[1] == second[1]
    *_, first, second = sender.close()
    assert (first[0], second[0]) == (RECEIVER, ABOVE)
    assert isinstance(decode_compound(second[1])[-1], Goodbye)


def test_a_peer_that_multiplexes_needs_it_once() -> None:
    asked, told = Sender("auto"), Sender("no")
    for sender in (asked, told):
        sender.step()
        sender.answer()
    assert [address for address, _ in asked.step()] == [RECEIVER]
    assert [address for address, _ in told.step()] == [RECEIVER, ABOVE]


def test_above_the_last_port_there_is_none() -> None:
    ports = RtcpPorts("no")
    assert ports.send(b"x", ("192.0.2.2", 65_535)).address == ("192.0.2.2", 65_535)
    assert ports.poll() is None


def test_the_rest_of_an_ipv6_address_stays() -> None:
    ports = RtcpPorts("no")
    ports.send(b"x", ("fe80::1", 5004, 0, 2))
    again = ports.poll()
    assert again is not None
    assert again.address == ("fe80::1", 5005, 0, 2)
    assert ports.poll() is None


def test_a_fixed_rate_goes_on_when_nobody_answers() -> None:
    sender = Sender("no")
    for _ in range(30):
        sender.step()
    assert not sender.session.stats.keyframe_requests["unacked"]
    assert sender.session.stats.packets == 30
    assert sender.session.stats.discarded_packets == 0


def test_who_was_never_answered_does_not_wait_for_answers_at_the_end() -> None:
    sender = Sender("yes", drain=2.0)
    sender.step()
    assert isinstance(decode_compound(sender.close()[-1][1])[-1], Goodbye)
    answered = Sender("yes", drain=2.0)
    answered.step()
    data = encode_ccfb(report(0, [0], at=answered.now))
    answered.step()
    answered.session.handle_datagrams([Datagram(data, RECEIVER, 0, answered.now)], now=answered.now)
    assert not any(
        isinstance(item, Goodbye) for _, data in answered.close() for item in decode_compound(data)
    )


def test_what_nobody_answered_is_not_called_lost() -> None:
    sender = Sender("yes")
    for _ in range(20):
        sender.step()
    assert sender.session.network_loss(now=sender.now) == (0, 0)
    assert sender.session.residual_loss(now=sender.now) == (0, 0)
