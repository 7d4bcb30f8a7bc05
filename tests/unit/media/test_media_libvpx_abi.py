from pathlib import Path
from typing import Any

import pytest

from streamd.errors import StartupError
from streamd.media import libvpx_abi as abi
from streamd.media.libvpx_abi import Config


@pytest.mark.parametrize("codec", ["vp9", "vp8"])
def test_the_bundled_library_passes_the_self_check(codec: str) -> None:
    checked = abi.open_abi(codec)
    assert checked.codec == codec
    assert 0 < checked.abi <= abi.HIGHEST_ABI
    assert checked.version.startswith("v1.")
    assert abi.open_abi(codec) is checked


def test_the_wheel_comes_before_the_system() -> None:
    names = abi.candidates()
    system = names.index(abi.SYSTEM_NAMES[0])
    assert all(Path(name).exists() for name in names[:system])
    assert names[system:] == list(abi.SYSTEM_NAMES)


def test_every_library_tried_is_named_with_its_reason(tmp_path: Path) -> None:
    text = tmp_path / "libvpx.so"
    text.write_text("this is text and no library at all; " * 100)
    with pytest.raises(StartupError) as caught:
        abi.open_abi_from("vp9", [str(tmp_path / "absent.so"), str(text), "libc.so.6"])
    message = str(caught.value)
    assert message.startswith("no usable libvpx for the vp9 encoder; tried: ")
    assert f"{tmp_path}/absent.so (not found)" in message
    assert "invalid ELF header" in message
    assert "libc.so.6 (not libvpx" in message
    assert "\n" not in message


def test_nothing_to_try_is_said_too() -> None:
    with pytest.raises(StartupError, match="tried: nothing"):
        abi.open_abi_from("vp8", [])


def _bundled() -> str:
    return abi.open_abi("vp9").path


def test_another_layout_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(abi, "CONFIG_BYTES", 500)
    with pytest.raises(StartupError, match="configuration of 504 bytes, expected 500"):
        abi.open_abi_from("vp9", [_bundled()])


def test_a_default_at_another_offset_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(abi.DEFAULTS, Config.TARGET_KBPS, 257)
    with pytest.raises(StartupError, match="holds 256 at offset 112, expected 257"):
        abi.open_abi_from("vp9", [_bundled()])


def test_an_unknown_abi_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(abi, "HIGHEST_ABI", 3)
    with pytest.raises(StartupError, match="no ABI number from 3 down to 1 accepted"):
        abi.open_abi_from("vp9", [_bundled()])


@pytest.mark.parametrize(
    ("field", "elsewhere", "fact"),
    [
        ("PTS", abi.Packet.SIZE, "pts"),
        ("WIDTH", abi.Packet.SIZE, "width"),
        ("KIND", abi.Packet.SIZE, "kind"),
        ("FLAGS", abi.Packet.KIND, "key frame"),
    ],
)
def test_a_packet_of_another_layout_is_refused(
    field: str, elsewhere: int, fact: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(abi.Packet, field, elsewhere)
    with pytest.raises(StartupError, match=f"the test packet has {fact}"):
        abi.open_abi_from("vp9", [_bundled()])


def test_a_library_without_the_codec_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(abi.INTERFACES, "vp9", "vpx_codec_vp10_cx")
    with pytest.raises(StartupError, match="built without vp9"):
        abi.open_abi_from("vp9", [_bundled()])


def test_a_probe_leaves_spare_room_untouched() -> None:
    checked = abi.open_abi("vp8")
    buffer: Any = abi.default_config(checked.lib, checked.interface, 0x77)
    assert buffer.raw[abi.CONFIG_BYTES :] == b"\x77" * abi.SPARE_BYTES
