"""What the hot paths cost on this machine."""
