"""What a configured capacity stands for: reads traces."""

from streamd.config.units import Capacity
from streamd.link.generate import BUILTIN_NAMES, builtin_trace
from streamd.link.trace import Trace


def load_capacity(capacity: Capacity) -> Trace | float | None:
    """What a direction carries: a rate (bit/s), a trace from a file or built in, or no limit.

    ConfigError names the file and line of a malformed trace.
    """
    if capacity.trace is None:
        return capacity.rate_bps
    if capacity.trace in BUILTIN_NAMES:
        return builtin_trace(capacity.trace)
    return Trace.load(capacity.trace)
