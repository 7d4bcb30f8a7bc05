"""Whole simulated runs: flows that share paths, what is counted, what is measured."""

from itertools import pairwise
from math import isnan
from pathlib import Path
from typing import Any

import pytest

from streamd.errors import ConfigError
from streamd.results.joined import FIGURES, LINK_KEYS, NOT_NUMBERS, RECEIVER_KEYS, SENDER_KEYS
from streamd.sim.scenario import Scenario
from streamd.sim.tables import SERIES
from streamd.sim.world import RunResult, simulate


def settings(**flow: Any) -> dict[str, Any]:
    """12 Mbit/s behind DualPI2, 20 ms round trip, one synthetic flow of 50 fps."""
    return {
        "name": "world",
        "duration": "5s",
        "paths": {
            "up": {"capacity": "12Mbps", "queue_options": {"packets": 100}, "delay": "10ms"},
            "down": {"delay": "10ms"},
        },
        "flows": [{"name": "video", "up": "up", "down": "down", "fps": 50, **flow}],
    }


def run(data: dict[str, Any], seed: int = 1) -> RunResult:
    return simulate(Scenario.model_validate(data), seed=seed)


def check_accounts(result: RunResult) -> None:
    """Whatever was sent is accounted for, frame by frame and packet by packet."""
    tables = result.tables()
    for number, (name, row) in enumerate(result.summary["flows"].items()):
        assert row["frames_encoded_count"] == row["frames_decoded_count"] + row["frames_lost_count"]
        frames = tables["frames"]
        mine = [n for n, flow in enumerate(frames["flow"]) if flow == number]
        assert len(mine) == row["frames_encoded_count"], name
        shown = sum(not isnan(frames["decoded_at"][n]) for n in mine)
        assert shown == row["frames_decoded_count"]
    for name, node in result.paths.items():
        number = list(result.paths).index(name)
        mine = [n for n, path in enumerate(tables["packets"]["path"]) if path == number]
        offered = sum(end.offered for end in node.ends)
        assert len(mine) + node.path.held_packets == offered
        dropped = sum(tables["packets"]["fate"][n] != "delivered" for n in mine)
        assert dropped == node.path.dropped_packets


def test_l4s_fills_the_link_with_a_short_queue() -> None:
    result = run({**settings(ecn="ect1"), "duration": "15s", "warmup": "5s"})
    row = result.summary["flows"]["video"]
    assert row["delivered_bps"] > 7_500_000
    assert row["queue_delay_p95_s"] < 0.004
    assert row["frames_encoded_count"] == 750
    assert row["frames_decoded_count"] == 750
    assert row["loss_ratio"] == 0.0
    assert row["warnings"] == []
    assert result.summary["paths"]["up"]["link_marks_count"] == row["link_marks_count"]
    check_accounts(result)


def test_the_keys_of_a_flow_are_those_of_a_chain_of_daemons() -> None:
    row = run({**settings(), "duration": "1s"}).summary["flows"]["video"]
    for key in (*SENDER_KEYS, *RECEIVER_KEYS, *LINK_KEYS, "ce_ratio", "frames_lost_count"):
        assert key in row, key
    assert "queue_delay_tool_p95_s" in row


def test_flows_share_a_path_and_come_and_go() -> None:
    data = settings(ecn="ect1")
    data["flows"].append({**data["flows"][0], "name": "late", "start": "2s", "stop": "4s"})
    data["flows"].append({**data["flows"][0], "name": "classic", "ecn": "notect", "start": "1s"})
    result = run(data)
    rows = result.summary["flows"]
    assert [rows[name]["frames_encoded_count"] for name in rows] == [250, 100, 200]
    assert [rows[name]["duration_s"] for name in rows] == pytest.approx([5.0, 2.0, 4.0])
    total = sum(row["delivered_bps"] * row["duration_s"] for row in rows.values())
    assert total < 5 * 12_000_000
    check_accounts(result)


def test_another_flow_elsewhere_changes_nothing() -> None:
    data = settings(size_variation="30%")
    data["paths"]["up"]["loss"] = "2%"
    alone = run(data).summary["flows"]["video"]
    data["paths"] |= {"else": {"capacity": "1Mbps"}, "back": {}}
    data["flows"].insert(0, {"name": "other", "up": "else", "down": "back", "source": "synthetic"})
    assert run(data).summary["flows"]["video"] == alone


def test_loss_is_counted_per_flow_and_repaired() -> None:
    data = settings(ecn="ect1")
    data["paths"]["up"]["loss"] = "1%"
    data["paths"] |= {"clean": {"capacity": "12Mbps", "delay": "10ms"}}
    data["flows"].append({**data["flows"][0], "name": "clean", "up": "clean"})
    result = run({**data, "duration": "10s"})
    rows = result.summary["flows"]
    assert rows["video"]["link_loss_ratio"] == pytest.approx(0.01, abs=0.004)
    assert rows["clean"]["link_loss_ratio"] == 0.0
    assert rows["video"]["retransmitted_packets_count"] > 10
    assert rows["video"]["frames_decoded_count"] == 500
    assert set(result.tables()["drops"]["cause"]) == {"loss"}
    check_accounts(result)


