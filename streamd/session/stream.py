"""One incoming stream (SSRC): numbers, duplicates, jitter, frames, capture times."""

from streamd.errors import ProtocolViolation, WireError
from streamd.session.frames import Frame, FrameAssembler
from streamd.session.grouping import FrameGrouper
from streamd.session.runs import Run
from streamd.session.stats import ReceiverStats, count_reason
from streamd.wire.abs_capture_time import parse_capture_time
from streamd.wire.ntp import ntp_to_short, ntp_to_unix
from streamd.wire.payload import PayloadFormat
from streamd.wire.payload.formats import RAW
from streamd.wire.rtcp import ReportBlock, SenderReport
from streamd.wire.rtp import parse_rtp_fast
from streamd.wire.rtx import original_seq, unwrap
from streamd.wire.seq import serial_diff
from streamd.wire.video_ext import FLAG_KEYFRAME, parse_reference, parse_video_ext
from streamd.wire.video_ext import SIZE as VIDEO_SIZE

RTP_CLOCK = 90_000.0
SEEN = 4096
"""Sequence numbers remembered to tell duplicates: as many as a sender keeps in flight."""
MAX_DROPOUT = 3000
"""A number further ahead is believed when the next one follows it (RFC 3550 appendix A.1): one
damaged packet must not make all others look old."""
MAX_FORWARD = 0x7000
_STEADY = 15 / 16
MAX_BACKWARD = SEEN - 1
"""A number outside [-MAX_BACKWARD, MAX_FORWARD) of the highest is another numbering: a restart."""
MAX_LATE = 5.0
"""So is an old number with a timestamp this much older than the newest (s): no repair takes
so long, but a restarted sender may count from where the old one began."""
CAPTURE_VALID = 10.0
"""How far from a capture time told others are reckoned from it (s)."""
_UNSEEN = -(1 << 40)


