"""What cannot start says why in one line, and ends with the right exit code."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e_stage import HOME, run_cli

from streamd.cli import main
from streamd.media import libvpx_abi, pyav_codec

USAGE, STARTUP, CONFIG = 2, 3, 78
PEER = ("--peer", f"{HOME}:9")
QUIET = ("--metrics-port", "off")


@pytest.fixture
def taken() -> Iterator[str]:
    """A UDP and a TCP address, HOST:PORT, that are in use."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tcp,
    ):
        udp.bind((HOME, 0))
        tcp.bind(udp.getsockname())
        tcp.listen()
        yield "{}:{}".format(*udp.getsockname())


Refused = Callable[..., tuple[int, str]]


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Refused:
    """Runs a command that is to fail: exit code and the one line that was said."""

    def run(*args: str) -> tuple[int, str]:
        status = main(args)
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == 1, err
        assert err.startswith(f"streamd {args[0]}: ")
        return status, err.removeprefix(f"streamd {args[0]}: ").rstrip("\n")

    return run


@pytest.mark.parametrize(
    "command",
    [("receiver",), ("sender", *PEER, "--source", "synthetic"), ("bottleneck", *PEER)],
    ids=lambda command: str(command[0]),
)
def test_udp_port_in_use(refused: Refused, command: tuple[str, ...], taken: str) -> None:
    status, said = refused(*command, "--listen", taken, *QUIET)
    assert (status, said) == (STARTUP, f"cannot open UDP {taken}: Address already in use")


def test_http_port_in_use(refused: Refused, taken: str) -> None:
    port = taken.rpartition(":")[2]
    status, said = refused("receiver", "--listen", f"{HOME}:0", "--metrics-port", port)
    assert status == STARTUP
    assert said.startswith(f"HTTP endpoints: cannot bind {taken}: ")


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("missing.mp4", None, "cannot open {}: No such file or directory"),
        ("text.mp4", b"no video at all\n" * 50, "cannot open {}: Invalid data found"),
        ("noise.y4m", b"YUV4MPEG2 W-5 H0 F30:1\nFRAME\n", "cannot open {}: "),
        ("sound.wav", b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0"
         b"\x10\0data\0\0\0\0", "cannot read video from {}: it has no video stream"),
        ("empty.mkv", b"", "cannot open {}: "),
    ],
)  # fmt: skip
def test_video_file_that_cannot_be_shown(
    refused: Refused, tmp_path: Path, name: str, content: bytes | None, reason: str
) -> None:
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    status, said = refused("sender", *PEER, *QUIET, "--source", str(file))
    assert status == STARTUP
    assert said.startswith(reason.format(file))


def test_video_file_without_a_sound_picture(refused: Refused, tmp_path: Path) -> None:
    """A header that promises pictures, and nothing that decodes behind it."""
    file = tmp_path / "cut.y4m"
    file.write_bytes(b"YUV4MPEG2 W64 H64 F30:1 C420jpeg\nFRAME\n" + bytes(100))
    status, said = refused("sender", *PEER, *QUIET, "--source", str(file))
    assert status == STARTUP
    assert said.startswith(f"cannot read video from {file}: ")


def test_directory_for_a_file(refused: Refused, tmp_path: Path) -> None:
    status, said = refused("sender", *PEER, *QUIET, "--source", str(tmp_path))
    assert (status, said) == (STARTUP, f"cannot open {tmp_path}: Is a directory")


@pytest.mark.parametrize("codec", ["vp9", "vp8"])
def test_codec_that_is_missing(
    refused: Refused, monkeypatch: pytest.MonkeyPatch, codec: str
) -> None:
    monkeypatch.setattr(libvpx_abi, "candidates", lambda: ["/nowhere/libvpx.so"])
    monkeypatch.setattr(libvpx_abi, "_open_default", libvpx_abi._open_default.__wrapped__)
    status, said = refused("sender", *PEER, *QUIET, "--codec", codec)
    assert status == STARTUP
    assert said == (
        f"no usable libvpx for the {codec} encoder; tried: /nowhere/libvpx.so (not found)"
    )


