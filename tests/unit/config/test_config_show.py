"""The effective configuration as text, and the generated reference pages."""

from pathlib import Path

from streamd.config.load import load
from streamd.config.model import BottleneckConfig, SenderConfig
from streamd.config.reference import reference
from streamd.config.show import show
from streamd.observability.reference import reference as metrics_reference

DOCS = Path(__file__).parents[3] / "docs"


def test_every_value_is_shown_with_its_origin(tmp_path: Path) -> None:
    file = tmp_path / "b.toml"
    file.write_text('delay = 10\n[queue]\nname = "droptail"\n[queue.droptail]\npackets = 9\n')
    loaded = load(
        BottleneckConfig,
        file=file,
        environ={"STREAMD_LOSS": "1%"},
        flags=[("peer", "a:1", "--peer")],
    )
    lines = {
        line.split("  # ")[0].rstrip(): line.split("  # ")[-1] for line in show(loaded).splitlines()
    }
    assert lines['peer = "a:1"'] == "command line --peer"
    assert lines['delay = "10ms"'] == f"{file}:1"
    assert lines["loss = 0.01"] == "environment STREAMD_LOSS"
    assert lines['uplink = "12Mbps"'] == "default"
    assert lines["# seed is not set"] == "default"
    assert lines['name = "droptail"'] == f"{file}:3"
    assert lines["packets = 9"] == f"{file}:5"
    assert lines["# bytes is not set"] == "default"
    assert "[queue.dualpi2]" not in lines


def test_the_parameters_of_the_controller_in_use_are_shown() -> None:
    loaded = load(
        SenderConfig,
        flags=[("peer", "a:1", "--peer"), ("controller", "fixed", "--controller")],
    )
    assert show(loaded).rstrip().splitlines()[-3:] == [
        "[cc.fixed]",
        "rate_bps = 1000000.0                          # default",
        "mss_bytes = 1200                              # default",
    ]


def test_the_reference_of_the_configuration_is_current() -> None:
    assert (DOCS / "config.md").read_text() == reference(), "run make docs"


def test_the_reference_of_the_metrics_is_current() -> None:
    assert (DOCS / "metrics.md").read_text() == metrics_reference(), "run make docs"
