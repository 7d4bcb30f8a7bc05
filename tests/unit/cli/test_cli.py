"""The command line: what it hands on, what it says, how it ends."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import streamd.daemon.bottleneck
import streamd.daemon.receiver
import streamd.daemon.sender
import streamd.stack.demo
from streamd import __version__
from streamd.cli import main
from streamd.config.layers import flag_name
from streamd.config.model import ROLES, BottleneckConfig, SenderConfig, plain_fields
from streamd.config.units import HostPort
from streamd.errors import StartupError
from streamd.link.droptail import DropTailConfig
from streamd.stack.demo import DemoOptions


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was given to the daemons and the demo instead of running them."""
    given: list[Any] = []

    def run(config: object) -> int:
        given.append(config)
        return 5

    for module in (
        streamd.daemon.sender,
        streamd.daemon.receiver,
        streamd.daemon.bottleneck,
        streamd.stack.demo,
    ):
        monkeypatch.setattr(module, "run", run)
    return given


def test_a_daemon_gets_its_configuration_and_its_exit_code_is_ours(ran: list[Any]) -> None:
    arguments = ["--peer", "[::1]:9", "--fps", "25", "--loop", "--no-offload", "--json", "x.json"]
    assert main(["sender", *arguments]) == 5
    (config,) = ran
    assert isinstance(config, SenderConfig)
    assert config.peer == HostPort("::1", 9)
    assert (config.fps, config.loop, config.offload) == (25.0, True, False)
    assert config.json_file == Path("x.json")


def test_file_environment_and_flags_come_together(
    ran: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "b.toml"
    file.write_text('peer = "a:1"\ndelay = 5\n')
    monkeypatch.setenv("STREAMD_LOSS", "1%")
    arguments = ["--queue", "droptail", "--queue-arg", "packets=7", "--queue.droptail.bytes=9kB"]
    assert main(["bottleneck", str(file), *arguments, "--delay", "20"]) == 5
    (config,) = ran
    assert isinstance(config, BottleneckConfig)
    assert (config.peer, config.delay, config.loss) == (HostPort("a", 1), 0.02, 0.01)
    assert config.queue_choice("uplink")[1] == DropTailConfig(packets=7, bytes=9000)


def test_the_parameter_of_a_plugin_may_be_a_word_of_its_own(ran: list[Any]) -> None:
    flags = ["--cc.scream.queue-delay-target", "80ms", "--peer", "a:1"]
    assert main(["sender", *flags]) == 5
    assert ran[0].controller_choice()[1].queue_delay_target == 0.08


@pytest.mark.parametrize("role", list(ROLES))
def test_every_key_has_its_flag(role: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([role, "--help"]) == 0
    text = capsys.readouterr().out
    words = text.replace(",", " ").split()
    for key in plain_fields(ROLES[role]):
        if key != "role":
            assert flag_name(key) in words


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (
            ["sender"],
            78,
            "streamd sender: peer is needed: --peer, STREAMD_PEER or peer = in a file",
        ),
        (
            ["sender", "--peer", "x"],
            78,
            "streamd sender: command line --peer: peer: 'x' is not HOST:PORT with a port from 0 to"
            " 65535",
        ),
        (
            ["bottleneck", "--peer", "a:1", "--queue.dualpi2.nothing", "1"],
            78,
            "streamd bottleneck: command line --queue.dualpi2.nothing:"
            " unknown key queue.dualpi2.nothing",
        ),
        (
            ["sender", "--peer", "a:1", "--cc.scream.x"],
            2,
            "streamd sender: option --cc.scream.x needs a value",
        ),
        (
            ["receiver", "none.toml"],
            78,
            "streamd receiver: none.toml: cannot be read: No such file or directory",
        ),
        (["demo", "--loss", "x"], 78, "streamd demo: 'x' is not a ratio such as 0.01 or 1%"),
    ],
)
def test_a_mistake_is_one_clear_line(
    arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == code
    assert capsys.readouterr().err == said + "\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["sender", "--fpss", "1"],
        ["sender", "--fps"],
        ["bottleneck", "--queue-arg", "packets"],
        ["config", "check"],
        ["config", "check", "x.toml", "--role", "viewer"],
        ["health", "--url", "ftp://x"],
        ["health", "--timeout", "soon"],
    ],
)
def test_a_wrong_usage_ends_with_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert "Error: " in capsys.readouterr().err


