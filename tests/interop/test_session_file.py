"""`streamd sender --sdp`: there before the first packet, right, and enough for a late player."""

import asyncio
import itertools
from pathlib import Path

import pytest
from interop_stream import free_port

from streamd.cli import main
from streamd.session.sdp import description
from streamd.stack.process import DaemonProcess
from streamd.wire.payload.vp9 import Vp9
from streamd.wire.rtp import parse_rtp_fast


def test_what_it_says() -> None:
    text = description("h264", ("192.0.2.9", 5004), fps=25, muxed=True)
    assert text.split("\r\n") == [
        "v=0",
        "o=- 0 0 IN IP4 192.0.2.9",
        "s=streamd",
        "c=IN IP4 192.0.2.9",
        "t=0 0",
        "m=video 5004 RTP/AVP 97",
        "a=rtpmap:97 H264/90000",
        "a=framerate:25",
        "a=extmap:4 http://www.webrtc.org/experiments/rtp-hdrext/abs-capture-time",
        "a=fmtp:97 packetization-mode=1",
        "a=rtcp-mux",
        "a=recvonly",
        "",
    ]
    assert "c=IN IP6 2001:db8::1\r\n" in description("vp8", ("2001:db8::1", 1), fps=30, muxed=False)
    scoped = description("vp8", ("fe80::1%eth0", 1, 0, 2), fps=30, muxed=False)
    assert "c=IN IP6 fe80::1\r\n" in scoped


@pytest.mark.parametrize("words", [["--source", "synthetic"], ["--profile", "bw-tool"]])
def test_a_stream_nobody_else_can_read_has_none(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sdp = str(tmp_path / "s.sdp")
    assert main(["sender", "--peer", "127.0.0.1:9", "--sdp", sdp, *words]) == 78
    assert "sdp: only VP9, VP8 and H.264" in capsys.readouterr().err


async def _watch(folder: Path) -> tuple[list[float], list[float], list[bool], bool]:
    """Times of key frames and sender reports; whether the file was there at the first packet."""
    port = free_port()
    sdp = folder / "s.sdp"
    loop = asyncio.get_running_loop()
    keys: list[float] = []
    reports: list[float] = []
    there: list[bool] = []
    done = asyncio.Event()

    class Media(asyncio.DatagramProtocol):
        def datagram_received(self, data: bytes, addr: object) -> None:
            there.append(sdp.is_file())
            if 192 <= data[1] <= 223:
                return
            fields = parse_rtp_fast(data, 0, len(data))
            part = Vp9().describe(data[fields[6] : fields[7]])
            if part.start and part.keyframe:
                keys.append(fields[3] / 90_000)
                if len(keys) == 4:
                    done.set()

    class Control(asyncio.DatagramProtocol):
        def datagram_received(self, data: bytes, addr: object) -> None:
            assert data[1] == 200
            reports.append(0.0)

    first, _ = await loop.create_datagram_endpoint(Media, ("127.0.0.1", port))
    second, _ = await loop.create_datagram_endpoint(Control, ("127.0.0.1", port + 1))
    args = ("--peer", f"127.0.0.1:{port}", "--sdp", str(sdp), "--rate", "500kbps")
    sender = DaemonProcess("sender", (*args, "--metrics-port", "off"), folder / "s.json")
    try:
        await sender.start()
        await asyncio.wait_for(done.wait(), 30)
        code = await sender.stop()
    finally:
        await sender.kill()
        first.close()
        second.close()
    assert code == 0
    kept = sender.result()["tx_bps"] == pytest.approx(520_000, rel=0.1)
    return keys, reports, there, kept


def test_a_fixed_rate_needs_nobody_and_has_a_key_frame_every_two_seconds(tmp_path: Path) -> None:
    keys, reports, there, kept = asyncio.run(_watch(tmp_path))
    gaps = [after - before for before, after in itertools.pairwise(keys)]
    assert all(0 < gap <= 2.1 for gap in gaps)
    assert len(reports) >= 4  # one a second, to the port above
    assert all(there)
    assert kept
