"""CPU cost of the two sessions alone: `python -m streamd.bench.session [--json FILE]`.

Both sessions run against each other once on a virtual clock, and every call into
them is written down. Then the calls of one side are played to a fresh session of
its kind while the process's CPU time is taken. So what is measured is the code
of the session (and of the controller, for the sender), without sockets, timers
and encoder; polling is done as the pump does it. The best of several rounds.
"""

import argparse
import json
import random
import time
from collections.abc import Callable
from math import inf
from pathlib import Path

from streamd.bench.table import machine, print_table
from streamd.cc.api import Controller, ControllerSpec, Limits
from streamd.cc.fixed import SPEC as FIXED
from streamd.cc.fixed import FixedConfig
from streamd.cc.scream import SPEC as SCREAM
from streamd.datagram import Datagram, Transmit
from streamd.ecn import Ecn
from streamd.media.model import EncodedFrame
from streamd.session.packetize import StreamIdentity
from streamd.session.receiver import ReceiverOptions, ReceiverSession
from streamd.session.sender import SenderSession
from streamd.session.sender_options import SenderOptions

SENDER = ("192.0.2.1", 5000)
RECEIVER = ("192.0.2.2", 6000)
SECONDS = 2.0
FPS = 50
DELAY = 0.005
ROUNDS = 5
PAYLOAD = 1188
"""With 24 bytes of header and extension: packets of 1212 bytes, as the BW tool's."""
CASES = (("fixed", 50e6, 0.0005), ("fixed", 200e6, 0.0005), ("scream", 50e6, 0.0005))
"""Controller, media rate (bit/s), pacing quantum (s)."""

Call = tuple[float, str, object]
"""When, which method, its argument."""


def build(name: str, rate_bps: float) -> Controller:
    """A controller that runs at this rate."""
    spec: ControllerSpec = FIXED if name == "fixed" else SCREAM
    config = FixedConfig(rate_bps=rate_bps) if name == "fixed" else spec.config_type()
    return spec.build(config, ecn=Ecn.ECT1, rng=random.Random(1), now=0.0)


def new_sender(name: str, rate_bps: float, quantum: float) -> SenderSession:
    """The sender of a case."""
    options = SenderOptions(
        identity=StreamIdentity(7, 99),
        limits=Limits(rate_bps, rate_bps, rate_bps),
        peer=RECEIVER,
        max_payload=PAYLOAD,
        quantum=quantum,
    )
    return SenderSession(options, build(name, rate_bps), now=0.0, unix_offset=0.0)


def new_receiver() -> ReceiverSession:
    """The receiver of every case."""
    return ReceiverSession(ReceiverOptions(ssrc=9), now=0.0, unix_offset=0.0)


class Recording:
    """One run of a case: the calls both sessions get, in order."""

    def __init__(self, name: str, rate_bps: float, quantum: float) -> None:
        self.sender = new_sender(name, rate_bps, quantum)
        self.receiver = new_receiver()
        self.sender_calls: list[Call] = []
        self.receiver_calls: list[Call] = []
        self._frame = bytes(int(rate_bps / FPS / 8))
        self._in_flight: list[tuple[float, bool, Transmit]] = []
        self.packets = 0
        self.runs = 0
        self._run()

    def _run(self) -> None:
        now, frame = 0.0, 0
        while now < SECONDS:
            times = (
                frame / FPS,
                self._in_flight[0][0] if self._in_flight else inf,
                due(self.sender),
                due(self.receiver),
            )
            now = max(now, min(times))
            if times[0] <= now:
                self._give(now, "frame", EncodedFrame(self._frame, frame == 0, now))
                frame += 1
            elif times[1] <= now:
                self._deliver(now)
            elif times[2] <= now:
                self._give(now, "timeout", None)
            else:
                self._take(now, "timeout", None)

    def _deliver(self, now: float) -> None:
        _, up, transmit = self._in_flight.pop(0)
        data, size = b"".join(transmit.segments), len(transmit.segments[0])
        datagram = Datagram(data, SENDER if up else RECEIVER, transmit.ecn, now, size)
        if up:
            self._take(now, "datagrams", [datagram])
        else:
            self._give(now, "datagrams", [datagram])

    def _give(self, now: float, method: str, argument: object) -> None:
        self.sender_calls.append((now, method, argument))
        for transmit in play_sender(self.sender, now, method, argument):
            self.packets += len(transmit.segments)
            self.runs += 1
            self._send(now, True, transmit)

    def _take(self, now: float, method: str, argument: object) -> None:
        self.receiver_calls.append((now, method, argument))
        for transmit in play_receiver(self.receiver, now, method, argument):
            self._send(now, False, transmit)

    def _send(self, now: float, up: bool, transmit: Transmit) -> None:
        # Equal delays: what is sent later arrives later.
        self._in_flight.append((now + DELAY, up, transmit))


