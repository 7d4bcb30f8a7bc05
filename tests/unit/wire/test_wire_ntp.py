"""NTP, short NTP and media time: literal instants and their wraps."""

import pytest

from streamd.wire.ntp import (
    media_to_seconds,
    ntp_to_short,
    ntp_to_unix,
    seconds_to_media,
    seconds_to_short,
    short_diff,
    short_to_seconds,
    unix_to_ntp,
)


@pytest.mark.parametrize(
    ("unix", "ntp"),
    [
        (0.0, 0x83AA7E8000000000),
        (1.5, 0x83AA7E8180000000),
        (1700000000.25, 0xE8FE6F8040000000),
        (2085978495.5, 0xFFFFFFFF80000000),
        (2085978496.0, 0),  # 2036-02-07 06:28:16, the end of era 0
        (2085978497.0, 0x100000000),
    ],
)
def test_unix_and_ntp_time(unix: float, ntp: int) -> None:
    assert unix_to_ntp(unix) == ntp
    assert ntp_to_unix(ntp) == unix


def test_short_is_the_middle_of_ntp() -> None:
    assert ntp_to_short(0x83AA7E8180000000) == 0x7E818000


@pytest.mark.parametrize(
    ("seconds", "ticks"),
    [
        (0.0, 0),
        (1.5, 98304),
        (0.00001, 0),
        (65535.99999, 0xFFFFFFFF),
        (65536.0, 0),  # 18.2 h
        (65537.5, 98304),
        (-1.0, 0xFFFF0000),
    ],
)
def test_seconds_in_short_ticks(seconds: float, ticks: int) -> None:
    assert seconds_to_short(seconds) == ticks


def test_short_ticks_in_seconds() -> None:
    assert short_to_seconds(98304) == 1.5
    assert short_to_seconds(1 << 32) == 65536.0


def test_short_difference_survives_the_wrap() -> None:
    assert short_diff(0x8000, 0xFFFF8000) == 1.0
    assert short_diff(0xFFFF8000, 0x8000) == -1.0
    assert short_diff(5, 5) == 0.0


@pytest.mark.parametrize(
    ("seconds", "ticks"),
    [(0.0, 0), (65 / 65536, 89), (1.0, 90000), (47721.858844, 4294967295), (47721.9, 3704)],
)
def test_media_time_is_truncated_and_wraps_after_13_hours(seconds: float, ticks: int) -> None:
    assert seconds_to_media(seconds) == ticks


def test_media_time_of_another_clock() -> None:
    assert seconds_to_media(0.02, 48000) == 960
    assert media_to_seconds(960, 48000) == 0.02
    assert media_to_seconds(3000) == pytest.approx(1 / 30)
