"""Bytes on the network and back: RTP, RTCP, RFC 8888 feedback. Knows no session and no clock."""
