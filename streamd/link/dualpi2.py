"""The entry point of DualPI2: picks the version its mode names.

The theory is in `dualpi2_core`, the rules of each version in `dualpi2_rfc`,
`dualpi2_linux` and `dualpi2_mahimahi`, the parameters in `dualpi2_config`.
"""

import random

from streamd.link.dualpi2_config import DualPi2Config, resolve
from streamd.link.dualpi2_core import DualPi2
from streamd.link.dualpi2_linux import LinuxDualPi2
from streamd.link.dualpi2_mahimahi import MahimahiDualPi2
from streamd.link.dualpi2_rfc import RfcDualPi2
from streamd.link.queue import QueueSpec

__all__ = ["SPEC", "DualPi2", "DualPi2Config", "build"]


def build(config: DualPi2Config, *, rng: random.Random, now: float) -> DualPi2:
    """A DualPI2 that starts empty at `now` (s); ConfigError if a parameter is out of range."""
    parameters = resolve(config)
    if parameters.mode == "linux":
        return LinuxDualPi2(parameters, rng=rng, now=now)
    if parameters.mode == "rfc":
        return RfcDualPi2(parameters, rng=rng, now=now)
    return MahimahiDualPi2(parameters, rng=rng, now=now)


SPEC = QueueSpec(
    name="dualpi2",
    summary="L4S and Classic queues coupled by PI2; modes linux, rfc, mahimahi",
    config_type=DualPi2Config,
    build=build,
    source="RFC 9332 appendix A; Linux 6.18 sch_dualpi2; Mahimahi fork 5G-VCA-CC",
)
