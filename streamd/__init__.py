"""streamd: real-time video over RTP/UDP under congestion control."""

__version__ = "0.1.0"