def test_a_trace_with_outages_loses_no_account_of_frames() -> None:
    data = settings(ecn="ect1", keyframe_factor=2.5)
    data["paths"]["up"]["capacity"] = "lte"
    result = run({**data, "duration": "60s"})
    row = result.summary["flows"]["video"]
    skipped = row["frames_skipped_count"]
    assert row["frames_encoded_count"] == 3000 - skipped["queue"]
    assert 0 < skipped["queue"] < 150
    assert row["freeze_count"] >= 1
    check_accounts(result)


def test_a_link_that_ends_in_an_outage_leaves_frames_lost(tmp_path: Path) -> None:
    trace = tmp_path / "short.up"
    trace.write_text("\n".join(str(ms) for ms in range(1, 2001)) + "\n")
    data = settings(ecn="ect1")
    data["paths"]["up"] |= {"capacity": str(trace), "repeat": False}
    result = run(data)
    row = result.summary["flows"]["video"]
    encoded = row["frames_encoded_count"]
    assert encoded == 250 - row["frames_skipped_count"]["queue"]
    assert row["frames_decoded_count"] < 110
    assert row["frames_lost_count"] == encoded - row["frames_decoded_count"]
    assert row["keyframe_requests_count"]["unacked"] >= 1
    assert row["circuit_breaker_count"] == 1
    assert any("stood still" in warning for warning in row["warnings"])


def test_an_encoder_slower_than_the_frame_rate_skips_ticks() -> None:
    result = run(settings(encode_time="50ms"))
    row = result.summary["flows"]["video"]
    # busy for two ticks of 20 ms and a half: every third tick has a picture
    assert row["frames_encoded_count"] == 84
    assert row["frames_skipped_count"] == {"encoder": 166, "queue": 0, "ladder": 0}
    assert row["encode_mean_s"] == pytest.approx(0.05)
    assert row["frame_latency_p50_s"] > 0.06


def test_a_measured_encode_time_is_measured() -> None:
    row = run({**settings(encode_time="measured"), "duration": "1s"}).summary["flows"]["video"]
    assert 0.0 < row["encode_mean_s"] < 0.02


def test_machines_that_wake_late_lengthen_the_round_trip_and_stay_reproducible() -> None:
    prompt = run(settings(ecn="ect1")).summary["flows"]["video"]
    data = {**settings(ecn="ect1"), "wake_time": "2ms"}
    late = run(data)
    row = late.summary["flows"]["video"]
    # The sender's lateness; the receiver's is in its report, but for parts of 1/1024 s.
    assert 0.001 <= row["rtt_p50_s"] - prompt["rtt_p50_s"] <= 0.006
    assert row["frames_decoded_count"] == row["frames_encoded_count"]
    assert run(data).summary == late.summary
    check_accounts(late)


def test_warmup_is_left_out_of_rates_and_percentiles_but_not_of_counts() -> None:
    data = {**settings(ecn="ect1", start_rate="1Mbps"), "duration": "10s"}
    whole = run(data).summary
    late = run({**data, "warmup": "5s"}).summary
    before, after = whole["flows"]["video"], late["flows"]["video"]
    assert whole["events_sha256"] == late["events_sha256"]
    assert after["tx_bps"] > before["tx_bps"]
    assert after["rx_bps"] == pytest.approx(after["tx_bps"], rel=0.02)
    assert after["frames_decoded_count"] == before["frames_decoded_count"] == 500
    assert after["packets_count"] == before["packets_count"]


def test_a_fixed_rate_over_no_limit_arrives_as_it_was_sent() -> None:
    data = settings(rate="2Mbps")
    data["paths"] = {"up": {"delay": "30ms"}, "down": {}}
    row = run(data).summary["flows"]["video"]
    assert row["frames_decoded_count"] == 250
    assert row["frame_latency_p95_s"] < 0.05
    assert row["queue_delay_p95_s"] == 0.0
    assert row["rtt_p50_s"] == pytest.approx(0.03, abs=0.001)
    assert row["utilisation_ratio"] is None


def test_the_series_adds_up_to_the_totals() -> None:
    result = run(settings(ecn="ect1"))
    series = result.tables()["series"]
    assert len(series["time_s"]) == 50
    assert series["capacity_bps"][10] == pytest.approx(12_000_000, rel=0.001)
    sent = sum(series["tx_bps"]) / len(series["tx_bps"])
    assert sent == pytest.approx(result.summary["flows"]["video"]["tx_bps"], rel=0.01)
    assert all(0 <= delay < 0.1 for delay in series["queue_delay_s"] if not isnan(delay))
    assert series["target_bps"][49] > 1_000_000


