"""The deterministic simulator: the same sessions, paths and controllers on a virtual clock."""
