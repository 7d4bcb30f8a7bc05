"""What may leave now: packets from the queue while pacing and window allow.

One call makes a run: packets of equal size, at most the last one shorter, with one
ECN codepoint, which the shell can hand to the kernel as one.
"""

from streamd.cc.api import Controller
from streamd.cc.pacer import Pacer
from streamd.session.history import SentHistory
from streamd.session.queue import MediaPacket, PacketQueue
from streamd.session.rtx import RtxStream
from streamd.session.stats import SenderStats

MAX_RUN = 48
"""Packets of one transmit: bounds the time until input is looked at again."""


class Outgoing:
    """Between queue and socket."""

    def __init__(
        self,
        queue: PacketQueue,
        history: SentHistory,
        controller: Controller,
        stats: SenderStats,
        *,
        quantum: float,
        repair_deadline: float,
        rtx: RtxStream | None,
    ) -> None:
        """`quantum`: packets due within this time leave together (s).

        `repair_deadline`: age of a frame (s) after which its packets are not repeated.
        `rtx`: where copies go, if not into the stream of the originals.
        """
        self._deadline = repair_deadline
        self._rtx = rtx
        self._queue = queue
        self._history = history
        self._controller = controller
        self._stats = stats
        self._pacer = Pacer(quantum=quantum)
        self._blocked = False

    def fill_run(self, now: float) -> list[bytes]:
        """Pop packets of equal size while pacing and window allow."""
        queue, pacer, controller = self._queue, self._pacer, self._controller
        segments: list[bytes] = []
        run_size = 0
        self._blocked = False
        while len(segments) < MAX_RUN and pacer.ready(now):
            ssrc = controller.select(now=now)
            if ssrc is None or not len(queue):
                self._blocked = ssrc is None
                break
            packet = queue.head()
            size = packet.size
            if packet.transmissions and (
                now - packet.frame_time > self._deadline or not self._history.awaits(packet)
            ):
                # Acknowledged, forgotten or out of date while its repair waited.
                queue.pop()
                continue
            if segments and size > run_size:
                break
            if self._rtx is not None and packet.transmissions and segments:
                break  # two bytes longer: a run of its own
            at = controller.may_send(ssrc, size, now=now)
            if at is None:
                self._blocked = True
                break
            if at > now and pacer.hold(at, now):
                break
            queue.pop()
            data = self._copy(packet) if packet.transmissions else packet.data
            self._history.on_sent(packet, now)
            pacer.on_sent(controller.on_packet_sent(packet, now=now), now)
            segments.append(data)
            if len(data) != size or size < run_size:
                break
            run_size = size
        if segments:
            stats = self._stats
            stats.packets += len(segments)
            stats.bytes += len(segments[0]) * (len(segments) - 1) + len(segments[-1])
        return segments

    def _copy(self, packet: MediaPacket) -> bytes:
        """What is sent the second time and later."""
        self._stats.retransmitted_packets += 1
        self._stats.retransmitted_bytes += packet.size
        return packet.data if self._rtx is None else self._rtx.wrap(packet)

    def unblock(self) -> None:
        """Something changed that the window may have waited for."""
        self._blocked = False

    def resume(self, now: float) -> None:
        """The queue was empty: pacing begins anew."""
        self._pacer.resume(now)

    def next_time(self) -> float | None:
        """When the head of the queue may leave (s); None: not before something changes."""
        return None if self._blocked or not len(self._queue) else self._pacer.next_time
