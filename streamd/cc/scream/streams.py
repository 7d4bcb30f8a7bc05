"""Which of several streams sends next (spec 9).

Theory of operation. What one stream sends gives the others credit in
proportion to their priorities; the stream with credit that has waited longest
is served, and without any the one of highest priority. The streams are tried
in the order they were added; a later one must have at least the credit of the
choice so far and have waited longer.

Differences from the reference: none.
"""

from collections.abc import Sequence

from streamd.cc.scream.state import Connection, Stream


def choose_stream(streams: Sequence[Stream], t: int) -> Stream | None:
    """The stream to serve; None when every queue is empty."""
    best: Stream | None = None
    fallback: Stream | None = None
    credit, idle = 1.0, 0
    for stream in streams:
        if not len(stream.queue):
            continue
        if fallback is None or stream.priority > fallback.priority:
            fallback = stream
        if stream.credit >= credit and t - stream.last_tx > idle:
            best = stream
            credit, idle = stream.credit, t - stream.last_tx
    return best or fallback


def share_credit(conn: Connection, streams: Sequence[Stream], sender: Stream, size: int) -> None:
    """`sender` sent `size` bytes."""
    for stream in streams:
        if stream is sender:
            continue
        stream.credit += size * stream.priority / sender.priority
        if not len(stream.queue):
            stream.credit = min(stream.credit, 10.0 * conn.mss_eff)
    sender.credit = max(0.0, sender.credit - size)
