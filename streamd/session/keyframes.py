"""When to ask the encoder for a key frame.

Requests are remembered until one key frame, asked for or not, answers them all;
two key frames are never asked for within `min_interval`. A loss epoch is answered
`LOSS_DELAY` after it was noticed, so that the burst it belongs to is over and
retransmission has had its chance. A receiver gets no more than one key frame per
`RECEIVER_INTERVAL`, however often it asks: it may ask again before the answer
can have reached it. Source: "Fake It No More", section 2.3; specification of
the BW tool's video mode.
"""

MIN_INTERVAL = 0.1
LOSS_DELAY = 0.1
RECEIVER_INTERVAL = 0.3


class KeyframePolicy:
    """Collects requests by cause; asked once per frame."""

    def __init__(
        self,
        *,
        on_target: bool = True,
        on_loss: bool = True,
        min_interval: float = MIN_INTERVAL,
    ) -> None:
        self._on_target = on_target
        self._on_loss = on_loss
        self._min_interval = min_interval
        self._due: dict[str, float] = {}
        self._last: float | None = None
        self.taken: dict[str, int] = {"target": 0, "loss": 0, "receiver": 0}
        """Requests answered with a key frame, by cause."""

    def on_decision(self, keyframe_wanted: bool, loss_epoch: bool, now: float) -> None:
        """The one-shot flags of the controller's decision."""
        if keyframe_wanted and self._on_target:
            self._due.setdefault("target", now)
        if loss_epoch and self._on_loss:
            self._due.setdefault("loss", now + LOSS_DELAY)

    def on_given_up(self, now: float) -> None:
        """Lost packets will not be repaired: no use in waiting for them."""
        if self._on_loss:
            self._due["loss"] = now

    def on_receiver_request(self, now: float) -> None:
        """RTCP PLI or FIR."""
        due = now if self._last is None else max(now, self._last + RECEIVER_INTERVAL)
        self._due.setdefault("receiver", due)

    def take(self, now: float) -> bool:
        """Whether the next frame shall be a key frame."""
        if self._last is not None and now - self._last < self._min_interval:
            return False
        if not any(due <= now for due in self._due.values()):
            return False
        self.on_keyframe(now)
        return True

    def on_keyframe(self, now: float) -> None:
        """A key frame is asked for, or went out (perhaps unasked, as the first of a stream)."""
        for cause in self._due:
            self.taken[cause] += 1
        self._due.clear()
        self._last = now
