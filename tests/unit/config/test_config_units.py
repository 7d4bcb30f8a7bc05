"""Quantities as people write them."""

import re

import pytest

from streamd.config.units import (
    Capacity,
    FrameSize,
    HostPort,
    format_duration,
    format_rate,
    format_size,
    parse_capacity,
    parse_duration,
    parse_frame_size,
    parse_host_port,
    parse_rate,
    parse_ratio,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("25ms", 0.025),
        ("2s", 2.0),
        ("2", 2.0),
        (" 1.5 min ", 90.0),
        ("1h", 3600.0),
        ("250us", 0.00025),
        ("250µs", 0.00025),
        ("40ns", 4e-8),
        (".5s", 0.5),
        ("1e-3", 0.001),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds, rel=1e-12)


def test_a_bare_duration_counts_in_the_unit_asked_for() -> None:
    assert parse_duration("10", bare=1e-3) == 0.01
    assert parse_duration("10s", bare=1e-3) == 10.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is not a duration such as 25ms or 2s"),
        ("fast", "'fast' is not a duration such as 25ms or 2s"),
        ("5 m s", "'5 m s' is not a duration such as 25ms or 2s"),
        ("5msec", "unknown unit of time 'msec' in '5msec'; use ns, us, ms, s, min, h"),
        ("1e999", "'1e999' is not a finite number"),
        ("nan", "'nan' is not a duration such as 25ms or 2s"),
    ],
)
def test_bad_durations(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "bps"),
    [
        ("12Mbps", 12e6),
        ("500kbps", 5e5),
        ("500Kbps", 5e5),
        ("2.5Mbit/s", 2.5e6),
        ("1 Gbps", 1e9),
        ("9600", 9600.0),
        ("9600bps", 9600.0),
        ("12mbps", 12e6),
    ],
)
def test_rates(text: str, bps: float) -> None:
    assert parse_rate(text) == bps


@pytest.mark.parametrize("unit", ["MBps", "MB/s", "Mbs", "M", "ms", "Mibps"])
def test_a_rate_in_anything_but_bits_is_refused(unit: str) -> None:
    with pytest.raises(ValueError, match="unknown unit of rate") as caught:
        parse_rate(f"12{unit}")
    assert str(caught.value) == (
        f"unknown unit of rate {unit!r} in '12{unit}'; use bps, kbps, Mbps or Gbps"
    )


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1500", 1500),
        ("64kB", 64000),
        ("4MiB", 4194304),
        ("2KiB", 2048),
        ("10B", 10),
        ("1.5kB", 1500),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


def test_a_size_is_whole_and_in_a_known_unit() -> None:
    with pytest.raises(ValueError, match=r"'1\.5' is not a whole number of bytes"):
        parse_size("1.5")
    with pytest.raises(ValueError, match="unknown unit of size 'kb2' in '1kb2'"):
        parse_size("1kb2")


def test_ratios() -> None:
    assert parse_ratio("1%") == 0.01
    assert parse_ratio("0.25") == 0.25
    with pytest.raises(ValueError, match=r"unknown unit 'x' in '1x'; write 0\.01 or 1%"):
        parse_ratio("1x")


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("192.0.2.1:5004", "192.0.2.1", 5004),
        ("[::1]:80", "::1", 80),
        ("receiver:0", "receiver", 0),
        (":5004", "", 5004),
    ],
)
def test_host_and_port(text: str, host: str, port: int) -> None:
    assert parse_host_port(text) == HostPort(host, port)
    assert str(HostPort(host, port)) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("receiver", "'receiver' is not HOST:PORT with a port from 0 to 65535"),
        ("receiver:", "'receiver:' is not HOST:PORT with a port from 0 to 65535"),
        ("receiver:65536", "'receiver:65536' is not HOST:PORT with a port from 0 to 65535"),
        ("receiver:-1", "'receiver:-1' is not HOST:PORT with a port from 0 to 65535"),
        ("receiver:٣", "'receiver:٣' is not HOST:PORT with a port from 0 to 65535"),
        ("::1:80", "write an IPv6 address in brackets: [::1]:80"),
    ],
)
def test_bad_host_and_port(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        parse_host_port(text)


def test_frame_size() -> None:
    assert parse_frame_size("352x288") == FrameSize(352, 288)
    assert str(FrameSize(1920, 1080)) == "1920x1080"
    with pytest.raises(ValueError, match="'352' is not a picture size such as 352x288"):
        parse_frame_size("352")


@pytest.mark.parametrize(
    ("text", "capacity"),
    [
        ("12Mbps", Capacity(rate_bps=12e6)),
        ("9600", Capacity(rate_bps=9600.0)),
        ("unlimited", Capacity()),
        ("lte", Capacity(trace="lte")),
        ("traces/Verizon.up", Capacity(trace="traces/Verizon.up")),
        ("5g.trace", Capacity(trace="5g.trace")),
        ("./3g", Capacity(trace="./3g")),
    ],
)
def test_capacity_is_a_rate_or_a_trace(text: str, capacity: Capacity) -> None:
    assert parse_capacity(text) == capacity
    assert parse_capacity(str(capacity)) == capacity


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("12Mbs", "unknown unit of rate 'Mbs' in '12Mbs'; use bps, kbps, Mbps or Gbps"),
        ("0Mbps", "a link's rate must be above 0, not '0Mbps'"),
        ("-5", "a link's rate must be above 0, not '-5'"),
        (" ", "an empty string is neither a rate nor a trace"),
    ],
)
def test_a_slip_in_a_rate_is_no_trace(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        parse_capacity(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.01, "10ms"),
        (2.0, "2s"),
        (0.0005, "0.5ms"),
        (0.00025, "250us"),
        (90.0, "90s"),
        (0.0, "0s"),
    ],
)
def test_durations_are_written_so_that_they_read_back(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
    assert parse_duration(text) == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize(
    ("bps", "text"),
    [(12e6, "12Mbps"), (150e3, "150kbps"), (1.0, "1bps"), (1234567.0, "1234567bps")],
)
def test_rates_are_written_so_that_they_read_back(bps: float, text: str) -> None:
    assert format_rate(bps) == text
    assert parse_rate(text) == bps


def test_sizes_are_written_so_that_they_read_back() -> None:
    assert [format_size(n) for n in (0, 1200, 2048, 4194304)] == [0, 1200, "2KiB", "4MiB"]
