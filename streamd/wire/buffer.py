"""What the decoders read from: any of these, addressed by [start, end) and never copied whole."""

from typing import TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview
