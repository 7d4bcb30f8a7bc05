"""Whole files: the good ones load, the bad ones say everything that is wrong, word for word."""

import re
from pathlib import Path

import pytest

from streamd.cli.arguments import file_role
from streamd.config.load import load
from streamd.config.model import ROLES, BottleneckConfig, DaemonConfig, SenderConfig
from streamd.config.show import as_toml, show
from streamd.errors import ConfigError

DATA = Path(__file__).parent / "testdata"
GOOD = sorted((DATA / "good").glob("*.toml"))
BAD = sorted((DATA / "bad").glob("*.toml"))
SHIPPED = sorted((Path(__file__).parents[3] / "deploy" / "config").glob("*.toml"))


def role_of(path: Path) -> str:
    """The daemon a test file is tried with: its own, or the sender."""
    return path.stem if path.stem in ROLES else path.stem.rpartition("_")[2]


def effective(config: DaemonConfig) -> list[object]:
    """Everything a daemon goes by, whether it was written or is a default."""
    plain = config.model_dump(exclude={"cc", "queues"})
    if isinstance(config, SenderConfig):
        return [plain, config.controller_choice()]
    if isinstance(config, BottleneckConfig):
        return [plain, config.queue_choice("uplink"), config.queue_choice("downlink")]
    return [plain]


@pytest.mark.parametrize("path", GOOD + SHIPPED, ids=lambda path: path.stem)
def test_good_files_load_and_what_is_shown_loads_to_the_same(path: Path, tmp_path: Path) -> None:
    model = ROLES[role_of(path)]
    loaded = load(model, file=path)
    again = tmp_path / "again.toml"
    for text in (show(loaded), as_toml(loaded.config)):
        again.write_text(text)
        assert effective(load(model, file=again).config) == effective(loaded.config)


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_bad_files_say_what_is_wrong(path: Path) -> None:
    wanted = "bottleneck" if 'role = "bottleneck"' in path.read_text() else "sender"
    with pytest.raises(ConfigError) as caught:
        load(ROLES[wanted], file=path)
    text = str(caught.value).replace(str(path), "FILE")
    # Which plug-ins there are is not what this is about.
    text = re.sub(r"installed: .*", "installed: ...", text)
    assert text == path.with_suffix(".txt").read_text().rstrip("\n")
    assert caught.value.exit_code == 78


def test_the_variables_of_image_and_stack_are_understood() -> None:
    root = Path(__file__).parents[3]
    text = (root / "Dockerfile").read_text() + (root / "docker-compose.yml").read_text()
    pairs = re.findall(r"^ *(STREAMD_\w+)[:=] *(\S+)", text, re.MULTILINE)
    environ = {name: value.strip('"') for name, value in pairs}
    assert {"STREAMD_REVISION", "STREAMD_UPLINK", "STREAMD_LOOP"} <= set(environ)
    for model in ROLES.values():
        load(model, environ=environ | {"STREAMD_PEER": "receiver:5004"})


def test_there_are_files_to_test() -> None:
    assert len(GOOD) >= 4
    assert len(BAD) >= 15
    assert [path.stem for path in SHIPPED] == ["bottleneck", "receiver", "sender"]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "none.toml"
    with pytest.raises(ConfigError) as caught:
        load(ROLES["sender"], file=path)
    assert str(caught.value) == f"{path}: cannot be read: No such file or directory"


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(ROLES["sender"], file=tmp_path)
    assert str(caught.value) == f"{tmp_path}: cannot be read: Is a directory"


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "video.toml"
    path.write_bytes(b"x = 1\n\xff\xfe")
    with pytest.raises(ConfigError) as caught:
        load(ROLES["sender"], file=path)
    assert str(caught.value) == f"{path}: not UTF-8 text (byte 6)"


def test_a_file_that_is_far_too_large(tmp_path: Path) -> None:
    path = tmp_path / "large.toml"
    path.write_bytes(b"#" * 1_000_001)
    with pytest.raises(ConfigError) as caught:
        load(ROLES["sender"], file=path)
    assert str(caught.value) == f"{path}: larger than 1000000 bytes: not a configuration file"


@pytest.mark.parametrize(
    ("text", "role"),
    [
        ('role = "receiver"\n', "receiver"),
        ("fps = 30\n", "sender"),
        ('listen = ":1"\ndecode = false\n', "receiver"),
        ('uplink = "lte"\ndelay = 1\n', "bottleneck"),
        ("[queue.droptail]\n", "bottleneck"),
        ("not toml", "sender"),
    ],
)
def test_a_file_shows_which_daemon_it_is_for(tmp_path: Path, text: str, role: str) -> None:
    path = tmp_path / "some.toml"
    path.write_text(text)
    assert file_role(path) == role
