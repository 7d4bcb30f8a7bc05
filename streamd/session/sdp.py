"""The session description (RFC 8866) by which other players open a stream."""

from typing import Any

from streamd.session.packetize import PAYLOAD_TYPES, RTP_CLOCK
from streamd.wire import abs_capture_time

ENCODINGS = {"vp9": "VP9", "vp8": "VP8", "h264": "H264"}
"""Names of RFC 9628, RFC 7741 and RFC 6184."""


def description(codec: str, peer: tuple[Any, ...], *, fps: float, muxed: bool) -> str:
    """What a player at `peer` (address, port) has to know.

    Parameter sets of H.264 travel with every key frame, so none stand here.
    """
    kind = PAYLOAD_TYPES[codec]
    # a scope (fe80::1%eth0) means nothing to anybody else
    host = str(peer[0]).partition("%")[0]
    family = "IP6" if ":" in host else "IP4"
    lines = [
        "v=0",
        f"o=- 0 0 IN {family} {host}",
        "s=streamd",
        f"c=IN {family} {host}",
        "t=0 0",
        f"m=video {peer[1]} RTP/AVP {kind}",
        f"a=rtpmap:{kind} {ENCODINGS[codec]}/{RTP_CLOCK}",
        f"a=framerate:{fps:g}",
        f"a=extmap:{abs_capture_time.ELEMENT_ID} {abs_capture_time.URI}",
    ]
    if codec == "h264":
        lines.append(f"a=fmtp:{kind} packetization-mode=1")
    if muxed:
        lines.append("a=rtcp-mux")
    lines.append("a=recvonly")
    return "\r\n".join(lines) + "\r\n"
