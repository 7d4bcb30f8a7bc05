"""The session description (RFC 8866) by which other players open a stream."""

from typing import Any

from streamd.session.packetize import PAYLOAD_TYPES, RTP_CLOCK

ENCODINGS = {"vp9": "VP9", "vp8": "VP8", "h264": "H264"}
"""Names of RFC 9628, RFC 7741 and RFC 6184."""


def description(codec: str, peer: tuple[Any, ...], *, fps: float, muxed: bool) -> str:
    """What a player at `peer` (address, port) has to know.

    Parameter sets of H.264 travel with every key frame, so none stand here.
    """
    kind = PAYLOAD_TYPES[codec]
    family = "IP6" if ":" in str(peer[0]) else "IP4"
    lines = [
        "v=0",
        f"o=- 0 0 IN {family} {peer[0]}",
        "s=streamd",
        f"c=IN {family} {peer[0]}",
        "t=0 0",
        f"m=video {peer[1]} RTP/AVP {kind}",
        f"a=rtpmap:{kind} {ENCODINGS[codec]}/{RTP_CLOCK}",
        f"a=framerate:{fps:g}",
    ]
    if codec == "h264":
        lines.append(f"a=fmtp:{kind} packetization-mode=1")
    if muxed:
        lines.append("a=rtcp-mux")
    lines.append("a=recvonly")
    return "\r\n".join(lines) + "\r\n"
