"""Feeds damaged packets of a real stream to a receiver with a real decoder; prints what came of it.

    python tests/fuzz/fuzz_program.py CODEC PACKETS SEED ours|others

`others`: packets as other senders make them, without our header extension.

A process of its own: a decoder that crashed would take it along.
"""

import json
import random
import sys
from itertools import count
from pathlib import Path

from streamd.datagram import Datagram
from streamd.errors import MediaError
from streamd.media.clips import ClipSource
from streamd.media.factory import open_decoder, open_encoder
from streamd.media.model import EncodedFrame, VideoDecoder
from streamd.session.events import FrameReady
from streamd.session.packetize import PAYLOAD_TYPES, Packetizer, StreamIdentity
from streamd.session.receiver import ReceiverOptions, ReceiverSession

SENDER = ("192.0.2.1", 5000)
GAP = 0.002
"""Seconds between packets."""


def film(codec: str) -> list[tuple[bytes, bool]]:
    """Two seconds, key frames at both ends of the first."""
    source = ClipSource("medium")
    encoder = open_encoder(codec, source, start_bps=800_000, max_bps=2_000_000, threads=1)
    frames = []
    for number in range(60):
        out = encoder.encode(source.read(), target_bps=800_000, keyframe=number % 30 == 0)
        if out is not None:
            frames.append(out)
    encoder.close()
    return frames


def mutate(data: bytes, rng: random.Random) -> list[bytes]:
    """What a hostile or broken network makes of a packet."""
    kind = rng.randrange(12)
    changed = bytearray(data)
    if kind == 0:  # header extension: ids, counts, lengths
        changed[rng.randrange(12, min(24, len(changed)))] = rng.randrange(256)
    elif kind == 1:  # payload descriptor and bitstream header
        at = rng.randrange(min(24, len(changed) - 1), min(40, len(changed)))
        changed[at] = rng.randrange(256)
    elif kind == 2:
        for _ in range(8):
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    elif kind == 3:
        return [data[: rng.randrange(len(data))]]
    elif kind == 4:
        return [data, data]
    elif kind == 5:
        return []
    elif kind == 6:  # a fragment of a frame of 65,535
        changed[20:24] = rng.randrange(0xFFFF).to_bytes(2, "big") + b"\xff\xff"
    elif kind == 7:
        return [rng.randbytes(rng.randrange(1, 1400))]
    elif kind == 8:  # numbers from elsewhere
        changed[2:4] = rng.randbytes(2)
    elif kind == 9:
        changed += rng.randbytes(rng.randrange(1, 64))
    elif kind == 10:  # no extension at all
        changed[0] = 0x80
        del changed[12:24]
    else:
        changed[1] ^= 0x80
    return [bytes(changed)]


def decode(session: ReceiverSession, decoder: VideoDecoder, now: float) -> int:
    refused = 0
    while (event := session.poll_event()) is not None:
        if not isinstance(event, FrameReady):
            continue
        try:
            pictures = len(decoder.decode(event.data))
        except MediaError:
            pictures, refused = 0, refused + 1
        session.handle_decoded(event.frame_no, pictures, now=now)
    while session.poll_transmit(now=now) is not None:
        pass
    return refused


def most_memory() -> int:
    """Bytes resident at most. Not `ru_maxrss`: that begins with what the parent had."""
    status = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in status if line.startswith("VmHWM:"))
    return 1024 * int(line.split()[1])


def main(codec: str, wanted: int, seed: int, *, extension: bool) -> None:
    rng = random.Random(seed)
    frames = film(codec)
    packetizer = Packetizer(
        StreamIdentity(77, PAYLOAD_TYPES[codec], payload=codec, video_extension=extension)
    )
    session = ReceiverSession(
        ReceiverOptions(ssrc=1, formats={PAYLOAD_TYPES[codec]: codec}), now=0.0, unix_offset=1e9
    )
    decoder = open_decoder(codec, max_size=(704, 576))
    sent, now, refused, held = 0, 0.0, 0, 0
    delayed: list[bytes] = []
    for number in count():
        if sent >= wanted:
            break
        data, keyframe = frames[number % len(frames)]
        packets = packetizer.packetize(
            EncodedFrame(data, keyframe, number / 30), payload=600, now=now
        )
        # after a bad second a good one: the stream must come back every time
        bad = number // 30 % 2 == 1
        for packet in packets:
            out = mutate(packet.data, rng) if bad and rng.random() < 0.3 else [packet.data]
            if bad and rng.random() < 0.05:
                # up to twenty packets are overtaken by all that follows
                delayed += out
                out = [delayed.pop(0)] if len(delayed) > 20 else []
            for item in out:
                now += GAP
                sent += 1
                session.handle_datagrams([Datagram(item, SENDER, 1, now)], now=now)
                session.handle_timeout(now=now)
        refused += decode(session, decoder, now)
        held = max(held, session.bytes_held)
    stats = session.stats
    print(
        json.dumps(
            {
                "packets": sent,
                "frames": number,
                "decoded": stats.frames_decoded,
                "refused": refused,
                "undecodable": stats.frames_undecodable,
                "lost": stats.frames_lost,
                "invalid": stats.invalid,
                "bytes_held": held,
                "streams": stats.streams,
                "rss_bytes": most_memory(),
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), extension=sys.argv[4] == "ours")
