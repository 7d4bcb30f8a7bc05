"""Tells the service manager how we are: systemd's notification protocol, one datagram a time."""

import contextlib
import socket
from collections.abc import Mapping


class Notifier:
    """Speaks to `$NOTIFY_SOCKET`; does nothing where there is none."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        path = environ.get("NOTIFY_SOCKET", "")
        # A leading @ stands for the NUL byte of Linux' abstract namespace.
        self._address = "\0" + path[1:] if path.startswith("@") else path
        self._watchdog = environ.get("WATCHDOG_USEC", "")

    @property
    def watchdog_interval(self) -> float | None:
        """How often (s) to say that the loop still turns: half of what is allowed; None: never."""
        if not self._address or not self._watchdog.isdigit() or int(self._watchdog) == 0:
            return None
        return int(self._watchdog) / 2e6

    def ready(self) -> None:
        """Sockets are bound, work begins."""
        self._send("READY=1")

    def stopping(self) -> None:
        """A drain has begun."""
        self._send("STOPPING=1")

    def alive(self) -> None:
        """The event loop turns."""
        self._send("WATCHDOG=1")

    def status(self, text: str) -> None:
        """One line for a human."""
        self._send("STATUS=" + text.replace("\n", " "))

    def _send(self, state: str) -> None:
        if not self._address:
            return
        # A manager that is restarting must not take the stream with it.
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as channel,
        ):
            channel.sendto(state.encode(), self._address)
