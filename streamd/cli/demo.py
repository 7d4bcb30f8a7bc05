"""`streamd demo`."""

from pathlib import Path

from streamd.config.units import parse_duration, parse_ratio
from streamd.errors import ConfigError
from streamd.stack.demo import DemoOptions, run


def run_demo(
    *,
    seconds: str,
    trace: str,
    source: str,
    codec: str,
    controller: str,
    delay: str,
    loss: str,
    seed: int,
    json: Path | None,
) -> int:
    """Values as they were typed; ConfigError on one that is not understood."""
    try:
        options = DemoOptions(
            seconds=parse_duration(seconds),
            trace=trace,
            source=source,
            codec=codec,
            controller=controller,
            delay_ms=parse_duration(delay, bare=1e-3) / 1e-3,
            loss=parse_ratio(loss),
            seed=seed,
            json_file=json,
        )
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return run(options)
