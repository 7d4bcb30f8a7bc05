"""The peer latch: first source, strangers, silence, and how addresses compare."""

import math

import pytest

from streamd.peer import PeerLatch, ip_udp_bytes, same_endpoint

A = ("192.0.2.1", 5000)
B = ("192.0.2.2", 5000)


def test_the_first_source_is_taken() -> None:
    latch = PeerLatch(None)
    assert latch.accept(A, now=1.0)
    assert latch.address == A
    assert latch.changes == 0


def test_another_source_waits_for_a_second_of_silence() -> None:
    latch = PeerLatch(None)
    latch.accept(A, now=1.0)
    assert not latch.accept(B, now=1.5)
    assert latch.accept(A, now=1.75)
    assert not latch.accept(B, now=2.5)
    assert latch.address == A
    assert latch.accept(B, now=2.75)
    assert latch.address == B
    assert latch.changes == 1
    assert not latch.accept(A, now=2.75)


def test_a_configured_peer_that_was_never_heard_is_silent_from_the_first_stranger_on() -> None:
    latch = PeerLatch(A)
    assert not latch.accept(B, now=50.0)
    assert not latch.accept(B, now=50.5)
    assert latch.accept(B, now=51.0)


def test_an_infinite_hold_never_lets_another_one_in() -> None:
    latch = PeerLatch(A, hold=math.inf)
    assert not latch.accept(B, now=0.0)
    assert not latch.accept(B, now=1e9)
    assert latch.accept(A, now=1e9)


def test_a_name_that_resolves_anew_moves_the_peer_at_once() -> None:
    latch = PeerLatch(A)
    latch.accept(A, now=1.0)
    latch.set(B)
    assert latch.address == B
    assert not latch.alive(now=1.0)
    assert latch.accept(B, now=1.0)
    latch.set(B)
    assert latch.alive(now=1.9)
    assert not latch.alive(now=2.0)


def test_a_peer_that_said_goodbye_frees_its_place() -> None:
    latch = PeerLatch(None)
    latch.accept(A, now=1.0)
    latch.release()
    assert not latch.alive(now=1.0)
    assert latch.accept(B, now=1.001)
    fixed = PeerLatch(A, hold=math.inf)
    fixed.accept(A, now=1.0)
    fixed.release()
    assert not fixed.accept(B, now=1.001)


def test_setting_an_unknown_peer() -> None:
    latch = PeerLatch(None)
    latch.set(A)
    assert latch.accept(A, now=0.0)


def test_the_spelling_of_an_address_does_not_make_a_stranger() -> None:
    latch = PeerLatch(("127.0.0.1", 7))
    assert latch.accept(("::ffff:127.0.0.1", 7, 0, 0), now=0.0)
    assert latch.address == ("127.0.0.1", 7)
    assert latch.changes == 0


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (("192.0.2.1", 1), ("192.0.2.1", 2), False),
        (("::1", 1, 0, 0), ("::1", 1), True),
        (("fe80::1%eth0", 1, 0, 2), ("fe80::1", 1, 0, 2), True),
        (("fe80::1", 1, 0, 2), ("fe80::1", 1, 0, 3), False),
        (("fe80::1", 1, 0, 2), ("fe80::1", 1, 0, 0), True),
        (("FE80::A", 1, 0, 2), ("fe80::a", 1, 0, 2), True),
        (("::ffff:192.0.2.1", 1, 0, 0), ("192.0.2.1", 1), True),
    ],
)
def test_same_endpoint(a: tuple[object, ...], b: tuple[object, ...], same: bool) -> None:
    assert same_endpoint(a, b) is same


@pytest.mark.parametrize(
    ("host", "size"),
    [("192.0.2.1", 28), ("::ffff:192.0.2.1", 28), ("::1", 48), ("fe80::1%eth0", 48)],
)
def test_header_bytes_by_family(host: str, size: int) -> None:
    assert ip_udp_bytes((host, 9)) == size


def test_asking_whether_a_source_is_admitted_takes_nobody_in() -> None:
    latch = PeerLatch(None)
    assert latch.admits(A, now=1.0)
    assert latch.address is None
    latch.accept(A, now=1.0)
    assert latch.admits(A, now=1.5)
    assert not latch.admits(B, now=1.9375)
    assert latch.admits(B, now=2.0)
    assert latch.address == A
    assert latch.changes == 0


def test_asking_begins_the_silence_of_a_peer_never_heard() -> None:
    latch = PeerLatch(A)
    assert not latch.admits(B, now=50.0)
    assert latch.accept(B, now=51.0)


def test_goodbye_without_a_peer_and_with_an_infinite_hold_changes_nothing() -> None:
    nobody = PeerLatch(None)
    nobody.release()
    assert nobody.accept(A, now=0.0)
    fixed = PeerLatch(A, hold=math.inf)
    fixed.release()
    assert not fixed.accept(B, now=1e9)
