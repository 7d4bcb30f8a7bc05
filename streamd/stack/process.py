"""One daemon as a child process: started, watched through its log, stopped, collected.

The child logs JSON lines; the line `started` carries the addresses it bound,
the lines of `report` its present figures. Everything here waits for events of
the child, never for time to pass.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from streamd.errors import ConfigError, StartupError, StreamdError

LAST_LINES = 20
"""Log lines kept to explain a failure."""
START_TIMEOUT = 20.0
STOP_TIMEOUT = 10.0

Record = dict[str, Any]


def _environment() -> dict[str, str]:
    """Ours without settings: a STREAMD_PEER meant for a daemon would lead a chain astray."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("STREAMD_") or name == "STREAMD_REVISION"
    }


class DaemonProcess:
    """A `streamd ROLE ...` child."""

    def __init__(self, role: str, args: Sequence[str], result: Path) -> None:
        """`args` follow the role on the command line; the summary is written to `result`."""
        self.role = role
        self._args = [role, *args, "--json", str(result), "--log-format", "json"]
        self._result = result
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._started: asyncio.Future[Record] = asyncio.get_running_loop().create_future()
        self._lines: deque[str] = deque(maxlen=LAST_LINES)
        self.report: Record = {}
        """The newest periodic figures."""
        self.on_record: Callable[[Record], None] | None = None
        """Called with every line of its log."""

    async def start(self) -> Record:
        """Start it and wait for its `started` line, which is returned.

        If it ends before that, the error that made it (by its exit code) with what it said;
        StartupError if it takes too long.
        """
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "streamd",
            *self._args,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**_environment(), "PYTHONUNBUFFERED": "1"},
            start_new_session=True,
            limit=1 << 20,
        )
        self._reader = asyncio.create_task(self._read())
        try:
            return await asyncio.wait_for(self._started, START_TIMEOUT)
        except TimeoutError:
            raise StartupError(self._explain("did not start in time")) from None

    @property
    def pid(self) -> int:
        """Process id of a started child."""
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    def signal(self, number: int) -> None:
        """Send a signal; a child that has ended is left alone."""
        if self._process is not None and self._process.returncode is None:
            # Not the process's own send_signal: that polls first, and so may take the exit code
            # away from the watcher of the loop, which then reports 255.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, number)

    async def wait(self, within: float) -> int:
        """Exit code, once it ended by itself; TimeoutError otherwise."""
        assert self._process is not None
        code = await asyncio.wait_for(self._process.wait(), within)
        if self._reader is not None:
            await self._reader
        return code

    async def stop(self) -> int:
        """SIGTERM, then SIGKILL if it does not drain in time; the exit code."""
        self.signal(signal.SIGTERM)
        try:
            return await self.wait(STOP_TIMEOUT)
        except TimeoutError:
            self.signal(signal.SIGKILL)
            return await self.wait(STOP_TIMEOUT)

    async def kill(self) -> None:
        """SIGKILL, and wait until it is gone. Nothing to do for one that never started."""
        if self._process is not None:
            self.signal(signal.SIGKILL)
            await self.wait(STOP_TIMEOUT)

    def result(self) -> Record:
        """The summary it wrote; StreamdError with its last words where there is none."""
        try:
            loaded: Record = json.loads(self._result.read_text())
        except (OSError, ValueError):
            raise StreamdError(self._explain("wrote no summary")) from None
        return loaded

    async def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        async for raw in self._process.stdout:
            line = raw.decode("utf-8", "replace").rstrip()
            self._lines.append(line)
            self._take(line)
        await self._process.wait()
        if not self._started.done():
            self._started.set_exception(self._early_end())

    def _take(self, line: str) -> None:
        try:
            record = json.loads(line)
        except ValueError:
            return
        if not isinstance(record, dict):
            return
        event = record.get("event")
        if event == "started" and not self._started.done():
            self._started.set_result(record)
        elif event == "report":
            self.report = record
        if self.on_record is not None:
            self.on_record(record)

    def _early_end(self) -> StreamdError:
        assert self._process is not None
        code = self._process.returncode
        kind = ConfigError if code == ConfigError.exit_code else StartupError
        if code not in (ConfigError.exit_code, StartupError.exit_code):
            return kind(self._explain("ended before it started"))
        return kind("\n".join(self._lines))

    def _explain(self, what: str) -> str:
        code = None if self._process is None else self._process.returncode
        said = "\n  ".join(self._lines) or "(nothing)"
        return f"streamd {self.role} {what} (exit code {code}); it said:\n  {said}"