class IncomingStream:
    """State of one SSRC; a restarted sender gets a new one."""

    def __init__(
        self, ssrc: int, first_seq: int, stats: ReceiverStats, form: PayloadFormat = RAW
    ) -> None:
        """`form`: how its payloads make frames."""
        self.form = form
        """What makes a bitstream of the fragments of the assembler's frames."""
        self._grouper: FrameGrouper | None = None
        """Of a sender that does not know our extension: its first packet decides."""
        self._numbered = False
        """Packets carry the extension."""
        self.ssrc = ssrc
        self._stats = stats
        self._highest = first_seq - 1
        self._first_seq = first_seq
        self._jumped: int | None = None
        """The number that would confirm a large step."""
        self._newest_timestamp = 0
        self._seen = [_UNSEEN] * SEEN
        self._received = 0
        self._transit: float | None = None
        self._jitter = 0.0
        self._expected_before = 0
        self._received_before = 0
        self._report: SenderReport | None = None
        self._report_at = 0.0
        self._capture: tuple[int, float] | None = None
        """The last capture time told: RTP timestamp, and Unix time of the sender (s)."""
        self.assembler = FrameAssembler()
        self._marker_seq: int | None = None
        self.rtx_ssrc: int | None = None
        """Where copies come from, once one came in a stream of its own."""

    def belongs(self, seq: int, timestamp: int) -> bool:
        """Whether a packet continues this stream's numbering."""
        step = (seq - self._highest) & 0xFFFF
        if 0 < step < MAX_FORWARD:
            if step < MAX_DROPOUT:
                return True
            expected, self._jumped = self._jumped, seq + 1 & 0xFFFF
            return expected == seq
        age = (self._newest_timestamp - timestamp) & 0xFFFFFFFF
        recent = age < MAX_LATE * RTP_CLOCK or age >= 0x80000000
        return recent and (step == 0 or step >= 0x10000 - MAX_BACKWARD)

    def on_packet(
        self,
        fields: tuple[bool, int, int, int, int, int, int, int],
        data: bytes,
        arrived_at: float,
    ) -> Frame | None:
        """Take one packet in `parse_rtp_fast` form; returns a frame it completed.

        Raises WireError when the video extension is bad; the packet was received
        all the same, and is reported as such.
        """
        marker, _, seq16, timestamp, _, ext, start, end = fields
        highest = self._highest
        seq = highest + ((seq16 - highest + 0x8000) & 0xFFFF) - 0x8000
        stats = self._stats
        slot = seq & (SEEN - 1)
        if self._seen[slot] == seq:
            stats.duplicates += 1
            return None
        self._seen[slot] = seq
        self._received += 1
        if seq > highest:
            self._highest = seq
            self._newest_timestamp = timestamp
        else:
            stats.reordered += 1
        self._note_transit(arrived_at, timestamp)
        stats.payload_bytes += end - start
        video = parse_video_ext(data, ext, start)
        if video is None or self._grouper is not None:
            return self._unnumbered(marker, seq, timestamp, data[start:end], arrived_at)
        self._numbered = True
        keyframe = video[0] >= FLAG_KEYFRAME
        refers = None
        if start - ext > VIDEO_SIZE:
            refers = parse_reference(data, ext, start)
            capture = parse_capture_time(data, ext, start)
            if capture is not None:
                self._capture = timestamp, capture.sender_unix()
        return self.assembler.add(
            video,
            keyframe,
            timestamp,
            data[start:end],
            arrived_at,
            refers=refers,
            mends=seq <= highest,
        )

    def original(self, data: bytes, payload_type: int) -> bytes:
        """The packet that `data` is a copy of, sent in a stream of its own (RFC 4588).

        The first one that fits decides whose copies are taken. Raises WireError, and
        ProtocolViolation on one that is not ours.
        """
        fields = parse_rtp_fast(data, 0, len(data))
        seq = original_seq(data, fields)
        if not self.belongs(seq, fields[3]):
            raise ProtocolViolation("rtx_number", f"a copy of {seq}")
        if self.rtx_ssrc is None:
            self.rtx_ssrc = fields[4]
        elif self.rtx_ssrc != fields[4]:
            raise ProtocolViolation("second_stream", f"copies of SSRC {fields[4]:#x}")
        return unwrap(data, fields, ssrc=self.ssrc, payload_type=payload_type)

    def take_run(self, run: Run, arrived_at: float) -> bool:
        """Count packets that arrived together, as `on_packet` does, if all of them are new.

        False leaves everything as it was. What they carry is for `assembler.add_run`.
        """
        if self._grouper is not None:
            return False
        count = len(run.payloads)
        step = (run.seq - self._highest) & 0xFFFF
        first = self._highest + step
        slot = first & (SEEN - 1)
        if not 0 < step < MAX_FORWARD or slot + count > SEEN:
            return False
        self._seen[slot : slot + count] = range(first, first + count)
        self._received += count
        self._highest = first + count - 1
        self._newest_timestamp = run.timestamp
        self._note_transit(arrived_at, run.timestamp)
        # The others came at the same time with the same timestamp: no further variation.
        self._jitter *= _STEADY ** (count - 1)
        self._stats.payload_bytes += run.payload_bytes
        return True

    def _note_transit(self, arrived_at: float, timestamp: int) -> None:
        """Interarrival jitter (RFC 3550 section 6.4.1)."""
        transit = arrived_at - timestamp / RTP_CLOCK
        if self._transit is not None:
            # A timestamp wrap moves one sample by 13 hours; it is not a delay.
            change = abs(transit - self._transit)
            if change < 10.0:
                self._jitter += (change - self._jitter) / 16
        self._transit = transit

    def _unnumbered(
        self, marker: bool, seq: int, timestamp: int, payload: bytes, arrived_at: float
    ) -> Frame | None:
        """A packet that does not say which frame it is of. WireError where others do."""
        grouper = self._grouper
        if grouper is None:
            if self.form is RAW:
                return self._without_extension(marker, seq, timestamp, arrived_at)
            if self._numbered:
                raise WireError("video_ext_missing", f"packet {seq}")
            grouper = self._grouper = FrameGrouper(self.form)
            # What leaves the grouper is the bitstream.
            self.form = RAW
        last = None
        for found in grouper.add(seq, timestamp, marker, payload, arrived_at):
            frame = self.assembler.add(
                (0, found.number & 0xFFFF, 0, 1),
                found.keyframe,
                found.rtp_time,
                found.data,
                arrived_at,
            )
            last = frame or last
        for error in grouper.take_errors():
            count_reason(self._stats.invalid, error.reason)
        return last

    def _without_extension(
        self, marker: bool, seq: int, timestamp: int, arrived_at: float
    ) -> Frame | None:
        """Synthetic traffic of the BW tool: a frame ends with its marker, nothing is decoded.

        Complete means that no number is missing since the marker before; what
        comes later than its marker does not mend a frame.
        """
        if not marker:
            return None
        before, self._marker_seq = self._marker_seq, seq
        seen, mask = self._seen, SEEN - 1
        if before is not None and any(
            seen[number & mask] != number for number in range(max(before, seq - SEEN) + 1, seq)
        ):
            self.assembler.lost += 1
            return None
        self.assembler.completed += 1
        frame = Frame(0, False, timestamp, arrived_at)
        frame.completed_at = arrived_at
        return frame

    def on_report(self, report: SenderReport, now: float) -> None:
        """Remember which wall time an RTP time stands for."""
        self._report = report
        self._report_at = now

    def captured_unix(self, rtp_time: int) -> float | None:
        """Capture time of a frame on the sender's wall clock (s); None before it tells any.

        Reckoned from the last one told, or from the sender's report.
        """
        if self._capture is not None:
            since = serial_diff(rtp_time, self._capture[0], 32) / RTP_CLOCK
            if abs(since) < CAPTURE_VALID:
                return self._capture[1] + since
        report = self._report
        if report is None:
            return None
        offset = serial_diff(rtp_time, report.rtp_timestamp, 32) / RTP_CLOCK
        return ntp_to_unix(report.ntp) + offset

    def report_block(self, now: float) -> ReportBlock:
        """Reception report (RFC 3550 section 6.4.1 and appendix A.3)."""
        expected = self._highest - self._first_seq + 1
        lost = expected - self._received
        interval = expected - self._expected_before
        lost_now = interval - (self._received - self._received_before)
        self._expected_before, self._received_before = expected, self._received
        report = self._report
        return ReportBlock(
            self.ssrc,
            fraction_lost=max(0, min(255, lost_now * 256 // interval)) if interval > 0 else 0,
            cumulative_lost=max(-0x800000, min(0x7FFFFF, lost)),
            highest_seq=self._highest & 0xFFFFFFFF,
            jitter=int(self._jitter * RTP_CLOCK) & 0xFFFFFFFF,
            last_sr=0 if report is None else ntp_to_short(report.ntp),
            delay_since_last_sr=0
            if report is None
            else min(0xFFFFFFFF, int((now - self._report_at) * 65536)),
        )

    @property
    def bytes_held(self) -> int:
        """Payload of packets whose frames have not left."""
        grouped = 0 if self._grouper is None else self._grouper.bytes_held
        return self.assembler.bytes_held + grouped

    @property
    def jitter(self) -> float:
        """Interarrival jitter (s)."""
        return self._jitter
