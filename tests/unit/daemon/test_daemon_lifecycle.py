"""The life of a daemon inside this process: exit codes, readiness, crashes, notifications."""

import asyncio
import gc
import json
import logging
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from streamd.config.model import ReceiverConfig
from streamd.daemon.lifecycle import Lifecycle, Readiness, run_daemon
from streamd.daemon.notify import Notifier
from streamd.errors import ConfigError, StartupError, StreamdError, TransportError

Main = Callable[[Lifecycle], Awaitable[None]]


@pytest.fixture(autouse=True)
def _restore_process() -> Iterator[None]:
    root = logging.getLogger()
    before = (root.level, list(root.handlers))
    yield
    logging.captureWarnings(False)
    root.setLevel(before[0])
    root.handlers[:] = before[1]
    structlog.contextvars.clear_contextvars()
    structlog.reset_defaults()
    gc.unfreeze()


def config(**values: Any) -> ReceiverConfig:
    return ReceiverConfig(**{"metrics_port": None, "log_format": "json", **values})


def log_of(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


async def ask(life: Lifecycle, path: str) -> tuple[int, str]:
    """A page of the daemon's own server, at the address its log line named."""
    assert life.http_address is not None
    reader, writer = await asyncio.open_connection(*life.http_address)
    writer.write(f"GET {path} HTTP/1.0\r\n\r\n".encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return int(head.split()[1]), body.decode()


def test_a_normal_end_is_0(capsys: pytest.CaptureFixture[str]) -> None:
    async def main(life: Lifecycle) -> None:
        life.started(listen="127.0.0.1:5")
        life.request_stop("end of source")
        life.request_stop("too late to be a reason")
        await life.stopping.wait()

    assert run_daemon(main, config(seed=7)) == 0
    started, stopping = log_of(capsys)
    assert (started["event"], started["listen"], started["seed"]) == ("started", "127.0.0.1:5", 7)
    assert (started["role"], started["pid"]) == ("receiver", os.getpid())
    assert (stopping["event"], stopping["reason"]) == ("stopping", "end of source")


def test_readiness_follows_the_life(capsys: pytest.CaptureFixture[str]) -> None:
    answers: list[tuple[int, str]] = []

    async def main(life: Lifecycle) -> None:
        life.readiness.wait_for("media")
        answers.append(await ask(life, "/-/ready"))
        life.started()
        answers.append(await ask(life, "/-/ready"))
        life.readiness.have("media")
        answers.append(await ask(life, "/-/ready"))
        os.kill(os.getpid(), signal.SIGTERM)
        await life.stopping.wait()
        answers.append(await ask(life, "/-/ready"))
        answers.append(await ask(life, "/-/healthy"))
        answers.append(await ask(life, "/config"))

    assert run_daemon(main, config(metrics_port=0)) == 0
    config_text = answers.pop()
    assert answers == [
        (503, "not ready:\nstarting\nmedia\n"),
        (503, "not ready:\nmedia\n"),
        (200, "ready\n"),
        (503, "not ready:\nstopping\n"),
        (200, "healthy\n"),
    ]
    assert 'role = "receiver"\n' in config_text[1]
    started = log_of(capsys)[0]
    assert started["http"].startswith("127.0.0.1:")
    assert not started["http"].endswith(":0")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StartupError("no such device"), 3),
        (ConfigError("no such file"), 78),
        (TransportError("socket gone"), 1),
    ],
)
def test_an_error_on_purpose_is_one_line_and_its_code(
    error: StreamdError, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    async def main(life: Lifecycle) -> None:
        raise error

    assert run_daemon(main, config()) == code
    assert capsys.readouterr().err == f"streamd receiver: {error}\n"


async def crash_in_main(life: Lifecycle) -> None:
    raise ZeroDivisionError("a bug")


async def crash_in_a_task(life: Lifecycle) -> None:
    life.spawn(crash_in_main(life), "broken")
    await asyncio.Event().wait()


async def crash_in_a_callback(life: Lifecycle) -> None:
    def broken() -> None:
        raise ZeroDivisionError("a bug")

    asyncio.get_running_loop().call_soon(broken)
    await asyncio.Event().wait()


async def crash_beside_an_error_on_purpose(life: Lifecycle) -> None:
    async def fails() -> None:
        raise StartupError("hides nothing")

    life.spawn(fails(), "fails")
    life.spawn(crash_in_main(life), "broken")
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    "main",
    [crash_in_main, crash_in_a_task, crash_in_a_callback, crash_beside_an_error_on_purpose],
)
def test_a_bug_is_one_critical_line_and_1(main: Main, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_daemon(main, config()) == 1
    (record,) = log_of(capsys)
    assert (record["event"], record["level"]) == ("unhandled_exception", "critical")
    assert record["exception"][0]["exc_type"] == "ZeroDivisionError"
    assert record["exception"][0]["exc_value"] == "a bug"


def test_a_port_in_use_is_3(capsys: pytest.CaptureFixture[str]) -> None:
    async def main(life: Lifecycle) -> None:
        raise AssertionError("must not be reached")

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run_daemon(main, config(metrics_port=port)) == 3
    line = capsys.readouterr().err
    assert line.startswith(f"streamd receiver: HTTP endpoints: cannot bind 127.0.0.1:{port}: ")
    assert line.count("\n") == 1


def test_it_stops_by_itself_after_the_duration_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def main(life: Lifecycle) -> None:
        await life.stopping.wait()

    assert run_daemon(main, config(duration=0.01)) == 0
    assert [record["reason"] for record in log_of(capsys)] == ["duration"]


def test_tasks_end_with_main() -> None:
    ended: list[str] = []

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("forever")

    async def main(life: Lifecycle) -> None:
        life.spawn(forever(), "forever")
        await asyncio.sleep(0)

    assert run_daemon(main, config()) == 0
    assert ended == ["forever"]


def test_signal_handlers_are_given_back() -> None:
    before = [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)]

    async def main(life: Lifecycle) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        await life.stopping.wait()

    assert run_daemon(main, config()) == 0
    assert [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)] == before


