"""SCReAMv2 as a controller plug-in; `controller.py` says how it works."""

import random

from streamd.cc.api import ControllerSpec
from streamd.cc.scream.config import ScreamConfig
from streamd.cc.scream.controller import METRICS, ScreamController

__all__ = ["SPEC", "ScreamConfig", "ScreamController"]


def _build(config: ScreamConfig, *, ecn: int, rng: random.Random, now: float) -> ScreamController:
    return ScreamController(config, ecn=ecn, now=now)


SPEC = ControllerSpec(
    name="scream",
    summary="SCReAMv2: self-clocked window for interactive video, with L4S",
    config_type=ScreamConfig,
    build=_build,
    ecn_modes=("ect1", "ect0", "notect"),
    signals=("loss", "ce", "delay"),
    source="draft-ietf-ccwg-rfc8298bis-screamv2; reference of 2026-07 or 2026-03-04 (profile)",
    metrics=METRICS,
)
