"""When the receiver reports, and what: RFC 8888 block lists from packet arrivals.

Theory of operation. The sender's window is clocked by reports, so they come at
the end of every frame, after every 32 packets, and otherwise 40 ms after the
last one. A list repeats the newest 64 sequence numbers, so that a lost report
costs nothing. When more than 64 are unreported, several lists of one SSRC go
into the same packet, up to 900 bytes. This is the rule of the public SCReAM
receiver.

Two profiles. `bw-tool` is that receiver to the letter: it takes 0 as reported
before the first packet, so a stream that starts elsewhere is reported from 0
on, every list has 64 entries, and a gap that few packets follow waits for the
timer. The default profile starts at the first packet received, whatever its
number, reports a gap with the packet that shows it, does not report an SSRC
again that has nothing new, and says nothing of packets its history of 512 is
too short for.

Both differ from the reference in this: arithmetic is modulo 2^16 throughout; a
duplicate keeps the first arrival time and any CE mark (RFC 8888 section 3.1);
a packet that comes late, behind the next list, gets a list of its own.

Sans-IO: feed `on_packet`, and whenever it returns True or `next_timeout` is
due, call `poll_report` until it returns None.
"""

from dataclasses import dataclass

from streamd.wire.ccfb import ATO_OVER_RANGE, BLOCK_RECEIVED, BlockList

HISTORY = 512
_MASK = HISTORY - 1
_NEVER = -(1 << 40)
_TICKS = 65536.0
_SATURATED = ATO_OVER_RANGE << 6


@dataclass(frozen=True, slots=True)
class FeedbackProfile:
    """The constants of the rule; times in seconds."""

    max_blocks: int = 64
    """Entries of a list."""
    ack_diff: int = 32
    """Unreported packets that make a report due."""
    interval: float = 0.04
    """Longest time between reports while packets arrive."""
    first_interval: float = 0.2
    """The same until `first_period` after the first packet."""
    first_period: float = 0.1
    max_bytes: int = 900
    """No further list is begun once the RTCP packet has this size."""
    late_blocks: int = 32
    """Entries of a list for packets that came late."""
    idle_reset: float = 2.0
    """Silence after which everything is forgotten."""
    from_zero: bool = False
    """As the BW tool: sequence number 0 counts as reported, lists are never shorter."""
    max_sources: int = 16
    """Packets of further SSRCs are not reported."""


DEFAULT_PROFILE = FeedbackProfile()
BW_TOOL_PROFILE = FeedbackProfile(from_zero=True)


class _Source:
    """Arrivals of one SSRC; sequence numbers are unwrapped."""

    __slots__ = (
        "first",
        "flush",
        "highest",
        "late_high",
        "late_low",
        "new",
        "reported",
        "reported_at",
        "seqs",
        "ssrc",
        "ticks",
        "words",
    )

    def __init__(self, ssrc: int, seq: int, *, reported: int, reported_at: float) -> None:
        self.ssrc = ssrc
        self.first = seq
        self.highest = seq
        self.reported = reported
        """Highest number a list has ended with."""
        self.reported_at = reported_at
        self.new = 0
        """Packets since the last list."""
        self.flush = False
        """A frame has ended, or a list had to stop short of the highest."""
        self.late_low: int | None = None
        self.late_high = 0
        self.seqs = [_NEVER] * HISTORY
        self.words = [0] * HISTORY
        self.ticks = [0] * HISTORY

    def blocks(self, begin: int, end: int, report_ticks: int) -> list[int]:
        """The words for `begin` to `end` inclusive."""
        first = begin & _MASK
        last = first + end - begin + 1
        seqs, words, ticks = self.seqs[first:last], self.words[first:last], self.ticks[first:last]
        if last > HISTORY:
            seqs += self.seqs[: last - HISTORY]
            words += self.words[: last - HISTORY]
            ticks += self.ticks[: last - HISTORY]
        rows = zip(range(begin, end + 1), seqs, words, ticks, strict=True)
        if report_ticks - min(ticks) < _SATURATED and max(ticks) <= report_ticks:
            return [
                word | (report_ticks - at) >> 6 if seq == want else 0
                for want, seq, word, at in rows
            ]
        return [
            word | min(ATO_OVER_RANGE, max(0, report_ticks - at) >> 6) if seq == want else 0
            for want, seq, word, at in rows
        ]

    def last_received(self, begin: int, end: int) -> int | None:
        """The highest number from `begin` to `end` that arrived."""
        for seq in range(end, begin - 1, -1):
            if self.seqs[seq & _MASK] == seq:
                return seq
        return None


