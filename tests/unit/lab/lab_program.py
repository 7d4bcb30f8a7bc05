"""A lab that hangs at the third seed, for a test that kills it. Argument: folder of results."""

import sys
from pathlib import Path

from lab_fakes import grid, run_or_wait

from streamd.lab import runner
from streamd.lab.pool import ProcessPool
from streamd.lab.store import Store

if __name__ == "__main__":
    with runner.bar("small") as watcher:
        runner.run(grid(), Store(Path(sys.argv[1])), ProcessPool(run_or_wait, 1), watcher)
