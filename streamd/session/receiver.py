"""The receiving side, without any I/O: feedback out, frames in decoding order out.

Grammar, as the shell drives it: `handle_datagrams` for input, `handle_timeout`
when `next_timeout` is due, `handle_decoded` for each frame taken from
`poll_event`; after each of these `poll_transmit` until None, `poll_event` until
None, then read `next_timeout`. `close` says BYE and ends it.

Whom it listens to: the source of the media, latched; another source may take
over only when the present one has been silent for a second, or has said BYE.
What starts a stream is told by `admission`.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from streamd.datagram import Address, Datagram, Transmit
from streamd.ecn import NOT_ECT
from streamd.errors import ProtocolViolation, WireError
from streamd.peer import PeerLatch, same_endpoint
from streamd.session.admission import StreamAdmission
from streamd.session.events import (
    Event,
    PeerChanged,
    PeerClosed,
    PeerHeard,
    PeerSilent,
    SessionClosed,
    StreamStarted,
)
from streamd.session.feedback import BW_TOOL_PROFILE, DEFAULT_PROFILE, FeedbackGenerator
from streamd.session.packetize import PAYLOAD_TYPES
from streamd.session.playout import Playout
from streamd.session.receiver_rtcp import ReceiverRtcp
from streamd.session.rtx import PAYLOAD_TYPE_STEP
from streamd.session.runs import match_run
from streamd.session.stats import ReceiverStats, count_reason
from streamd.session.stream import IncomingStream
from streamd.wire.bwtool import KEEPALIVE, KEEPALIVE_INTERVAL, MEDIA_SSRC, TEXT_SECOND_BYTE
from streamd.wire.payload.formats import FORMATS
from streamd.wire.rtp import RtpFields, parse_rtp_fast

HOUSEKEEPING = 0.05
SILENCE = 1.0
"""Media is called missing after this (s)."""
STREAM_TIMEOUT = 2.0
"""With the BW tool a stream is over after this silence (s)."""
RENUMBER_AFTER = 60.0
"""After this silence numbers may have gone round unseen: it is a new stream (s)."""


@dataclass(frozen=True, slots=True)
class ReceiverOptions:
    """Everything the session must be told; the daemon fills it from the configuration."""

    ssrc: int
    """Our own SSRC in RTCP."""
    formats: Mapping[int, str] = field(
        default_factory=lambda: dict.fromkeys(PAYLOAD_TYPES.values(), "raw")
    )
    """Payload type to the name of its format; other types are refused."""
    peer: Address | None = None
    """Where to announce ourselves before any media came; None: wait to be sent to."""
    cname: str = "streamd"
    bwtool: bool = False
    minus_one: bool = False
    """Write `num_reports` as the number of blocks minus 1, as the BW tool reads it."""
    request_keyframes: bool = True
    freeze_rule: Literal["webrtc", "formula"] = "webrtc"


class ReceiverSession:
    """Takes one stream at a time; its predecessor's counters go on."""

    def __init__(
        self,
        options: ReceiverOptions,
        *,
        now: float,
        unix_offset: float,
    ) -> None:
        """`unix_offset`: Unix time minus session time (s)."""
        self._options = options
        self._bwtool = options.bwtool
        self._profile = BW_TOOL_PROFILE if options.bwtool else DEFAULT_PROFILE
        self._feedback = FeedbackGenerator(self._profile)
        self._peer = PeerLatch(options.peer)
        self._rtcp = ReceiverRtcp(
            options.ssrc,
            cname=options.cname,
            bwtool=options.bwtool,
            minus_one=options.minus_one,
            unix_offset=unix_offset,
            now=now,
        )
        self._stream: IncomingStream | None = None
        self._payload_type = 0
        self._rtx_type: int | None = None
        """Payload type of copies in a stream of their own."""
        self._last_arrival = 0.0
        self._heard_last: Datagram | None = None
        self._admission = StreamAdmission()
        self._out: deque[bytes] = deque()
        self._events: deque[Event] = deque()
        self._silent = True
        self._housekeeping_at = now
        self._last_feedback = now - KEEPALIVE_INTERVAL
        self._closed = False
        self.stats = ReceiverStats()
        self._playout = Playout(
            self.stats,
            self._rtcp.clock,
            freeze_rule=options.freeze_rule,
            unix_offset=unix_offset,
        )
        self.freezes = self._playout.freezes

    # --- the network's side -----------------------------------------------------------------

    def handle_datagrams(self, batch: Iterable[Datagram], *, now: float) -> None:
        """Media and RTCP of the sender. What is not, is counted by reason and never answered."""
        if self._closed:
            return
        for datagram in batch:
            data, size = datagram.data, datagram.segment_size
            end = len(data)
            if end <= size:
                self._handle(data, 0, end, datagram, now)
                continue
            if self._handle_run(datagram, now):
                continue
            for start in range(0, end, size):
                self._handle(data, start, min(start + size, end), datagram, now)

    def poll_transmit(self, *, now: float) -> Transmit | None:
        """Feedback, reports and requests to the source of the media."""
        peer = self._peer.address
        if peer is None:
            self._out.clear()
            return None
        if self._out:
            return Transmit([self._out.popleft()], peer, NOT_ECT)
        return None

    def poll_event(self) -> Event | None:
        return self._events.popleft() if self._events else None

    def handle_timeout(self, *, now: float) -> None:
        """Whatever was due by `now`."""
        due = self._feedback.next_timeout()
        if due is not None and due <= now:
            self._report(now)
        if now >= self._housekeeping_at:
            self._housekeep(now)

    def next_timeout(self) -> float | None:
        """When to call `handle_timeout` at the latest (s); None once closed."""
        if self._closed:
            return None
        due = self._feedback.next_timeout()
        return self._housekeeping_at if due is None else min(due, self._housekeeping_at)

    # --- the application's side -------------------------------------------------------------

    def handle_decoded(self, frame_no: int, pictures: int, *, now: float) -> None:
        """The decoder is done with a frame; no picture means it refused it (or shows nothing)."""
        intact = self._playout.decoded(frame_no, pictures, now=now)
        if not intact and self._stream is not None:
            self._stream.assembler.break_chain()

    def set_peer(self, address: Address, *, keep_open: bool = False) -> None:
        """We announce ourselves there now: the name of a silent peer resolves to it.

        `keep_open`: only a guess, whoever speaks next takes the place at once.
        """
        before = self._peer.address
        self._peer.set(address)
        if keep_open and before is not None and not same_endpoint(before, address):
            self._peer.release()

    def close(self, *, now: float) -> None:
        """Say BYE; the frames still in the making are counted as lost."""
        if self._closed:
            return
        self._closed = True
        if self._stream is not None:
            self._retire(self._stream)
        self._playout.latency.settle(now, final=True)
        bye = self._rtcp.bye(self._stream, now)
        if bye is not None:
            self._out.append(bye)
        self._events.append(SessionClosed())

    @property
    def bytes_held(self) -> int:
        """Payload of frames in the making."""
        return 0 if self._stream is None else self._stream.bytes_held

    @property
    def peer(self) -> Address | None:
        return self._peer.address

    # --- inside -----------------------------------------------------------------------------

    def _handle(self, data: bytes, start: int, end: int, datagram: Datagram, now: float) -> None:
        """One datagram of a run. The usual case, a packet of our stream, comes first."""
        try:
            second = data[start + 1] if end - start > 1 else 0
            if 192 <= second <= 223:
                self._handle_rtcp(data[start:end], datagram, now)
                return
            if second == TEXT_SECOND_BYTE and self._bwtool:
                count_reason(self.stats.invalid, "text_line")
                return
            fields = parse_rtp_fast(data, start, end)
            if self._bwtool:
                # The tool files everything under one SSRC, whatever a packet says.
                fields = (*fields[:4], MEDIA_SSRC, *fields[5:])
            stream = self._stream
            if (
                stream is not None
                and fields[4] == stream.ssrc
                and stream.belongs(fields[2], fields[3])
                and datagram.received_at - self._last_arrival < RENUMBER_AFTER
            ):
                self._handle_media(stream, fields, data, end - start, datagram, now)
            elif stream is not None and fields[1] == self._rtx_type:
                self._handle_copy(stream, fields, data[start:end], datagram, now)
            else:
                self._consider(fields, data[start:end], datagram, now)
        except (WireError, ProtocolViolation) as error:
            count_reason(self.stats.invalid, error.reason)

    def _handle_run(self, datagram: Datagram, now: float) -> bool:
        """The usual read at high rates, new packets of one frame; False: it is not that."""
        stream, at = self._stream, datagram.received_at
        run = match_run(datagram.data, datagram.segment_size)
        if (
            run is None
            or stream is None
            or self._bwtool
            or run.ssrc != stream.ssrc
            or at - self._last_arrival >= RENUMBER_AFTER
            or not self._peer.admits(datagram.address, now=now)
            or not stream.take_run(run, at)
        ):
            return False
        self._heard(datagram.address, now)
        count = len(run.payloads)
        ecn = self._count_packets(count, len(datagram.data), datagram)
        if self._feedback.on_run(run.ssrc, run.seq, count, run.marker, ecn, now=at):
            self._report(max(now, at))
        try:
            frame = stream.assembler.add_run(run, at)
        except WireError as error:
            count_reason(self.stats.invalid, error.reason, count)
            return True
        if frame is not None:
            self._playout.completed(frame, at)
            self._release(stream, at)
        return True

    def _count_packets(self, count: int, size: int, datagram: Datagram) -> int:
        """Statistics of packets of our stream; the codepoint to report."""
        stats = self.stats
        stats.packets += count
        stats.bytes += size
        at = datagram.received_at
        silence = at - self._last_arrival
        if silence > self._playout.silence:
            self._playout.silence = silence
        stats.last_arrival = self._last_arrival = at
        ecn = datagram.ecn
        if ecn is None:
            stats.ecn_unknown += count
            return NOT_ECT
        stats.ecn[ecn] += count
        return ecn

    def _handle_media(
        self,
        stream: IncomingStream,
        fields: RtpFields,
        data: bytes,
        size: int,
        datagram: Datagram,
        now: float,
    ) -> None:
        if datagram is not self._heard_last:
            self._heard(datagram.address, now)
            self._heard_last = datagram
        at = datagram.received_at
        ecn = self._count_packets(1, size, datagram)
        if self._feedback.on_packet(fields[4], fields[2], fields[0], ecn, now=at):
            self._report(max(now, at))
        frame = stream.on_packet(fields, data, at)
        if frame is not None:
            self._playout.completed(frame, at)
            self._release(stream, at)

    def _handle_copy(
        self,
        stream: IncomingStream,
        fields: RtpFields,
        data: bytes,
        datagram: Datagram,
        now: float,
    ) -> None:
        """A retransmission in a stream of its own, which is that of the first that fits."""
        if not self._peer.admits(datagram.address, now=now):
            raise ProtocolViolation("foreign_source", f"from {datagram.address}")
        original = stream.original(data, self._payload_type)
        self._heard(datagram.address, now)
        at = datagram.received_at
        ecn = self._count_packets(1, len(data), datagram)
        self.stats.copies += 1
        if self._feedback.on_packet(fields[4], fields[2], fields[0], ecn, now=at):
            self._report(max(now, at))
        frame = stream.on_packet(parse_rtp_fast(original, 0, len(original)), original, at)
        if frame is not None:
            self._playout.completed(frame, at)
            self._release(stream, at)

    def _consider(self, fields: RtpFields, data: bytes, datagram: Datagram, now: float) -> None:
        """A packet of a stream that is not ours (yet): two in sequence start one."""
        if fields[1] not in self._options.formats:
            raise ProtocolViolation("payload_type", str(fields[1]))
        if not self._peer.admits(datagram.address, now=now):
            raise ProtocolViolation("foreign_source", f"from {datagram.address}")
        flowing = self._stream is not None and self.stats.ended_at is None
        pair = self._admission.offer(
            fields, data, datagram, self._last_arrival if flowing else None
        )
        if pair is None:
            return
        self._begin(fields[4], fields[1], (fields[2] - 1) & 0xFFFF, pair[0].received_at)
        for packet in pair:
            self._handle(packet.data, 0, len(packet.data), packet, now)

    def _begin(self, ssrc: int, payload_type: int, first_seq: int, now: float) -> None:
        if self._stream is not None:
            self._retire(self._stream)
        self._playout.begin(first=not self.stats.streams)
        self._feedback = FeedbackGenerator(self._profile)
        self._stream = IncomingStream(
            ssrc, first_seq, self.stats, FORMATS[self._options.formats[payload_type]]
        )
        self._rtcp.begin(self._stream)
        self._payload_type = payload_type
        self._rtx_type = None if self._bwtool else payload_type + PAYLOAD_TYPE_STEP
        self.stats.streams += 1
        self.stats.ended_at = None
        # The old stream's last packet says nothing about this one.
        self._last_arrival = now
        if self.stats.first_arrival is None:
            self.stats.first_arrival = now
        self._events.append(StreamStarted(ssrc, payload_type))

    def _retire(self, stream: IncomingStream) -> None:
        stream.assembler.close()
        self._fold(stream)

    def _fold(self, stream: IncomingStream) -> None:
        """Move the assembler's counts to the session's."""
        stats, assembler = self.stats, stream.assembler
        stats.frames_seen += assembler.take_seen()
        stats.frames_lost += assembler.lost
        stats.frames_skipped += assembler.skipped
        stats.frames_mended += assembler.repaired
        stats.late_fragments += assembler.late_fragments
        assembler.lost = assembler.skipped = assembler.late_fragments = assembler.repaired = 0
        stats.jitter = stream.jitter

    def _heard(self, address: Address, now: float) -> None:
        before = self._peer.address
        if not self._peer.accept(address, now=now):
            raise ProtocolViolation("foreign_source", f"from {address}")
        if before != self._peer.address:
            self._events.append(PeerChanged(address))
        if self._silent:
            self._silent = False
            self._events.append(PeerHeard())

    def _handle_rtcp(self, data: bytes, datagram: Datagram, now: float) -> None:
        packets = self._rtcp.parse(data)
        if not self._peer.admits(datagram.address, now=now):
            raise ProtocolViolation("foreign_source", f"RTCP from {datagram.address}")
        flowing = self.stats.ended_at is None
        at = datagram.received_at
        if self._rtcp.read(packets, self._stream, flowing=flowing, now=at):
            self._on_goodbye(now)

    def _on_goodbye(self, now: float) -> None:
        """The stream is over: whoever comes next need not wait until it is believed to be."""
        self.stats.ended_at = now
        self._silent = True
        self._peer.release()
        self._events.append(PeerClosed())

    def _release(self, stream: IncomingStream, now: float) -> None:
        """Hand out what can be decoded."""
        self._events.extend(self._playout.release(stream, now))

    def _report(self, now: float) -> None:
        while lists := self._feedback.poll_report(now=now):
            data = self._rtcp.feedback(lists, now)
            self._last_feedback = now
            self.stats.feedback_reports += 1
            self.stats.feedback_bytes += len(data)
            self._out.append(data)

    def _housekeep(self, now: float) -> None:
        """What may be late by a few hundredths of a second."""
        self._housekeeping_at = now + HOUSEKEEPING
        stream = self._stream
        last = self.stats.last_arrival
        if stream is not None:
            self._release(stream, now)
            self._fold(stream)
            if last is not None and now - last > STREAM_TIMEOUT and self._options.bwtool:
                self._retire(stream)
                self._stream = None
            else:
                self._request_keyframe(stream, now)
        if not self._silent and last is not None and now - last > SILENCE:
            self._silent = True
            self._events.append(PeerSilent(now - last))
        report = self._rtcp.poll(stream, now)
        if report is not None:
            self._out.append(report)
        if self._options.bwtool and now - self._last_feedback >= KEEPALIVE_INTERVAL:
            self._last_feedback = now
            self._out.append(KEEPALIVE)

    def _request_keyframe(self, stream: IncomingStream, now: float) -> None:
        if self._bwtool or not self._options.request_keyframes or self._silent:
            return
        if self._playout.stall.request_due(stream.assembler, now):
            self.stats.keyframe_requests += 1
            self._out.append(self._rtcp.keyframe_request(stream.ssrc))
