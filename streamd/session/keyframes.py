"""When to ask the encoder for a key frame.

Four causes can be combined: a negative *target*, a *loss* epoch, a packet that stays
*unacked*, and *periodic*; a *receiver* can always ask (RTCP PLI, FIR). Requests are
remembered until one key frame, asked for or not, answers them all. A loss epoch is
answered `LOSS_DELAY` after it was noticed, so that the burst it belongs to is over
and retransmission has had its chance. A packet unacknowledged for `UNACKED_AGE` says
that nothing arrives: what was sent before is given up, so that the key frame is the
first thing to leave.

Four bounds keep requests from becoming a storm:

* no two key frames are asked for within `interval` (the paper's only bound);
* while nothing was acknowledged since the last one, the next waits for `UNACKED_AGE`:
  in an outage more of them would only queue behind each other;
* no more than `per_second` per second for long, with `BURST` to begin with;
* no more than `share` of the rate for long: each of S bits is a debt of S / (share R)
  seconds at the target R of the moment, paid off as time goes by, and no request is
  answered while the debt is above `CREDIT`.

Source: "Fake It No More", sections 2.3 and 3.3; specification of the BW tool's video mode.
"""

import math
from dataclasses import dataclass
from typing import Literal

MIN_INTERVAL = 0.1
LOSS_DELAY = 0.1
RECEIVER_INTERVAL = 0.3
"""A receiver that insists gets no more than one key frame in this time: it may ask again
before the answer can have reached it (s)."""
UNACKED_AGE = 1.0
REPAIR_TRUST = 2.0
"""A receiver that asks sooner than this after a repair frame was not helped by it (s)."""
BURST = 8
"""Requests answered quickly after a quiet time: outages come in groups."""
CREDIT = 1.0
"""Debt up to which a request is answered (s)."""
MAX_DEBT = 3.0
"""However much key frames cost, the next may follow MAX_DEBT - CREDIT later (s)."""

Cause = Literal["target", "loss", "unacked"]
"""What can be switched on and off."""


@dataclass(frozen=True, slots=True)
class KeyframeOptions:
    """Which causes count, and how often they are answered."""

    causes: frozenset[Cause] = frozenset(("target", "loss", "unacked"))
    interval: float = MIN_INTERVAL
    """Least time between two key frames asked for (s)."""
    per_second: int = 2
    """Most key frames per second for long."""
    share: float = 0.25
    """Part of the rate key frames may take for long."""
    period: float | None = None
    """Time between periodic key frames (s); they count from the first frame on."""


class KeyframePolicy:
    """Collects requests by cause; asked once per frame."""

    def __init__(self, options: KeyframeOptions | None = None) -> None:
        self._options = options or KeyframeOptions()
        self._due: dict[str, float] = {}
        self._reported = True
        """Something was acknowledged since the last key frame."""
        self._repaired_at = -math.inf
        """When a repair frame answered last (s)."""
        self._expected = False
        """A key frame was asked for and has not come out of the encoder yet."""
        self._last: float | None = None
        self._left = float(BURST)
        """Key frames the bound per second still allows, as of the last one."""
        self._target_bps = 0.0
        self._owed = 0.0
        """Debt at the last key frame (s)."""
        self._unacked_seq: int | None = None
        self._next_periodic: float | None = None
        self.taken: dict[str, int] = dict.fromkeys(
            ("target", "loss", "unacked", "periodic", "receiver"), 0
        )
        """Requests answered with a key frame, by cause."""

    def on_decision(self, keyframe_wanted: bool, loss_epoch: bool, now: float) -> None:
        """The one-shot flags of the controller's decision."""
        causes = self._options.causes
        if keyframe_wanted and "target" in causes:
            self._due.setdefault("target", now)
        if loss_epoch and "loss" in causes:
            self._due.setdefault("loss", now + LOSS_DELAY)

    def on_outstanding(self, seq: int, sent_at: float, now: float) -> None:
        """The oldest unacknowledged packet; each number asks for one key frame at most."""
        if self.nothing_arrives(seq, sent_at, now):
            self._unacked_seq = seq
            self._due.setdefault("unacked", now)

    def nothing_arrives(self, seq: int, sent_at: float, now: float) -> bool:
        """Whether that packet is about to ask for a key frame."""
        late = now - sent_at > UNACKED_AGE and seq != self._unacked_seq
        return late and "unacked" in self._options.causes

    def on_report(self) -> None:
        """Packets were acknowledged: the path works."""
        self._reported = True

    def on_given_up(self, now: float) -> None:
        """Lost packets will not be repaired: no use in waiting for them."""
        if "loss" in self._options.causes:
            self._due["loss"] = now

    def on_receiver_request(self, now: float) -> None:
        """RTCP PLI or FIR; also a sign that the path works."""
        self._reported = True
        due = now if self._last is None else max(now, self._last + RECEIVER_INTERVAL)
        self._due.setdefault("receiver", due)

    def take(self, now: float, target_bps: float) -> frozenset[str]:
        """The causes the next frame answers as a key frame; empty: it need not be one."""
        self._target_bps = target_bps
        self._look_at_period(now)
        if not any(due <= now for due in self._due.values()) or self._bounded(now):
            return frozenset()
        answered = frozenset(self._due)
        self._answer(now)
        self._expected = True
        return answered

    def on_keyframe(self, size: int, now: float) -> None:
        """One of `size` bytes went out, asked for or not (as the first of a stream)."""
        if not self._expected:
            self._answer(now)
        self._expected = False
        if self._target_bps > 0:
            cost = 8 * size / (self._options.share * self._target_bps)
            self._owed = min(MAX_DEBT, self._owed + cost)

    def repairable(self, answered: frozenset[str], now: float) -> bool:
        """Whether a frame predicted from what the receiver has may stand for the key frame.

        Not for a periodic one, and not for a receiver that asks although it got a repair.
        """
        if not answered or "periodic" in answered:
            return False
        return "receiver" not in answered or now - self._repaired_at > REPAIR_TRUST

    def on_repair(self, size: int, now: float) -> None:
        """A repair frame of `size` bytes went out: it costs like a key frame of its size."""
        self._repaired_at = now
        self.on_keyframe(size, now)

    def _answer(self, now: float) -> None:
        for cause in self._due:
            self.taken[cause] += 1
        self._due.clear()
        self._reported = False
        self._owed = self._debt(now)
        self._left = max(0.0, self._allowance(now) - 1)
        self._last = now

    def _debt(self, now: float) -> float:
        return 0.0 if self._last is None else max(0.0, self._owed - (now - self._last))

    def _allowance(self, now: float) -> float:
        gained = 0.0 if self._last is None else (now - self._last) * self._options.per_second
        return min(BURST, self._left + gained)

    def _bounded(self, now: float) -> bool:
        """Whether the last key frames keep the next one off."""
        if self._last is None:
            return False
        return (
            now - self._last < self._options.interval
            or (not self._reported and now - self._last < UNACKED_AGE)
            or self._allowance(now) < 1
            or self._debt(now) > CREDIT
        )

    def _look_at_period(self, now: float) -> None:
        period = self._options.period
        if period is None:
            return
        if self._next_periodic is None:
            self._next_periodic = now + period
        elif now >= self._next_periodic:
            self._due.setdefault("periodic", now)
            missed = (now - self._next_periodic) // period
            self._next_periodic += (missed + 1) * period
