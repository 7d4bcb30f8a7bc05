"""A daemon that does nothing but live: run as a process by the signal tests.

It starts, says READY on stdout, and when asked to stop says DRAINING and does as the argument says.
"""

import asyncio
import sys

from streamd.config.model import ReceiverConfig
from streamd.daemon.lifecycle import Lifecycle, run_daemon


async def main(life: Lifecycle) -> None:
    how = sys.argv[1]
    life.started()
    print("READY", flush=True)
    await life.stopping.wait()
    print("DRAINING", flush=True)
    if how == "hang":
        await asyncio.Event().wait()
    if how == "stuck":
        while True:
            pass


if __name__ == "__main__":
    config = ReceiverConfig(
        metrics_port=None, shutdown_timeout=float(sys.argv[2]), log_format="json"
    )
    sys.exit(run_daemon(main, config))