def test_random_numbers_depend_on_seed_and_name_only() -> None:
    drawn: list[float] = []

    async def main(life: Lifecycle) -> None:
        drawn.extend(life.rng(name).random() for name in ("ssrc", "loss", "ssrc"))

    assert run_daemon(main, config(seed=1)) == 0
    assert run_daemon(main, config(seed=1)) == 0
    assert run_daemon(main, config(seed=2)) == 0
    assert drawn[0] == drawn[2] == drawn[3] != drawn[1]
    assert drawn[6] not in drawn[:6]


def test_without_a_seed_each_run_differs() -> None:
    seeds: list[int] = []

    async def main(life: Lifecycle) -> None:
        seeds.append(life.seed)

    assert run_daemon(main, config()) == 0
    assert run_daemon(main, config()) == 0
    assert seeds[0] != seeds[1]


def test_readiness_lists_what_is_missing_in_order() -> None:
    readiness = Readiness("b", "a")
    readiness.wait_for("c")
    readiness.have("a")
    readiness.have("never asked for")
    assert readiness.missing() == ["b", "c"]


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    """The service manager's end of the notification socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.bind(str(tmp_path / "notify"))
        channel.settimeout(60)
        yield channel


def test_the_service_manager_is_told(
    manager: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", manager.getsockname())

    async def main(life: Lifecycle) -> None:
        life.started()
        life.status("5 Mbps\nRTT 20 ms")
        life.request_stop("test")

    assert run_daemon(main, config()) == 0
    told = [manager.recv(100).decode() for _ in range(3)]
    assert told == ["READY=1", "STATUS=5 Mbps RTT 20 ms", "STOPPING=1"]


def test_the_watchdog_is_fed_from_the_loop_whose_lateness_is_measured(
    manager: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", manager.getsockname())
    monkeypatch.setenv("WATCHDOG_USEC", "20000")

    async def main(life: Lifecycle) -> None:
        loop = asyncio.get_running_loop()
        manager.setblocking(False)
        assert await loop.sock_recv(manager, 100) == b"WATCHDOG=1"
        lags = life.registry.get_sample_value("streamd_event_loop_lag_seconds_count")
        assert lags is not None
        assert lags >= 1

    assert run_daemon(main, config()) == 0


def test_an_abstract_socket_is_understood() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.bind(f"\0streamd-test-{os.getpid()}")
        channel.settimeout(60)
        Notifier({"NOTIFY_SOCKET": f"@streamd-test-{os.getpid()}"}).ready()
        assert channel.recv(100) == b"READY=1"


def test_no_manager_or_one_that_is_gone_is_no_trouble(tmp_path: Path) -> None:
    Notifier({}).ready()
    Notifier({"NOTIFY_SOCKET": str(tmp_path / "gone")}).stopping()


@pytest.mark.parametrize(
    ("environ", "interval"),
    [
        ({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "2000000"}, 1.0),
        ({"WATCHDOG_USEC": "2000000"}, None),
        ({"NOTIFY_SOCKET": "/x"}, None),
        ({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "soon"}, None),
        ({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "0"}, None),
    ],
)
def test_how_often_the_watchdog_wants_news(environ: dict[str, str], interval: float | None) -> None:
    assert Notifier(environ).watchdog_interval == interval
