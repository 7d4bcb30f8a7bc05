"""Layers of settings: which one counts, where each came from, and what is refused."""

from pathlib import Path

import pytest

from streamd.cc.fixed import FixedConfig
from streamd.config.load import load
from streamd.config.model import BottleneckConfig, ReceiverConfig, SenderConfig
from streamd.config.units import Capacity, HostPort
from streamd.ecn import Ecn
from streamd.errors import ConfigError
from streamd.link.droptail import DropTailConfig

PEER = ("peer", "192.0.2.1:5004", "--peer")


def write(folder: Path, text: str) -> Path:
    path = folder / "config.toml"
    path.write_text(text)
    return path


def test_defaults_alone() -> None:
    loaded = load(ReceiverConfig)
    assert loaded.config == ReceiverConfig()
    assert loaded.config.listen == HostPort("", 5004)
    assert loaded.origins == {}


def test_each_layer_overrides_the_one_below(tmp_path: Path) -> None:
    file = write(tmp_path, 'fps = 10\nmin_rate = "100kbps"\nmax_rate = "1Mbps"\nmss = 1000\n')
    loaded = load(
        SenderConfig,
        file=file,
        environ={"STREAMD_MAX_RATE": "2Mbps", "STREAMD_MSS": "900", "OTHER": "x"},
        flags=[PEER, ("mss", "800", "--mss")],
    )
    config = loaded.config
    assert (config.fps, config.min_rate, config.max_rate, config.mss) == (10.0, 1e5, 2e6, 800)
    assert config.keyframe_interval == 0.1
    assert loaded.origins == {
        "fps": f"{file}:1",
        "min_rate": f"{file}:2",
        "max_rate": "environment STREAMD_MAX_RATE",
        "mss": "command line --mss",
        "peer": "command line --peer",
    }


def test_units_are_understood_in_every_layer(tmp_path: Path) -> None:
    file = write(tmp_path, 'report_interval = "500ms"\nloss = "1%"\nuplink = "5Mbps"\n')
    config = load(
        BottleneckConfig,
        file=file,
        environ={"STREAMD_DOWNLINK": "lte", "STREAMD_RECEIVE_BUFFER": "1MiB"},
        flags=[PEER, ("shutdown_timeout", "1.5", "--shutdown-timeout")],
    ).config
    assert config.report_interval == 0.5
    assert config.loss == 0.01
    assert config.uplink == Capacity(rate_bps=5e6)
    assert config.downlink == Capacity(trace="lte")
    assert config.receive_buffer == 1048576
    assert config.shutdown_timeout == 1.5


@pytest.mark.parametrize(
    ("text", "seconds"), [("10", 0.01), ("10.5", 0.0105), ("10ms", 0.01), ("0.01s", 0.01)]
)
def test_a_bare_delay_is_in_milliseconds_as_in_mm_delay(text: str, seconds: float) -> None:
    config = load(BottleneckConfig, flags=[PEER, ("delay", text, "--delay")]).config
    assert config.delay == pytest.approx(seconds, rel=1e-12)


def test_a_bare_delay_means_the_same_in_a_file(tmp_path: Path) -> None:
    config = load(BottleneckConfig, file=write(tmp_path, "delay = 10\n"), flags=[PEER]).config
    assert config.delay == 0.01


def test_a_delay_given_in_code_is_in_seconds() -> None:
    assert BottleneckConfig(peer=HostPort("a", 1), delay=0.01).delay == 0.01


def test_an_environment_shared_by_a_stack_is_no_trouble() -> None:
    environ = {
        "STREAMD_CONTROLLER": "fixed",
        "STREAMD_CC__FIXED__RATE_BPS": "3Mbps",
        "STREAMD_QUEUE": "droptail",
        "STREAMD_QUEUE__DROPTAIL__PACKETS": "50",
        "STREAMD_CODEC": "vp8",
        "STREAMD_LOG_LEVEL": "debug",
        "STREAMD_VECTORS": "/elsewhere",
        "STREAMD_FPS": "",
    }
    sender = load(SenderConfig, environ=environ, flags=[PEER]).config
    receiver = load(ReceiverConfig, environ=environ).config
    bottleneck = load(BottleneckConfig, environ=environ, flags=[PEER]).config
    assert sender.controller_choice()[1] == FixedConfig(rate_bps=3e6)
    assert sender.fps == 30.0
    assert receiver.codec == "vp8"
    assert bottleneck.queue_choice("uplink")[1] == DropTailConfig(packets=50)
    assert {c.log_level for c in (sender, receiver, bottleneck)} == {"debug"}


def test_an_unknown_variable_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        load(ReceiverConfig, environ={"STREAMD_LISTENN": ":1", "STREAMD_CODEX": "vp9"})
    assert str(caught.value) == (
        "environment STREAMD_CODEX: unknown variable; did you mean STREAMD_CODEC?\n"
        "environment STREAMD_LISTENN: unknown variable; did you mean STREAMD_LISTEN?"
    )


