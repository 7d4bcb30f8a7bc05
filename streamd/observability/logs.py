"""Structured logging: JSON where a program reads, a coloured console where a person does.

Events are short constants, values are keys. Nothing here is called per packet.
"""

import logging
import sys
from collections.abc import MutableMapping
from datetime import UTC, datetime
from typing import Any, TextIO

import structlog
from structlog.tracebacks import ExceptionDictTransformer
from structlog.typing import EventDict, FilteringBoundLogger, Processor, WrappedLogger

from streamd.clock import Clock

FORMATS = ("auto", "console", "json")
LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
_FIRST_KEYS = ("timestamp", "level", "event", "logger", "role")


def configure(
    *,
    role: str,
    clock: Clock,
    form: str = "auto",
    level: str = "info",
    stream: TextIO | None = None,
) -> None:
    """Set up logging for the process; a second call replaces the first.

    `stream` None means whatever `sys.stderr` is when a line is written.
    """
    console = form == "console" or (form == "auto" and (stream or sys.stderr).isatty())
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            _add_name,
            _Stamp(clock),
            *(_console(stream or sys.stderr) if console else _json()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=lambda name="streamd": _Output(stream, name),
        # Levels and streams may change while running; no log call is hot enough to matter.
        cache_logger_on_first_use=False,
    )
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(role=role)
    _capture_libraries(LEVELS[level])


def get_logger(name: str) -> FilteringBoundLogger:
    """A logger whose lines carry `logger=name`; may be made before `configure`."""
    logger: FilteringBoundLogger = structlog.get_logger(name)
    return logger


def bind(**values: object) -> None:
    """Add keys to every line logged from this context on, e.g. `session`."""
    structlog.contextvars.bind_contextvars(**values)


class LimitedLogger:
    """Warnings that may come in floods: one per event and interval, with what was left out.

    Use fixed event names only: one number is kept per name.
    """

    def __init__(self, log: FilteringBoundLogger, clock: Clock, interval: float = 10.0) -> None:
        """`interval` in seconds."""
        self._log = log
        self._clock = clock
        self._interval = interval
        self._next: dict[str, float] = {}
        self._suppressed: dict[str, int] = {}

    def warning(self, event: str, **values: object) -> None:
        """Log, or only count when the same event was logged within the interval."""
        now = self._clock.now()
        if now < self._next.get(event, now):
            self._suppressed[event] = self._suppressed.get(event, 0) + 1
            return
        self._next[event] = now + self._interval
        suppressed = self._suppressed.pop(event, 0)
        if suppressed:
            values["suppressed"] = suppressed
        self._log.warning(event, **values)

    def flush(self) -> None:
        """Log what was counted and not yet told, e.g. at the end."""
        for event, suppressed in sorted(self._suppressed.items()):
            self._log.warning(event, suppressed=suppressed)
        self._suppressed.clear()


class _Output:
    """Where finished lines go, one write each, so that lines of processes do not mix."""

    def __init__(self, stream: TextIO | None, name: str) -> None:
        self._stream = stream
        self.name = name

    def msg(self, message: str) -> None:
        stream = self._stream or sys.stderr
        try:
            stream.write(message + "\n")
            stream.flush()
        except (OSError, ValueError):
            # Whoever read our log is gone; the stream must not die of that.
            return

    debug = info = warning = warn = error = critical = exception = fatal = log = msg


def _add_name(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    event["logger"] = logger.name
    return event


class _Stamp:
    """Adds the time by the given clock, which a test or a simulation may drive by hand."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def __call__(self, logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        time = datetime.fromtimestamp(self._clock.unix(), UTC)
        event["timestamp"] = time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return event


def _json() -> list[Processor]:
    # Values of local variables stay out: they may hold media or secrets.
    tracebacks = structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False))
    return [tracebacks, _usual_order, structlog.processors.JSONRenderer(default=str)]


def _console(stream: TextIO) -> list[Processor]:
    renderer = structlog.dev.ConsoleRenderer(
        colors=stream.isatty(), exception_formatter=structlog.dev.plain_traceback
    )
    return [renderer]


def _usual_order(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """The keys every line has come first."""
    ordered: MutableMapping[str, Any] = {k: event[k] for k in _FIRST_KEYS if k in event}
    ordered.update(event)
    return ordered


class _LibraryHandler(logging.Handler):
    """Brings what libraries say through the standard logging module into our form."""

    def emit(self, record: logging.LogRecord) -> None:
        log = structlog.get_logger(record.name)
        log.log(
            max(record.levelno, logging.DEBUG),
            "library_message",
            message=record.getMessage(),
            exc_info=record.exc_info,
        )


def _capture_libraries(level: int) -> None:
    root = logging.getLogger()
    for handler in list(root.handlers):
        if isinstance(handler, _LibraryHandler):
            root.removeHandler(handler)
    root.addHandler(_LibraryHandler())
    root.setLevel(max(level, logging.WARNING))
    logging.captureWarnings(True)
