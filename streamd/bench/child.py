"""Measurements that need a process of their own."""

import json
import subprocess
import sys
from typing import Any


def run_child(module: str, *arguments: str, timeout_s: float = 600.0) -> dict[str, Any]:
    """Run `python -m module` and return the JSON it prints.

    Raises CalledProcessError when it fails or is killed, TimeoutExpired when it hangs.
    """
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        check=True,
        stdout=subprocess.PIPE,
        timeout=timeout_s,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
