"""L4S alpha: the share of marked packets, averaged (spec 7.3).

Theory of operation. As in DCTCP and TCP Prague the window is cut by half of
alpha per reaction; here alpha rises with a gain of 1/8 and decays with 1/128,
at most every 10 ms, so that a short burst of marks is answered in full and
forgotten slowly.

Difference from the reference: none (its density correction belongs to unpaced
sending, which this implementation does not have).
"""

from streamd.cc.scream import constants as c
from streamd.cc.scream.state import Connection


def update_alpha(conn: Connection, t: int) -> None:
    """Once at the end of each report."""
    if not conn.l4s:
        conn.alpha = 0.0
        return
    if t - conn.last_alpha <= min(c.ALPHA_INTERVAL, conn.s_rtt):
        return
    conn.last_alpha = t
    fraction = conn.marked / conn.delivered if conn.delivered else 0.0
    conn.delivered = conn.marked = 0
    conn.fraction_marked = fraction
    if fraction >= conn.alpha:
        conn.alpha = min(1.0, fraction * c.ALPHA_GAIN_UP + (1 - c.ALPHA_GAIN_UP) * conn.alpha)
    else:
        conn.alpha *= c.ALPHA_DECAY