def test_both_directions_may_share_one_path() -> None:
    data = settings(ecn="ect1")
    data["paths"] = {"both": {"capacity": "12Mbps", "delay": "10ms"}}
    data["flows"][0] |= {"up": "both", "down": "both"}
    result = run(data)
    assert result.summary["flows"]["video"]["frames_decoded_count"] == 250
    check_accounts(result)


def test_a_trace_that_is_gone_is_one_clear_error() -> None:
    data = settings()
    data["paths"]["up"]["capacity"] = "nowhere.up"
    with pytest.raises(ConfigError, match=r"cannot read trace nowhere\.up"):
        run(data)


def test_real_video_is_encoded_and_decoded_inside() -> None:
    data = {**settings(source="medium", ecn="ect1"), "duration": "3s"}
    data["flows"][0]["fps"] = 30
    first, second = run(data), run(data)
    row = first.summary["flows"]["video"]
    assert row["frames_decoded_count"] == row["frames_encoded_count"]
    assert row["frames_encoded_count"] + row["frames_dropped_by_encoder_count"] == 90
    assert row["encode_mean_s"] == pytest.approx(0.004)
    assert first.summary == second.summary
    check_accounts(first)


def test_what_a_flow_has_is_what_experiments_may_ask_for() -> None:
    result = run(settings(ecn="ect1"))
    row = result.summary["flows"]["video"]
    assert row.keys() == FIGURES | NOT_NUMBERS | {"warnings", "exit_codes"}
    numbers = {key for key, value in row.items() if isinstance(value, int | float)}
    assert numbers | {key for key in FIGURES if row[key] is None} == FIGURES
    assert result.tables()["series"].keys() == {"flow", *SERIES}


@pytest.mark.parametrize("codec", ["synthetic", "vp9"])
@pytest.mark.parametrize("ecn", ["ect1", "notect"])
def test_after_an_outage_of_two_seconds_the_picture_moves_within_300_ms(
    ecn: str, codec: str, tmp_path: Path
) -> None:
    """300 ms and a round trip after the link's return, whatever waited before it."""
    trace = tmp_path / "outage.up"
    stamps = [ms for ms in range(1, 12_001) if not 5_000 < ms <= 7_000]
    trace.write_text("\n".join(str(ms // 3 * 3) for ms in stamps) + "\n")
    data = settings(ecn=ecn, source="synthetic" if codec == "synthetic" else "medium")
    data["flows"][0]["fps"] = 30
    data["paths"]["up"] |= {"capacity": str(trace)}
    result = run({**data, "duration": "12s"})
    shown = sorted(at for at in result.tables()["frames"]["decoded_at"] if not isnan(at))
    again = [at for at in shown if at > 7.0]
    assert not any(5.2 < at < 7.0 for at in shown)
    assert again[0] < 7.32
    # and it goes on: no second stop in the second after it
    assert all(b - a < 0.2 for a, b in pairwise(again[:20]))
    row = result.summary["flows"]["video"]
    assert row["freeze_causes_count"]["outage"] == 1
    check_accounts(result)


def test_the_log_of_frames_has_their_whole_way() -> None:
    data = settings(ecn="ect1", source="medium", repair_frames=False)
    data["flows"][0]["fps"] = 30
    data["paths"]["up"]["loss"] = "3%"
    result = run({**data, "duration": "4s"})
    row = result.summary["flows"]["video"]
    frames = result.tables()["frames"]
    count = row["frames_encoded_count"]
    assert len(frames["frame"]) == count
    shown = [n for n in range(count) if not isnan(frames["decoded_at"][n])]
    assert len(shown) == row["frames_decoded_count"]
    for n in shown:
        times = [frames[key][n] for key in ("captured_at", "queued_at", "sent_at", "received_at")]
        assert times == sorted(times)
        assert frames["received_at"][n] <= frames["completed_at"][n] + 1e-9
        assert frames["latency_s"][n] == frames["decoded_at"][n] - frames["captured_at"][n]
        assert frames["psnr_db"][n] > 20
        assert 0.5 < frames["ssim"][n] <= 1
        assert 0 <= frames["quantizer"][n] <= 63
    assert sum(frames["copies"]) == row["retransmitted_packets_count"] > 0
    mended = [n for n in shown if frames["copies"][n]]
    assert all(frames["last_sent_at"][n] > frames["sent_at"][n] for n in mended)
    mean = sum(frames["psnr_db"][n] for n in shown) / len(shown)
    assert row["psnr_mean_db"] == pytest.approx(mean)
