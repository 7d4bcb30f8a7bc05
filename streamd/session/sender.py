"""The sending side of one stream, without any I/O.

It owns the order of things between encoder and socket: numbering, queue,
pacing, the ledger, feedback, repair, key-frame requests, RTCP, and the end. The
controller decides how fast; the shell decides when to encode.

Grammar, as the shell drives it: `next_frame` then `handle_frame` per captured
frame; `handle_datagrams` for input; `handle_timeout` when `next_timeout` is
due; after each of these `poll_transmit` until None, `poll_event` until None,
then read `next_timeout`. `close` begins the drain; `SessionClosed` ends it.
"""

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from streamd.cc.api import Controller, ControllerStats
from streamd.datagram import Address, Datagram, Transmit
from streamd.ecn import NOT_ECT
from streamd.errors import ProtocolViolation, WireError
from streamd.media.model import EncodedFrame
from streamd.peer import PeerLatch, same_endpoint
from streamd.qoe.tool import ToolQueueDelay
from streamd.session.breaker import CircuitBreaker
from streamd.session.events import (
    Event,
    PeerChanged,
    PeerClosed,
    PeerHeard,
    PeerSilent,
    RateLimited,
    SessionClosed,
)
from streamd.session.feedback_input import FeedbackInput
from streamd.session.history import SentHistory
from streamd.session.keyframes import KeyframePolicy
from streamd.session.outgoing import Outgoing
from streamd.session.packetize import Packetizer
from streamd.session.queue import PacketQueue
from streamd.session.references import ReferenceTracker
from streamd.session.rtcp import SenderRtcp
from streamd.session.rtcp_ports import RtcpPorts
from streamd.session.rtx import RtxStream
from streamd.session.sender_options import SenderOptions
from streamd.session.stats import SenderStats, count_reason
from streamd.wire.bwtool import is_keepalive

HOUSEKEEPING = 0.05
"""Between looks at the slow things: RTCP, silence, circuit breaker, drain (s)."""
SILENCE = 1.0
"""Feedback is called missing when packets went unanswered for this long (s)."""
MAX_QUEUE_AGE = 10.0
"""Packets wait no longer, whatever the controller does (s): the queue is bounded."""


@dataclass(frozen=True, slots=True)
class FramePlan:
    """What the encoder shall make of the next picture."""

    target_bps: float
    keyframe: bool
    store: int | None = None
    """Long-term reference slot this frame shall replace."""
    refer: int | None = None
    """Slot it shall be predicted from alone, so that the picture is whole again."""


