"""Delay target beside loss-based flows (spec 6, end; off by default).

Theory of operation. A queue delay that stays high with little variance and
without skew, while losses occur, means that somebody else fills the queue; the
target is then raised above that delay so that the stream is not starved, and
comes down slowly when the delay does.

Differences from the reference: the skew is that of the history; there it adds
up for ever, so that one burst long ago decides.
"""

from streamd.cc.filters import total
from streamd.cc.scream import constants as c
from streamd.cc.scream.state import Connection

_LONG = 200
_SHORT = 50


def update_target(conn: Connection) -> None:
    """Every 50 ms."""
    least = conn.config.queue_delay_target
    history = conn.sbd
    history.append(conn.queue_delay / least)
    if len(history) > _LONG:
        del history[0]
    recent = history[-_SHORT:]
    mean = total(recent) / len(recent)
    variance = total((x - mean) ** 2 for x in history) / len(history)
    skew = total((x - mean) ** 3 for x in history) / len(history)
    high = least * (mean + variance**0.5)
    target = conn.qd_target
    if conn.loss_event_rate > 0.002 and mean > 0.5 and variance < 0.2:
        target = min(c.MAX_QUEUE_DELAY_TARGET_S, 1.5 * high)
    elif variance < 0.2 and skew < 0.05:
        target = min(c.MAX_QUEUE_DELAY_TARGET_S, max(least, high))
    target = max(0.99 * target, high) if high < target else 0.999 * target
    conn.qd_target = max(least, target)
