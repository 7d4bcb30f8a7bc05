"""Receive a stream from Python: every decoded picture is handed to a function.

    from streamd.receive import receive

    def look(shown):
        print(shown.frame_no, shown.picture.width, shown.picture.height)

    receive(look, listen="127.0.0.1:5004", duration="10s")

It is `streamd receiver` with a callback: the same feedback, repair, counters and, with
`json`, the same results. SIGINT and SIGTERM end it in the main thread.
"""

from collections.abc import Callable
from typing import Any

from streamd.config.model import ReceiverConfig
from streamd.errors import ConfigError
from streamd.media.sinks import Callback, Shown

__all__ = ["Shown", "receive"]


def receive(on_picture: Callable[[Shown], object], **settings: Any) -> int:
    """Receive until `duration` is over or a signal comes; the exit code of the daemon.

    `settings` are those of `streamd receiver` (docs/config.md) as keywords, in the form a file
    has them. `on_picture` runs in a thread of its own; a slow one misses pictures, it never
    holds up the stream. ConfigError for settings that do not fit.
    """
    from streamd.daemon.receiver import run

    try:
        config = ReceiverConfig.model_validate(settings)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return run(config, sinks=[Callback(on_picture)])