def test_variables_an_orchestrator_sets_for_services_are_left_alone() -> None:
    environ = {
        "STREAMD_SENDER_SERVICE_HOST": "10.0.0.1",
        "STREAMD_SENDER_SERVICE_PORT_HTTP": "9464",
        "STREAMD_SENDER_PORT": "tcp://10.0.0.1:9464",
        "STREAMD_SENDER_PORT_9464_TCP_ADDR": "10.0.0.1",
    }
    assert load(ReceiverConfig, environ=environ).origins == {}


def test_the_queue_can_be_named_as_a_value_or_in_its_table(tmp_path: Path) -> None:
    plain = load(BottleneckConfig, flags=[PEER, ("queue", "droptail", "--queue")]).config
    table = load(
        BottleneckConfig, file=write(tmp_path, '[queue]\nname = "droptail"\n'), flags=[PEER]
    ).config
    assert plain.queue == table.queue == "droptail"


def test_a_queue_argument_belongs_to_the_queue_chosen(tmp_path: Path) -> None:
    argument = ("queue..bytes", "150kB", "--queue-arg")
    chosen = [PEER, ("queue", "droptail", "--queue"), argument]
    loaded = load(BottleneckConfig, flags=chosen)
    assert loaded.config.queue_choice("uplink")[1] == DropTailConfig(bytes=150_000)
    assert loaded.origins["queue.droptail.bytes"] == "command line --queue-arg"
    default = load(BottleneckConfig, flags=[PEER, argument]).config
    assert default.queue_choice("uplink")[1].bytes == 150_000
    file = write(tmp_path, '[queue]\nname = "droptail"\n[queue.droptail]\npackets = 9\n')
    both = load(BottleneckConfig, file=file, flags=[PEER, argument]).config
    assert both.queue_choice("downlink")[1] == DropTailConfig(packets=9, bytes=150_000)


def test_the_downlink_can_have_a_queue_of_its_own() -> None:
    config = load(
        BottleneckConfig,
        flags=[
            PEER,
            ("downlink_queue", "droptail", "--downlink-queue"),
            ("queue.droptail.packets", "7", "--queue.droptail.packets"),
        ],
    ).config
    assert config.queue_choice("uplink")[0].name == "dualpi2"
    assert config.queue_choice("downlink")[1] == DropTailConfig(packets=7)


def test_a_fixed_rate_takes_the_place_of_the_controller() -> None:
    config = load(SenderConfig, flags=[PEER, ("rate", "3Mbps", "--rate")]).config
    spec, options = config.controller_choice()
    assert (spec.name, options) == ("fixed", FixedConfig(rate_bps=3e6, mss_bytes=1200))


@pytest.mark.parametrize(
    ("mode", "codepoint"), [("notect", Ecn.NOT_ECT), ("ect0", Ecn.ECT0), ("ect1", Ecn.ECT1)]
)
def test_the_codepoint_asked_for(mode: str, codepoint: Ecn) -> None:
    flags = [PEER, ("controller", "fixed", "--controller"), ("ecn", mode, "--ecn")]
    assert load(SenderConfig, flags=flags).config.ecn_codepoint() is codepoint


def test_the_start_rate_lies_between_the_others() -> None:
    def start(**rates: str) -> float:
        flags = [(key, value, key) for key, value in rates.items()]
        return load(SenderConfig, flags=[PEER, *flags]).config.limits().start_bps

    assert start() == 1_000_000.0
    assert start(max_rate="500kbps") == 500_000.0
    assert start(min_rate="2Mbps") == 2_000_000.0
    assert start(start_rate="3Mbps") == 3_000_000.0


def test_where_to_bind_follows_the_peers_family() -> None:
    config = load(SenderConfig, flags=[PEER]).config
    assert config.local_address(("192.0.2.1", 5004)) == ("0.0.0.0", 0)
    assert config.local_address(("2001:db8::1", 5004, 0, 0)) == ("::", 0)
    own = load(SenderConfig, flags=[PEER, ("listen", "127.0.0.1:9", "--listen")]).config
    assert own.local_address(("192.0.2.1", 5004)) == ("127.0.0.1", 9)


def test_everything_needed_that_is_missing_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        load(SenderConfig)
    assert str(caught.value) == "peer is needed: --peer, STREAMD_PEER or peer = in a file"


def test_metrics_can_be_switched_off() -> None:
    flags = [("metrics_port", "off", "--metrics-port")]
    assert load(ReceiverConfig, flags=flags).config.metrics_port is None


def test_key_frame_causes_are_a_list() -> None:
    def causes(text: str) -> tuple[str, ...]:
        flags = [PEER, ("keyframe_on", text, "--keyframe-on")]
        return load(SenderConfig, flags=flags).config.keyframe_on

    assert causes("loss, target") == ("loss", "target")
    assert causes("none") == ()


def test_a_configuration_cannot_be_changed() -> None:
    config = ReceiverConfig()
    with pytest.raises(ValueError, match="frozen"):
        setattr(config, "codec", "vp8")  # noqa: B010  the type checker knows it too
