"""Log lines: form, keys, levels, floods."""

import io
import json
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from observability_fakes import HandClock

from streamd.observability import logs


@pytest.fixture(autouse=True)
def _restore_logging() -> Iterator[None]:
    root = logging.getLogger()
    before = (root.level, list(root.handlers))
    yield
    logging.captureWarnings(False)
    root.setLevel(before[0])
    root.handlers[:] = before[1]
    structlog.contextvars.clear_contextvars()
    structlog.reset_defaults()


def configured(clock: HandClock | None = None, **options: Any) -> io.StringIO:
    stream = io.StringIO()
    logs.configure(role="sender", clock=clock or HandClock(), stream=stream, **options)
    return stream


def records(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_json_line_has_the_usual_keys_first() -> None:
    stream = configured(HandClock(1.25))
    logs.get_logger("streamd.x").info("rate_changed", target_bps=5e6, peer=("a", 1))
    assert stream.getvalue() == (
        '{"timestamp": "2023-11-14T22:13:21.250Z", "level": "info", "event": "rate_changed", '
        '"logger": "streamd.x", "role": "sender", "target_bps": 5000000.0, "peer": ["a", 1]}\n'
    )


def test_what_is_not_a_terminal_gets_json_unless_asked() -> None:
    stream = configured(form="console")
    logs.get_logger("streamd.x").info("started", port=5)
    assert stream.getvalue() == (
        "2023-11-14T22:13:20.000Z [info     ] started                        "
        "[streamd.x] port=5 role=sender\n"
    )


def test_a_logger_made_before_the_configuration_follows_it() -> None:
    log = logs.get_logger("streamd.early")
    stream = configured()
    log.info("one")
    second = configured()
    log.info("two")
    assert [r["event"] for r in records(stream)] == ["one"]
    assert [r["event"] for r in records(second)] == ["two"]


def test_levels() -> None:
    stream = configured(level="warning")
    log = logs.get_logger("streamd.x")
    log.debug("a")
    log.info("b")
    log.warning("c")
    log.error("d")
    assert [r["event"] for r in records(stream)] == ["c", "d"]


def test_bound_values_are_on_every_line() -> None:
    stream = configured()
    logs.bind(session="abc")
    logs.get_logger("streamd.x").info("one")
    logs.get_logger("streamd.y").info("two")
    assert [r["session"] for r in records(stream)] == ["abc", "abc"]


def test_a_traceback_is_structured_and_has_no_values_of_variables() -> None:
    stream = configured()
    secret = "do not log me"
    try:
        raise ValueError("broken")
    except ValueError:
        logs.get_logger("streamd.x").critical("unhandled", exc_info=True)
    (record,) = records(stream)
    assert record["exception"][0]["exc_type"] == "ValueError"
    assert record["exception"][0]["frames"][-1]["name"] == (
        "test_a_traceback_is_structured_and_has_no_values_of_variables"
    )
    assert secret not in stream.getvalue()


def test_what_libraries_say_comes_in_our_form() -> None:
    stream = configured()
    logging.getLogger("asyncio").warning("slow %s", "callback")
    logging.getLogger("asyncio").info("not this")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("old thing", UserWarning, stacklevel=1)
    first, second = records(stream)
    assert (first["event"], first["logger"], first["message"], first["level"]) == (
        "library_message",
        "asyncio",
        "slow callback",
        "warning",
    )
    assert "old thing" in second["message"]


def test_a_flood_is_one_line_and_a_count() -> None:
    clock = HandClock()
    stream = configured(clock)
    limited = logs.LimitedLogger(logs.get_logger("streamd.x"), clock, interval=10.0)
    for clock.time in (0.0, 1.0, 9.9, 10.0, 10.1):
        limited.warning("bad_packet", size=3)
    limited.warning("other")
    clock.time = 100.0
    limited.warning("bad_packet", size=4)
    assert [(r["event"], r.get("suppressed")) for r in records(stream)] == [
        ("bad_packet", None),
        ("bad_packet", 2),
        ("other", None),
        ("bad_packet", 1),
    ]


def test_what_was_counted_and_not_told_is_told_at_the_end() -> None:
    clock = HandClock()
    stream = configured(clock)
    limited = logs.LimitedLogger(logs.get_logger("streamd.x"), clock)
    limited.warning("a")
    limited.warning("a")
    limited.flush()
    limited.flush()
    assert [(r["event"], r.get("suppressed")) for r in records(stream)] == [("a", None), ("a", 1)]


def test_a_reader_that_is_gone_does_not_stop_the_daemon() -> None:
    stream = configured()
    stream.close()
    logs.get_logger("streamd.x").info("nobody hears this")