def test_receiver_without_a_decoder(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyav_codec, "DECODERS", ("vp8",))
    status, said = refused("receiver", "--listen", f"{HOME}:0", *QUIET)
    assert (status, said) == (STARTUP, "no vp9 decoder; there are vp8")


def test_host_that_has_no_address(refused: Refused) -> None:
    peer = ("--peer", "no-such-host.invalid:5004")
    status, said = refused("sender", *QUIET, *peer, "--source", "synthetic")
    assert status == STARTUP
    assert said.startswith("cannot resolve host 'no-such-host.invalid': ")


def test_unknown_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(("sender", *PEER, "--colour", "blue")) == USAGE
    assert "No such option: --colour" in capsys.readouterr().err


def test_configuration_file_with_faults(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "sender.toml"
    file.write_text('peer = "127.0.0.1:5004"\nrate = "12 parsecs"\nspeed = 3\n')
    assert main(("sender", str(file))) == CONFIG
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(f"streamd sender: {file}:2: rate: ")
    assert second.startswith(f"streamd sender: {file}:3: unknown key speed")


def test_value_out_of_range(refused: Refused) -> None:
    status, said = refused("sender", *PEER, "--fps", "0")
    assert status == CONFIG
    assert said.startswith("command line --fps: fps: ")


@pytest.mark.parametrize(
    ("lines", "where"), [("0\n5\nseven\n", 3), ("0\n9\n4\n", 3), ("-1\n", 1), ("\n1\n", 1)]
)
def test_malformed_trace(refused: Refused, tmp_path: Path, lines: str, where: int) -> None:
    file = tmp_path / "bad.trace"
    file.write_text(lines)
    status, said = refused("bottleneck", *PEER, *QUIET, "--uplink", str(file))
    assert status == CONFIG
    assert said.startswith(f"{file}:{where}: ")


def test_trace_that_is_not_there(refused: Refused, tmp_path: Path) -> None:
    file = tmp_path / "none.trace"
    status, said = refused("bottleneck", *PEER, *QUIET, "--uplink", str(file))
    assert status == CONFIG
    assert str(file) in said


def test_result_file_that_cannot_be_written(refused: Refused, tmp_path: Path) -> None:
    file = tmp_path / "nowhere" / "result.json"
    status, said = refused("receiver", "--listen", f"{HOME}:0", *QUIET, "--json", str(file))
    assert status == STARTUP
    assert said == f"{file}: cannot be written: there is no folder {file.parent}"


def test_demo_of_no_time(refused: Refused) -> None:
    assert refused("demo", "--seconds", "0") == (CONFIG, "a demo of 0.0 s shows nothing")
    assert refused("demo", "--seconds", "soon")[0] == CONFIG


@pytest.mark.asyncio
async def test_refusals_as_processes_and_through_the_demo(tmp_path: Path) -> None:
    """The exit code is the process's; what a daemon of a demo says, the demo says."""
    trace = tmp_path / "bad.trace"
    trace.write_text("0\nx\n")
    film, out = tmp_path / "film.mp4", tmp_path / "nowhere" / "out.json"
    results = await asyncio.gather(
        run_cli("sender", *PEER, *QUIET, "--source", str(film)),
        run_cli("demo", "--json", str(out)),
        run_cli("demo", "--trace", str(trace)),
        run_cli("demo", "--source", str(film)),
    )
    assert [status for status, _, _ in results] == [STARTUP, STARTUP, CONFIG, STARTUP]
    missing = f"cannot open {film}: No such file or directory\n"
    assert results[0][2] == f"streamd sender: {missing}"
    assert results[1][2] == (
        f"streamd demo: {out}: cannot be written: there is no folder {out.parent}\n"
    )
    assert results[2][2].startswith(f"streamd demo: streamd bottleneck: {trace}:2: ")
    assert results[3][2] == f"streamd demo: streamd sender: {missing}"
    assert {out for _, out, _ in results} == {""}
