"""Packets of one stream between the encoder and the socket."""

from collections import deque

from streamd.cc.api import SentPacket


class MediaPacket(SentPacket):
    """A packet from its making to its acknowledgement, with the bytes to send (again)."""

    __slots__ = ("data", "frame_time", "queued", "queued_at", "repaired_at")

    def __init__(
        self,
        ssrc: int,
        seq: int,
        rtp_time: int,
        marker: bool,
        data: bytes,
        frame_time: float,
    ) -> None:
        """`frame_time`: when its frame came from the encoder (s)."""
        # Written out instead of calling the base: this runs once per packet.
        self.ssrc = ssrc
        self.seq = seq
        self.size = len(data)
        self.rtp_time = rtp_time
        self.marker = marker
        self.sent_at = 0.0
        self.first_sent_at = 0.0
        self.transmissions = 0
        self.acked = False
        self.lost = False
        self.arrived_at = 0.0
        self.ecn = 0
        self.data = data
        self.frame_time = frame_time
        self.queued_at = frame_time
        """Since when it has been waiting in the queue (s)."""
        self.queued = True
        """It stands in the queue; guards against queueing a retransmission twice."""
        self.repaired_at = 0.0
        """When it was sent for the second time (s)."""


class PacketQueue:
    """First in, first out, but for retransmissions, which go to the front.

    Implements `streamd.cc.api.MediaQueue`.
    """

    __slots__ = (
        "_hole",
        "_packets",
        "bytes_queued",
        "discarded_bytes",
        "discarded_frames",
        "discarded_packets",
    )

    def __init__(self) -> None:
        self._packets: deque[MediaPacket] = deque()
        self.bytes_queued = 0
        self.discarded_packets = 0
        self.discarded_bytes = 0
        self.discarded_frames = 0
        """Frames of which something was thrown away before it was ever sent."""
        self._hole: int | None = None

    def __len__(self) -> int:
        return len(self._packets)

    def head_size(self) -> int:
        packets = self._packets
        return packets[0].size if packets else 0

    def head_time(self) -> float | None:
        packets = self._packets
        return packets[0].queued_at if packets else None

    def push(self, packet: MediaPacket) -> None:
        self._packets.append(packet)
        self.bytes_queued += packet.size

    def push_front(self, packet: MediaPacket, now: float) -> None:
        """Queue a retransmission. Its age counts from now: the wait of the first copy is over."""
        packet.queued_at = now
        packet.queued = True
        self._packets.appendleft(packet)
        self.bytes_queued += packet.size

    def head(self) -> MediaPacket:
        """The packet to leave next; IndexError when empty."""
        return self._packets[0]

    def pop(self) -> MediaPacket:
        """The packet to send; IndexError when empty."""
        packet = self._packets.popleft()
        packet.queued = False
        self.bytes_queued -= packet.size
        return packet

    def clear(self) -> int:
        """Discard everything, as the controller may order (its queue-delay limit)."""
        count = len(self._packets)
        for packet in self._packets:
            packet.queued = False
            if not packet.transmissions and self._hole is None:
                self._hole = packet.seq
        unsent = {packet.rtp_time for packet in self._packets if not packet.transmissions}
        self.discarded_frames += len(unsent)
        self.discarded_packets += count
        self.discarded_bytes += self.bytes_queued
        self._packets.clear()
        self.bytes_queued = 0
        return count

    def take_hole(self) -> int | None:
        """The lowest number discarded before it was ever sent, since the last call."""
        hole, self._hole = self._hole, None
        return hole
