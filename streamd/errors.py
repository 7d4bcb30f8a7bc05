"""The exception tree: who is to blame, and which exit code a daemon ends with.

Nothing here may import another streamd module.
"""


class StreamdError(Exception):
    """Base of every error streamd raises on purpose."""

    exit_code = 1


class ConfigError(StreamdError):
    """The user's configuration or input file is wrong (sysexits EX_CONFIG)."""

    exit_code = 78


class StartupError(StreamdError):
    """The program could not start: a port in use, a device or codec missing."""

    exit_code = 3


class TransportError(StreamdError):
    """The operating system refused a socket operation that has no recovery."""


class LocalMisuse(StreamdError):
    """Our own caller broke the rules of an API: a bug on this side."""


class WireError(StreamdError, ValueError):
    """Bytes from the network do not parse. Counted by `reason`, never fatal.

    `reason` is a short snake_case word from a small fixed set: it becomes the
    label of a counter, so it never holds anything the peer wrote.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason


class ProtocolViolation(StreamdError):
    """The peer's bytes parse but what they say cannot be true."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason


class MediaError(StreamdError):
    """A codec refused data in the middle of a stream; the stream goes on without that frame."""