class FeedbackGenerator:
    """Decides on reports for all SSRCs of one sender."""

    def __init__(self, profile: FeedbackProfile = DEFAULT_PROFILE) -> None:
        self._profile = profile
        self._ack_diff = profile.ack_diff
        self._idle_reset = profile.idle_reset
        self._sources: dict[int, _Source] = {}
        self._last: _Source | None = None
        self._begun_at = 0.0
        self._heard_at: float | None = None
        self._news = False
        """The timer has something to report."""
        self._timer_at = 0.0
        self._arrival_due = False
        self._marker = False
        self._left_over = False
        self._late = False
        self.ignored_sources = 0
        """Packets not reported because `max_sources` SSRCs were known."""

    def on_packet(self, ssrc: int, seq: int, marker: bool, ecn: int, *, now: float) -> bool:
        """An RTP packet arrived (16-bit `seq`); True: a report is due now."""
        if self._heard_at is None or now - self._heard_at > self._idle_reset:
            self._restart(now)
        self._heard_at = now
        source = self._last
        if source is None or source.ssrc != ssrc:
            found = self._find(ssrc, seq, now)
            if found is None:
                return False
            source = self._last = found
        step = seq - source.highest & 0xFFFF
        if step < 0x8000:
            number = source.highest + step
            source.highest = number
            index = number & _MASK
        else:
            number = source.highest + step - 0x10000
            if not self._note_late(source, number):
                return self._arrival_due
            index = number & _MASK
        if source.seqs[index] == number:
            source.words[index] |= ecn << 13 if ecn == 3 else 0
        else:
            source.seqs[index] = number
            source.words[index] = BLOCK_RECEIVED | ecn << 13
            source.ticks[index] = int(now * _TICKS)
        source.new += 1
        self._news = True
        if marker:
            source.flush = self._marker = True
        if source.flush or source.highest - source.reported >= self._ack_diff or self._left_over:
            self._arrival_due = True
        return self._arrival_due

    def on_run(
        self, ssrc: int, seq: int, count: int, marker: bool, ecn: int, *, now: float
    ) -> bool:
        """`count` packets from `seq` on arrived together, `marker` on the last.

        As `on_packet` for each, but at most one report comes of them.
        """
        source = self._last
        if source is None or source.ssrc != ssrc or self._heard_at is None:
            return self._one_by_one(ssrc, seq, count, marker, ecn, now)
        step = seq - source.highest & 0xFFFF
        number = source.highest + step
        begin = number & _MASK
        end = begin + count - 1
        late = now - self._heard_at > self._idle_reset
        if late or not 0 < step < 0x8000 - count or end > HISTORY:
            return self._one_by_one(ssrc, seq, count, marker, ecn, now)
        source.seqs[begin:end] = range(number, number + count - 1)
        source.words[begin:end] = [BLOCK_RECEIVED | ecn << 13] * (count - 1)
        source.ticks[begin:end] = [int(now * _TICKS)] * (count - 1)
        source.new += count - 1
        return self.on_packet(ssrc, seq + count - 1 & 0xFFFF, marker, ecn, now=now)

    def _one_by_one(
        self, ssrc: int, seq: int, count: int, marker: bool, ecn: int, now: float
    ) -> bool:
        last = count - 1
        for step in range(last):
            self.on_packet(ssrc, seq + step & 0xFFFF, False, ecn, now=now)
        return self.on_packet(ssrc, seq + last & 0xFFFF, marker, ecn, now=now)

    def poll_report(self, *, now: float) -> list[BlockList] | None:
        """The lists of the next RTCP packet, to be stamped with the time `now`; None: no report.

        After an arrival that made a report due, that report. Otherwise what the
        timer finds: a report that is left over, or the interval is over.
        """
        if self._arrival_due:
            self._arrival_due = False
            # the reference leaves a gap that few packets follow to the timer
            marker = self._marker or not self._profile.from_zero
        elif self._news and (self._left_over or now >= self._timer_at):
            marker = True
        else:
            return self._late_report(now) if self._late else None
        self._marker = False
        lists = self._make_report(now, marker)
        if lists:
            self._timer_at = self._interval_end(now)
        sources = self._sources.values()
        self._left_over = any(self._is_due(source) for source in sources)
        self._news = any(source.new for source in sources)
        if self._left_over and not self._profile.from_zero:
            self._news = True
        return lists or None

    def next_timeout(self) -> float | None:
        """When to call `poll_report` although nothing arrives (s); None: not at all."""
        if self._arrival_due or self._late:
            return self._heard_at
        if not self._news:
            return None
        return self._heard_at if self._left_over else self._timer_at

    def _restart(self, now: float) -> None:
        """Nothing was heard for long, or ever: forget everything."""
        self._sources.clear()
        self._last = None
        self._begun_at = now
        self._arrival_due = self._marker = self._left_over = self._late = self._news = False
        self._timer_at = self._interval_end(0.0 if self._profile.from_zero else now)

    def _find(self, ssrc: int, seq: int, now: float) -> _Source | None:
        source = self._sources.get(ssrc)
        if source is None:
            if len(self._sources) >= self._profile.max_sources:
                self.ignored_sources += 1
                return None
            if self._profile.from_zero:
                source = _Source(ssrc, seq, reported=0, reported_at=0.0)
            else:
                source = _Source(ssrc, seq, reported=seq - 1, reported_at=now)
            self._sources[ssrc] = source
        return source

    def _note_late(self, source: _Source, number: int) -> bool:
        """A packet below the highest arrived; False: too old to be kept."""
        if source.highest - number >= HISTORY:
            return False
        source.first = min(source.first, number)
        if number <= source.reported:
            if source.late_low is None:
                source.late_low = source.late_high = number
            else:
                source.late_low = min(source.late_low, number)
                source.late_high = max(source.late_high, number)
        return True

    def _is_due(self, source: _Source) -> bool:
        return source.flush or source.highest - source.reported >= self._ack_diff

    def _interval_end(self, since: float) -> float:
        """When the interval that began at `since` is over."""
        profile = self._profile
        usual = max(since + profile.interval, self._begun_at + profile.first_period)
        return min(since + profile.first_interval, usual)

    def _make_report(self, now: float, marker: bool) -> list[BlockList]:
        lists: list[BlockList] = []
        ticks = int(now * _TICKS)
        size = 12
        while size < self._profile.max_bytes:
            source = self._pick(now, marker)
            if source is None:
                break
            item = self._take(source, now, ticks)
            lists.append(item)
            size += 8 + (len(item.blocks) + 1) // 2 * 4
        return lists

    def _pick(self, now: float, marker: bool) -> _Source | None:
        """The SSRC reported longest ago among those that have something to report."""
        best: _Source | None = None
        enough = min(16, self._profile.ack_diff)
        for source in self._sources.values():
            if best is not None and source.reported_at >= best.reported_at:
                continue
            idle = now >= self._interval_end(source.reported_at)
            if not self._profile.from_zero:
                idle = idle and source.new > 0
            wanted = source.new >= enough or source.flush or (marker and source.new > 0)
            if wanted or idle:
                best = source
        return best

    def _take(self, source: _Source, now: float, ticks: int) -> BlockList:
        most = self._profile.max_blocks
        if not self._profile.from_zero:
            # of what is older than the history there is nothing to tell
            source.reported = max(source.reported, source.highest - HISTORY)
        end = min(source.highest, source.reported + most)
        begin = end - most + 1
        if not self._profile.from_zero:
            begin = min(end, max(begin, source.first))
        source.reported = end
        source.reported_at = now
        source.new = 0
        source.flush = end != source.highest
        if source.late_low is not None:
            if begin <= source.late_low:
                source.late_low = None
            else:
                self._late = True
        return BlockList(source.ssrc, begin & 0xFFFF, source.blocks(begin, end, ticks))

    def _late_report(self, now: float) -> list[BlockList] | None:
        """One list per SSRC for packets that came behind its last list."""
        lists: list[BlockList] = []
        ticks = int(now * _TICKS)
        self._late = False
        for source in self._sources.values():
            begin = source.late_low
            if begin is None:
                continue
            begin = max(begin, source.highest - _MASK)
            end = source.last_received(begin, begin + self._profile.late_blocks - 1)
            source.late_low = None
            if end is None:
                continue
            if end < source.late_high:
                source.late_low = end + 1
                self._late = True
            lists.append(BlockList(source.ssrc, begin & 0xFFFF, source.blocks(begin, end, ticks)))
        return lists or None