def due(session: SenderSession | ReceiverSession) -> float:
    """When the session wants its timeout."""
    when = session.next_timeout()
    return inf if when is None else when


def play_sender(
    session: SenderSession, now: float, method: str, argument: object
) -> list[Transmit]:
    """One turn of the sender, as the pump and the frame clock make it."""
    if method == "frame":
        session.next_frame(now=now)
        session.handle_frame(argument, now=now)  # type: ignore[arg-type]
    elif method == "timeout":
        session.handle_timeout(now=now)
    else:
        session.handle_datagrams(argument, now=now)  # type: ignore[arg-type]
    transmits = []
    while (transmit := session.poll_transmit(now=now)) is not None:
        transmits.append(transmit)
    while session.poll_event() is not None:
        pass
    session.next_timeout()
    return transmits


def play_receiver(
    session: ReceiverSession, now: float, method: str, argument: object
) -> list[Transmit]:
    """One turn of the receiver; frames count as decoded at once."""
    if method == "timeout":
        session.handle_timeout(now=now)
    else:
        session.handle_datagrams(argument, now=now)  # type: ignore[arg-type]
    transmits = []
    while (transmit := session.poll_transmit(now=now)) is not None:
        transmits.append(transmit)
    while (event := session.poll_event()) is not None:
        number = getattr(event, "frame_no", None)
        if number is not None:
            session.handle_decoded(number, 1, now=now)
    session.next_timeout()
    return transmits


def cpu_seconds(play: Callable[[], None]) -> float:
    """CPU time of one round."""
    begun = time.process_time()
    play()
    return time.process_time() - begun


def measure_case(name: str, rate_bps: float, quantum: float) -> dict[str, float]:
    """CPU seconds per packet of both sessions, and what the case looked like."""
    recording = Recording(name, rate_bps, quantum)

    def sender_round() -> None:
        session = new_sender(name, rate_bps, quantum)
        for now, method, argument in recording.sender_calls:
            play_sender(session, now, method, argument)

    def receiver_round() -> None:
        session = new_receiver()
        for now, method, argument in recording.receiver_calls:
            play_receiver(session, now, method, argument)

    packets = recording.packets
    return {
        "sender_s": min(cpu_seconds(sender_round) for _ in range(ROUNDS)) / packets,
        "receiver_s": min(cpu_seconds(receiver_round) for _ in range(ROUNDS)) / packets,
        "packets_count": packets,
        "packets_per_run": packets / recording.runs,
        "packets_per_report": packets / max(1, recording.sender.stats.feedback_reports),
    }


def main() -> None:
    """Measure, print, and write JSON if asked."""
    parser = argparse.ArgumentParser(prog="python -m streamd.bench.session", description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the figures there")
    arguments = parser.parse_args()
    results = {
        f"{name}_{rate / 1e6:.0f}Mbps": measure_case(name, rate, quantum)
        for name, rate, quantum in CASES
    }
    rows = [
        (
            case,
            f"{found['packets_per_run']:.1f}",
            f"{found['packets_per_report']:.1f}",
            f"{found['sender_s'] * 1e6:.2f}",
            f"{found['receiver_s'] * 1e6:.2f}",
        )
        for case, found in results.items()
    ]
    header = ("case", "packets/run", "packets/report", "sender", "receiver")
    print_table("us of CPU per packet of 1212 bytes, sessions alone", header, rows)
    print(f"  {machine()}")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
