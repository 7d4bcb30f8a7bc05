"""Real signals to a real process."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("lifecycle_program.py")


@contextmanager
def daemon(how: str, timeout: str = "60") -> Iterator[subprocess.Popen[str]]:
    """The program, up to the point where it is ready."""
    with subprocess.Popen(
        [sys.executable, str(PROGRAM), how, timeout],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert expect(process) == "READY\n"
            yield process
        finally:
            process.kill()


def expect(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def events(stderr: str) -> list[str]:
    return [json.loads(line)["event"] for line in stderr.splitlines()]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_drains_and_ends_with_0(number: signal.Signals) -> None:
    with daemon("drain") as process:
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out == "DRAINING\n"
    assert events(err) == ["started", "stopping"]
    assert json.loads(err.splitlines()[1])["reason"] == number.name


@pytest.mark.parametrize("how", ["hang", "stuck"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_second_signal_kills_at_once(how: str, number: signal.Signals) -> None:
    with daemon(how) as process:
        process.send_signal(signal.SIGTERM)
        assert expect(process) == "DRAINING\n"
        process.send_signal(number)
        assert process.wait(timeout=60) == -number


def test_a_drain_that_takes_too_long_is_given_up() -> None:
    with daemon("hang", "0.05") as process:
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert err.splitlines()[-1] == (
        "streamd receiver: not drained within shutdown_timeout (0.05 s); giving up"
    )
