"""Runs in worker processes of this machine.

Each worker has a pipe of its own, so that one that dies (a crash in a codec, no memory)
takes only its own run with it: the run is reported with the exit code, a new worker takes the
next. A worker that loses its parent ends after the run it is at.
"""

import contextlib
import multiprocessing
import platform
import signal
import sys
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Protocol

from streamd.lab.execute import Execute, Outcome, attempt
from streamd.lab.grid import Job

STOP_TIMEOUT = 5.0


class Backend(Protocol):
    """Where runs are done."""

    def run(self, jobs: Sequence[Job]) -> Generator[Outcome, None, None]:
        """Do the jobs and give their outcomes as they end; closed early, it stops the rest."""


@dataclass(slots=True)
class _Worker:
    process: BaseProcess
    pipe: Connection
    job: Job


class ProcessPool:
    """A `Backend` of `workers` processes."""

    def __init__(self, execute: Execute, workers: int) -> None:
        """`execute` is a function at the top of a module that workers can import."""
        self._execute = execute
        self._limit = workers
        self._context = multiprocessing.get_context("spawn")
        self._workers: dict[Connection, _Worker] = {}

    def run(self, jobs: Sequence[Job]) -> Generator[Outcome, None, None]:
        """See `Backend.run`."""
        waiting = deque(jobs)
        try:
            while waiting and len(self._workers) < self._limit:
                self._start(waiting.popleft())
            while self._workers:
                for pipe in wait(list(self._workers)):
                    assert isinstance(pipe, Connection)
                    yield self._collect(pipe, waiting)
        finally:
            for worker in self._workers.values():
                worker.process.terminate()
            for pipe in list(self._workers):
                self._end(pipe)

    def _start(self, job: Job) -> None:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(theirs, self._execute), daemon=True)
        process.start()
        theirs.close()
        self._workers[ours] = _Worker(process, ours, job)
        # A worker that is gone already shows when its pipe is read.
        with contextlib.suppress(OSError):
            ours.send(job)

    def _collect(self, pipe: Connection, waiting: deque[Job]) -> Outcome:
        """What this worker has to say, or that it is dead; it or a successor gets the next job."""
        worker = self._workers[pipe]
        try:
            outcome = pipe.recv()
        except (EOFError, OSError):
            outcome = self._dead(worker)
            if waiting:
                self._start(waiting.popleft())
            return outcome
        assert isinstance(outcome, Outcome)
        if waiting:
            worker.job = waiting.popleft()
            with contextlib.suppress(OSError):
                pipe.send(worker.job)
        else:
            self._end(pipe)
        return outcome

    def _dead(self, worker: _Worker) -> Outcome:
        self._end(worker.pipe)
        code = worker.process.exitcode
        how = f"exit code {code}" if code is None or code >= 0 else _signal_name(-code)
        return Outcome(worker.job, None, f"the worker process ended: {how}\n", 0.0, platform.node())

    def _end(self, pipe: Connection) -> None:
        """Let a worker go and wait until it is gone."""
        process = self._workers.pop(pipe).process
        pipe.close()
        process.join(STOP_TIMEOUT)
        if process.exitcode is None:
            process.kill()
            process.join()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _stop(number: int, frame: object) -> None:
    sys.exit(128 + number)


def _serve(pipe: Connection, execute: Execute) -> None:
    """A worker's life. Ctrl-C goes to the whole group: it is for the parent to decide.

    SIGTERM unwinds, so that a live run takes its daemons along.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _stop)
    with contextlib.suppress(EOFError, OSError):
        while True:
            pipe.send(attempt(execute, pipe.recv()))
