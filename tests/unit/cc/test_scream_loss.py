"""Loss detection: both rules, events, and equivalence with the full walk."""

import random

import pytest
from scream_parts import connection, stream

from streamd.cc.scream.loss import detect_losses
from streamd.cc.scream.ring import ACKED, PASSED, USED
from streamd.cc.scream.state import Connection, Stream

MASK = 4095


def send(conn: Connection, st: Stream, seq: int, t: int, *, size: int = 1000, rtp: int = 0) -> None:
    ring = st.ring
    if ring.hi_acked is None:
        ring.begin(seq)
    elif seq <= ring.scanned:
        ring.reopen(seq)
    index = seq & MASK
    ring.flags[index] = USED
    ring.seqs[index] = seq
    ring.sizes[index] = size
    ring.tx[index] = t
    ring.rtp[index] = rtp
    conn.bytes_in_flight += size


def ack(st: Stream, seq: int) -> None:
    index = seq & MASK
    if st.ring.flags[index] & USED and st.ring.seqs[index] == seq:
        st.ring.flags[index] |= ACKED
        st.ring.acked_tx = st.ring.tx[index]


def test_everything_up_to_the_highest_has_left_the_network() -> None:
    conn, st = connection(), stream()
    for seq in range(6):
        send(conn, st, seq, 100 + seq)
    for seq in (0, 1, 3):
        ack(st, seq)
    detect_losses(conn, st, 3, 2000)
    assert conn.bytes_newly_acked == 4000
    assert conn.bytes_in_flight == 2000
    assert st.acked_bytes == 4000
    assert st.ring.open == [2]
    assert st.packets_lost == 0


def test_an_overtaken_packet_is_lost_after_the_reorder_time() -> None:
    conn, st = connection("2026-03-04"), stream()
    send(conn, st, 0, 100)
    send(conn, st, 1, 100 + 1966)
    send(conn, st, 2, 100 + 1967)
    ack(st, 1)
    detect_losses(conn, st, 1, 9000)
    assert st.packets_lost == 0
    ack(st, 2)
    detect_losses(conn, st, 2, 9000)
    assert st.packets_lost == 1
    assert st.total_lost_bytes == 1000
    assert st.repair
    assert conn.loss_event


def test_newer_media_time_makes_the_wait_longer() -> None:
    conn, st = connection(), stream()
    st.ring.ts_high = 9000  # a tenth of a second ahead of the packet
    send(conn, st, 0, 100)
    send(conn, st, 1, 100 + 8519)
    send(conn, st, 2, 100 + 8521)
    ack(st, 1)
    detect_losses(conn, st, 1, 20000)
    assert st.packets_lost == 0
    ack(st, 2)
    detect_losses(conn, st, 2, 20000)
    assert st.packets_lost == 1


def test_a_packet_512_behind_is_lost() -> None:
    conn, st = connection("2026-03-04"), stream()
    st.ring.ts_high = 0
    for seq in range(600):
        send(conn, st, seq, 100 + seq, rtp=1)  # ahead of ts_high: the second rule rests
    for seq in range(600):
        if seq != 20:
            ack(st, seq)
    for highest in range(8, 541, 4):
        detect_losses(conn, st, highest, 4000)
        expected = highest - 4 - 512 > 20
        assert st.packets_lost == expected


def test_a_loss_below_one_percent_raises_no_event_in_the_newer_profile() -> None:
    conn, st = connection(), stream()
    send(conn, st, 0, 100)
    send(conn, st, 1, 9000)
    ack(st, 1)
    detect_losses(conn, st, 1, 12000)
    assert st.packets_lost == 1
    assert not conn.loss_event
    conn.queue_delay_avg = 0.0151
    send(conn, st, 2, 10000)
    send(conn, st, 3, 19000)
    ack(st, 3)
    detect_losses(conn, st, 3, 22000)
    assert conn.loss_event


def test_at_most_one_event_per_round_trip() -> None:
    conn, st = connection("2026-03-04"), stream()
    conn.last_event = 12000 - conn.s_rtt
    send(conn, st, 0, 100)
    send(conn, st, 1, 9000)
    ack(st, 1)
    detect_losses(conn, st, 1, 12000)
    assert st.packets_lost == 1
    assert not conn.loss_event


def test_loss_rate_counts_lost_and_acknowledged() -> None:
    conn, st = connection(), stream()
    conn.mss, conn.ref_wnd = 1000, 50_000  # gain: 0.0025
    send(conn, st, 0, 100)
    for seq in range(1, 5):
        send(conn, st, seq, 9000)
        ack(st, seq)
    detect_losses(conn, st, 4, 12000)
    assert conn.loss_rate == pytest.approx(0.0025 * 0.9975**4)