class SenderSession:
    """One SSRC to one peer."""

    def __init__(
        self, options: SenderOptions, controller: Controller, *, now: float, unix_offset: float
    ) -> None:
        """`unix_offset`: Unix time minus session time (s), for RTCP sender reports."""
        ssrc = options.identity.ssrc
        self._options = options
        self._ssrc = ssrc
        self._controller = controller
        self._queue = PacketQueue()
        self._packetizer = Packetizer(options.identity, unix_offset=unix_offset)
        rtx = None if options.rtx is None else RtxStream(options.rtx)
        self._history = SentHistory(ssrc, rtx=rtx)
        self._breaker = CircuitBreaker(minimum_bps=options.limits.min_bps, enabled=options.breaker)
        self._keyframes = KeyframePolicy(options.keyframes)
        self._peer = PeerLatch(options.peer)
        self._rtcp = SenderRtcp(
            ssrc,
            self._packetizer,
            cname=options.cname,
            bwtool=options.bwtool,
            minus_one=options.minus_one,
            unix_offset=unix_offset,
            now=now,
        )
        self._ports = RtcpPorts(options.rtcp_mux)
        self._events: deque[Event] = deque()
        self.stats = SenderStats(keyframe_requests=self._keyframes.taken)
        self.tool = ToolQueueDelay(tick=options.tool_tick, start=now)
        """The queue delay as the SCReAM BW tool reports it."""
        self._outgoing = Outgoing(
            self._queue,
            self._history,
            controller,
            self.stats,
            quantum=options.quantum,
            repair_deadline=options.repair_deadline,
            rtx=rtx,
        )
        self._input = FeedbackInput(
            self._history,
            self._queue,
            controller,
            self.stats,
            retransmissions=options.retransmissions,
            deadline=options.repair_deadline,
            tool=self.tool,
        )
        self._references = (
            ReferenceTracker(self._history, self._queue) if options.repair_frames else None
        )
        self._payload = options.max_payload
        self._ecn = NOT_ECT
        self._silent: bool | None = None
        """None: the peer has neither been heard nor missed yet."""
        self._housekeeping_at = now
        self._closing_at: float | None = None
        self._closed = False
        controller.add_stream(ssrc, queue=self._queue, limits=options.limits, now=now)

    # --- the application's side -------------------------------------------------------------

    def next_frame(self, *, now: float) -> FramePlan:
        """Ask once per frame, right before encoding: the controller's answers are one-shot."""
        decision = self._controller.decision(self._ssrc, now=now)
        self._payload = max(1, min(decision.mss_bytes, self._options.max_payload))
        self._ecn = decision.ecn
        target_bps = self._breaker.apply(decision.target_bps)
        keyframes = self._keyframes
        keyframes.on_decision(decision.keyframe_wanted, decision.loss_epoch, now)
        oldest = self._history.oldest()
        if oldest is not None and self._expects_feedback():
            keyframes.on_outstanding(oldest.seq, oldest.sent_at, now)
        references = self._references
        if references is not None and references.look():
            keyframes.on_given_up(now)
        answered = keyframes.take(now, target_bps)
        if "unacked" in answered:
            self._start_afresh(now)
        if references is None:
            return FramePlan(target_bps, bool(answered))
        refer = references.to_refer() if keyframes.repairable(answered, now) else None
        return FramePlan(
            target_bps,
            bool(answered) and refer is None,
            references.to_store() if refer is None else None,
            refer,
        )

    def handle_frame(self, frame: EncodedFrame | None, *, now: float) -> None:
        """Queue a frame; None: the encoder dropped it. Ignored once the session is closing.

        Without a peer a frame is counted and thrown away; the first one for a new
        peer is to be a key frame.
        """
        if self._closing_at is not None:
            return
        if self.stats.started_at is None:
            self.stats.started_at = now
            self._rtcp.poll_soon()
        if frame is None:
            self.stats.frames_dropped_by_encoder += 1
            return
        if self._peer.address is None:
            self.stats.frames_without_peer += 1
            return
        self._count_frame(frame, now)
        self._make_room(now)
        on_media, push, ssrc = self._controller.on_media_packet, self._queue.push, self._ssrc
        packetizer, references = self._packetizer, self._references
        first, number = packetizer.next_seq, packetizer.next_frame
        refers = None
        if references is not None and frame.refer is not None:
            refers = references.frame_no(frame.refer)
        for packet in packetizer.packetize(frame, payload=self._payload, now=now, refers=refers):
            push(packet)
            on_media(ssrc, packet.size, packet.marker, now=now)
        if references is not None:
            references.on_frame(frame, number, first, packetizer.next_seq - 1)

    def set_peer(self, address: Address, *, keep_open: bool = False) -> None:
        """Media go there now: the name of a silent peer resolves to it.

        `keep_open`: only a guess, whoever speaks next takes the place at once.
        """
        before = self._peer.address
        self._peer.set(address)
        if before is None or not same_endpoint(before, address):
            if keep_open:
                self._peer.release()
            self._begin_anew()

    def close(self, *, now: float) -> None:
        """No more frames: send what is queued, wait for what is outstanding, say BYE."""
        if self._closing_at is None:
            self._closing_at = now + self._options.drain_seconds
            self.stats.ended_at = now

    @property
    def next_seq(self) -> int:
        """Unwrapped sequence number of the next packet."""
        return self._packetizer.next_seq

    @property
    def next_frame_no(self) -> int:
        """Unwrapped id of the next frame."""
        return self._packetizer.next_frame

    @property
    def peer(self) -> Address | None:
        return self._peer.address

    def behind(self, now: float) -> bool:
        """Whether what waits is so old that the next picture is better not encoded at all."""
        limit, waiting = self._options.max_queue_age, self._queue.head_time()
        if limit is None or waiting is None or now - waiting <= limit:
            return False
        sent = self._history.oldest()
        if sent is None or not self._expects_feedback():
            return True
        # A picture that starts afresh throws the queue away: it is the way out.
        return not self._keyframes.nothing_arrives(sent.seq, sent.sent_at, now)

    def limited(self, rate_bps: float) -> float:
        """A media rate after the circuit breaker."""
        return self._breaker.apply(rate_bps)

    def controller_stats(self) -> ControllerStats:
        return self._controller.stats(self._ssrc)

    def network_loss(self, *, now: float) -> tuple[int, int]:
        """First transmissions lost and sent (metrics 1.4), without the still undecided ones.

        Nothing of either where nobody need tell.
        """
        if not self._expects_feedback():
            return 0, 0
        return self._history.network_loss(now, max(1.0, 4 * self._input.srtt))

    def residual_loss(self, *, now: float) -> tuple[int, int]:
        """Packets lost with all their copies, and packets sent (metrics 1.4)."""
        if not self._expects_feedback():
            return 0, 0
        return self._history.residual_loss(now, max(1.0, 4 * self._input.srtt))

    @property
    def limit_bps(self) -> float | None:
        """The circuit breaker's present bound."""
        return self._breaker.limit_bps

    # --- the network's side -----------------------------------------------------------------

    def handle_datagrams(self, batch: Iterable[Datagram], *, now: float) -> None:
        """Feedback from the peer. What is not, is counted by reason and never answered."""
        if self._closed:
            return
        for datagram in batch:
            for data in datagram.segments():
                try:
                    self._handle(data, datagram, now)
                except (WireError, ProtocolViolation) as error:
                    count_reason(self.stats.invalid, error.reason)

    def poll_transmit(self, *, now: float) -> Transmit | None:
        """The next run of packets that may leave now; None: nothing, for the time being."""
        again = self._ports.poll()
        if again is not None or self._closed:
            return again
        peer = self._peer.address
        if peer is None:
            if self._closing_at is not None:
                self._end()
            return None
        control = self._rtcp.poll(self.stats, now)
        if control is not None:
            return self._ports.send(control, peer)
        segments = self._outgoing.fill_run(now) if len(self._queue) else None
        if segments:
            self._breaker.on_sent(now)
            return Transmit(segments, peer, self._ecn)
        if self._closing_at is not None:
            return self._finish(peer, now)
        return None

    def poll_event(self) -> Event | None:
        return self._events.popleft() if self._events else None

    def handle_timeout(self, *, now: float) -> None:
        """Whatever was due by `now`."""
        due = self._controller.next_timeout()
        if due is not None and due <= now:
            self._controller.on_timeout(now=now)
        if now >= self._housekeeping_at:
            self._housekeep(now)

    def next_timeout(self) -> float | None:
        """When to call `handle_timeout` at the latest (s); None once closed."""
        if self._closed:
            return None
        due = self._housekeeping_at
        sending = self._outgoing.next_time()
        if sending is not None and sending < due:
            due = sending
        controller_due = self._controller.next_timeout()
        return due if controller_due is None or controller_due > due else controller_due

    # --- inside -----------------------------------------------------------------------------

    def _expects_feedback(self) -> bool:
        """At a fixed rate nobody need answer, and what nobody answers is not lost."""
        return self._options.breaker or self.stats.feedback_reports > 0

    def _count_frame(self, frame: EncodedFrame, now: float) -> None:
        stats = self.stats
        stats.frame_bytes += len(frame.data)
        if frame.keyframe:
            stats.frames_key += 1
            self._keyframes.on_keyframe(len(frame.data), now)
            return
        stats.frames_delta += 1
        if frame.refer is not None:
            stats.frames_repair += 1
            self._keyframes.on_repair(len(frame.data), now)

    def _make_room(self, now: float) -> None:
        """Before a frame is queued: a fresh schedule, or an end to a queue nobody serves."""
        oldest = self._queue.head_time()
        if oldest is None:
            self._outgoing.resume(now)
        elif now - oldest > MAX_QUEUE_AGE:
            self._queue.clear()
            self._keyframes.on_decision(True, False, now)

    def _handle(self, data: bytes, datagram: Datagram, now: float) -> None:
        address = datagram.address
        if self._options.bwtool and is_keepalive(len(data)):
            self._heard(address, now)
            return
        contents = self._rtcp.parse(data)
        self._heard(address, now)
        self._ports.on_muxed()
        if contents.keyframe_requested:
            self._keyframes.on_receiver_request(now)
        if contents.question is not None:
            self._rtcp.on_question(contents.question, datagram.received_at)
        for feedback in contents.feedback:
            if self._input.on_feedback(feedback, len(data), now=now):
                self._answered()
            if self._input.take_hopeless():
                self._keyframes.on_given_up(now)

        if contents.bye:
            # Whoever comes next need not wait until this one is believed to be gone.
            self._peer.release()
            self._events.append(PeerClosed())

    def _heard(self, address: Address, now: float) -> None:
        """Raises ProtocolViolation on a stranger."""
        if self._options.bwtool and self._peer.address is not None:
            # The tool's receiver reports from a socket of its own: where a report comes from
            # says nothing of where media have to go.
            return
        before = self._peer.address
        if not self._peer.accept(address, now=now):
            raise ProtocolViolation("foreign_source", f"from {address}")
        if self._peer.address != before:
            self._begin_anew()
            self._controller.forget_unacked(self._ssrc, now=now)
            self._events.append(PeerChanged(address))

    def _begin_anew(self) -> None:
        """Another receiver: it has no picture, no wall time, and nothing to acknowledge."""
        self._history.forget()
        if self._references is not None:
            self._references.forget()
        self._keyframes.on_receiver_request(-math.inf)
        self._rtcp.poll_soon()

    def _start_afresh(self, now: float) -> None:
        """Nothing gets through: what was sent and what waits is given up for a key frame."""
        self._history.give_up_all()
        self._queue.clear()
        self._controller.forget_unacked(self._ssrc, now=now)
        self._outgoing.unblock()

    def _answered(self) -> None:
        """Packets were acknowledged: the path works."""
        self._keyframes.on_report()
        self._outgoing.unblock()
        if self._silent is not False:
            self._silent = False
            self._events.append(PeerHeard())
        if self._breaker.on_report():
            self._events.append(RateLimited(None))

    def _housekeep(self, now: float) -> None:
        """What may be late by a few hundredths of a second."""
        self._housekeeping_at = now + HOUSEKEEPING
        self._history.expire(now)
        stats = self.stats
        stats.discarded_packets = self._queue.discarded_packets
        stats.discarded_frames = self._queue.discarded_frames
        breaker = self._breaker
        if breaker.due(now) and breaker.on_timeout(self.controller_stats().target_bps, now):
            stats.breaker_trips = self._breaker.trips
            self._events.append(RateLimited(self._breaker.limit_bps))
        self._watch_silence(now)
        if self._closing_at is not None and self._silent is False:
            # Only to a peer that answers: at one that is not there it would be a burst of copies.
            self._input.repair_tail(now)

    def _watch_silence(self, now: float) -> None:
        silence = self._breaker.silence(now)
        if silence > SILENCE and not self._silent:
            self._silent = True
            self._events.append(PeerSilent(silence))

    def _finish(self, peer: Address, now: float) -> Transmit | None:
        """BYE once everything arrived or the drain time is over."""
        outstanding = self._expects_feedback() and len(self._history)
        if (len(self._queue) or outstanding) and now < (self._closing_at or 0.0):
            return None
        self._end()
        bye = self._rtcp.bye(self.stats, now)
        return None if bye is None else self._ports.send(bye, peer)

    def _end(self) -> None:
        self._closed = True
        self.stats.discarded_packets = self._queue.discarded_packets
        self.stats.discarded_frames = self._queue.discarded_frames
        self._events.append(SessionClosed())