def test_a_daemon_that_cannot_start_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(config: object) -> int:
        raise StartupError("no such device")

    monkeypatch.setattr(streamd.daemon.receiver, "run", run)
    assert main(["receiver"]) == 3
    assert capsys.readouterr().err == "streamd receiver: no such device\n"


def test_the_demo_gets_what_was_asked_for(ran: list[Any], tmp_path: Path) -> None:
    result = tmp_path / "x.json"
    arguments = ["--seconds", "1min", "--delay", "15", "--loss", "1%", "--json", str(result)]
    assert main(["demo", *arguments]) == 5
    assert main(["demo", "--queue", "droptail", "--queue-arg", "packets=9"]) == 5
    first, second = ran
    assert first == DemoOptions(seconds=60.0, delay_ms=15.0, loss=0.01, json_file=result)
    assert (second.queue, second.queue_args) == ("droptail", ("packets=9",))


def test_the_demo_as_it_is(ran: list[Any]) -> None:
    assert main(["demo"]) == 5
    assert ran == [DemoOptions()]


def test_config_check_says_for_whom(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "b.toml"
    file.write_text('peer = "a:1"\nuplink = "5Mbps"\n')
    assert main(["config", "check", str(file)]) == 0
    assert capsys.readouterr().out == f"{file}: ok (bottleneck)\n"
    assert main(["config", "check", str(file), "--role", "sender"]) == 78
    assert capsys.readouterr().err == f"streamd config: {file}:2: unknown key uplink\n"


def test_config_show_knows_the_files_role(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "b.toml"
    file.write_text('role = "bottleneck"\npeer = "a:1"\n')
    assert main(["config", "show", str(file), "--loss", "1%"]) == 0
    by_file = capsys.readouterr().out
    assert main(["config", "show", "bottleneck", str(file), "--loss", "1%"]) == 0
    assert capsys.readouterr().out == by_file
    assert "loss = 0.01                                   # command line --loss\n" in by_file


def test_plugins_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["queues"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert any(line.startswith("droptail ") and "(streamd " in line for line in listed)
    assert main(["queues", "droptail"]) == 0
    shown = capsys.readouterr().out
    assert "  packets = unset  (integer)\n      Most packets held.\n" in shown
    assert main(["controllers"]) == 0
    assert "fixed " in capsys.readouterr().out
    assert main(["controllers", "fixed"]) == 0
    assert "ecn modes: notect, ect0, ect1\n" in capsys.readouterr().out
    assert main(["controllers", "nosuch"]) == 78


@pytest.mark.parametrize("word", ["version", "--version"])
def test_version(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([word]) == 0
    assert capsys.readouterr().out == f"{__version__}\n"


@contextmanager
def answering(status: int, body: bytes) -> Iterator[str]:
    """The address of a server that gives one answer."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/-/ready"
        finally:
            server.shutdown()
            thread.join()


def test_health_is_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    with answering(200, b"ready\n") as url:
        assert main(["health", "--url", url]) == 0
    assert capsys.readouterr().out == "ready\n"
    with answering(503, b"not ready:\nmedia\n") as url:
        assert main(["health", "--url", url]) == 1
    assert capsys.readouterr().err == "not ready:\nmedia\n"


def test_health_of_what_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    with answering(200, b"") as url:
        pass
    assert main(["health", "--url", url]) == 1
    assert capsys.readouterr().err.startswith(f"streamd health: {url}: ")


def loaded_modules(code: str) -> set[str]:
    """Modules a fresh interpreter has after running `code`."""
    program = f"{code}\nimport sys; sys.stderr.write(' '.join(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(result.stderr.split())


def test_help_and_health_checks_do_not_load_what_they_do_not_need() -> None:
    heavy = {"av", "uvloop", "structlog", "prometheus_client", "asyncio", "streamd.config.model"}
    for arguments in (["--help"], ["version"], ["health", "--url", "http://127.0.0.1:1/"]):
        program = f"from streamd.cli import main; main({arguments})"
        assert not loaded_modules(program) & heavy


def test_importing_streamd_is_free() -> None:
    ours = {name for name in loaded_modules("import streamd") if name.startswith("streamd")}
    assert {name for name in ours if "editable" not in name} == {"streamd"}


def test_the_module_runs_as_a_program() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "streamd", "version"], capture_output=True, text=True, check=True
    )
    assert result.stdout == f"{__version__}\n"