class FullWalk:
    """The reference's way: all of the 512 behind, at every report (spec 5)."""

    def __init__(self, conn: Connection) -> None:
        self.conn = conn
        self.entries: dict[int, list[int]] = {}
        self.highest: int | None = None
        self.acked_tx = 0
        self.ts_high = 0
        self.newly_acked = 0
        self.in_flight = 0
        self.lost: list[int] = []
        self.loss_rate = 0.0

    def send(self, seq: int, t: int, size: int, rtp: int) -> None:
        if self.highest is None:
            self.highest = seq
        self.entries[seq] = [USED, size, t, rtp]
        self.in_flight += size

    def ack(self, seq: int) -> None:
        entry = self.entries.get(seq)
        if entry and entry[0] & USED:
            entry[0] |= ACKED
            self.acked_tx = entry[2]

    def detect(self, highest: int) -> None:
        previous = self.highest
        assert previous is not None
        self.highest = highest
        old = previous - 512
        for seq in range(old - min(32, (highest - previous) % 65536), old):
            entry = self.entries.get(seq)
            if entry and entry[0] & USED:
                if not entry[0] & ACKED:
                    self.count(seq, 1)
                entry[0] = 0
        for seq in range(old, highest + 1):
            entry = self.entries.get(seq)
            if entry and entry[0] & USED:
                self.visit(seq, entry)

    def visit(self, seq: int, entry: list[int]) -> None:
        flags, size, tx, rtp = entry
        if not flags & PASSED:
            self.newly_acked += size
            self.in_flight = max(0, self.in_flight - size)
            entry[0] |= PASSED
        wait = (0.03 + ((self.ts_high - rtp) % 2**32) / 90000) * 65536
        if flags & ACKED:
            entry[0] = 0
            self.count(seq, 0)
        elif tx + wait < self.acked_tx:
            entry[0] = 0
            self.count(seq, 1)

    def count(self, seq: int, lost: int) -> None:
        if lost:
            self.lost.append(seq)
        self.loss_rate += (lost - self.loss_rate) * 0.0025


@pytest.mark.parametrize("seed", range(8))
def test_visiting_only_what_can_change_equals_the_full_walk(seed: int) -> None:
    """Gaps, losses, retransmissions, late reports and long jumps, from a random start."""
    rng = random.Random(f"scream-loss:{seed}")
    conn, st = connection(), stream()
    conn.mss, conn.ref_wnd = 1000, 50_000
    walk = FullWalk(conn)
    seq = rng.randrange(100_000)
    t = 100
    loss = rng.choice((0.0, 0.02, 0.3))
    for _ in range(250):
        fresh = []
        for _ in range(rng.choice((1, 5, 20, 60, 150))):
            seq += rng.choice((1, 1, 1, 1, 1, 1, 1, 1, 1, 40)) if rng.random() < 0.1 else 1
            t += rng.randrange(1, 60)
            size = rng.randrange(100, 1300)
            rtp = t if rng.random() < 0.5 else 0
            send(conn, st, seq, t, size=size, rtp=rtp)
            walk.send(seq, t, size, rtp)
            fresh.append(seq)
        acked = [s for s in fresh if rng.random() >= loss]
        if rng.random() < 0.3:
            again = seq - rng.randrange(0, 560)
            entry = walk.entries.get(again)
            if entry is not None:
                size, rtp = entry[1], entry[3]
                send(conn, st, again, t, size=size, rtp=rtp)
                walk.send(again, t, size, rtp)
                if rng.random() < 0.5:
                    acked.append(again)
        if rng.random() < 0.2:
            acked.append(seq - rng.randrange(0, 600))
        for s in sorted(acked):
            ack(st, s)
            walk.ack(s)
        walk.acked_tx = st.ring.acked_tx
        st.ring.ts_high = walk.ts_high = rng.choice((0, t))
        assert st.ring.hi_acked is not None
        highest = fresh[-1] if rng.random() < 0.85 else st.ring.hi_acked - rng.randrange(1, 512)
        detect_losses(conn, st, highest, t)
        walk.detect(highest)
        assert conn.bytes_newly_acked == walk.newly_acked
        assert conn.bytes_in_flight == walk.in_flight
        assert st.packets_lost == len(walk.lost)
        assert conn.loss_rate == pytest.approx(walk.loss_rate, rel=1e-9, abs=1e-15)
        assert len(st.ring.open) <= 4096
