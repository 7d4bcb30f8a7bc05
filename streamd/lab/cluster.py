"""Runs on a Dask cluster.

Workers need the same streamd as we have (checked: figures of two versions must not mix) and
the traces and films an experiment names at the same paths. Results come back to us; the
cluster stores nothing.
"""

from collections.abc import Generator, Sequence
from typing import Any

from streamd.errors import StartupError
from streamd.lab.execute import Execute, Outcome, attempt
from streamd.lab.extra import need
from streamd.lab.grid import Job
from streamd.lab.identity import code_digest

CONNECT_TIMEOUT = 10.0


class DaskCluster:
    """A `Backend` of the workers of the scheduler at `address`."""

    def __init__(self, execute: Execute, address: str) -> None:
        """`execute` is a function at the top of a module that workers can import."""
        self._execute = execute
        self._address = address

    def run(self, jobs: Sequence[Job]) -> Generator[Outcome, None, None]:
        """See `pool.Backend.run`. StartupError when the cluster is not there or has other code."""
        distributed = need("distributed")
        with self._connect(distributed) as client:
            self._same_code(client)
            submitted = {
                client.submit(
                    attempt, self._execute, job, key=f"streamd-{job.key}", pure=False
                ): job
                for job in jobs
            }
            try:
                for future in distributed.as_completed(list(submitted), loop=client.loop):
                    yield _outcome(future, submitted.pop(future))
            finally:
                client.cancel(list(submitted))

    def _connect(self, distributed: Any) -> Any:
        try:
            return distributed.Client(
                self._address, timeout=CONNECT_TIMEOUT, set_as_default=False, name="streamd-lab"
            )
        except (OSError, ValueError, TypeError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise StartupError(f"no Dask scheduler at {self._address}: {reason}") from None

    def _same_code(self, client: Any) -> None:
        digests = client.run(code_digest, on_error="return")
        if not digests:
            raise StartupError(f"the Dask scheduler at {self._address} has no workers")
        ours = _digest_here()
        other = [worker for worker, digest in digests.items() if digest != ours]
        if other:
            raise StartupError(f"Dask workers with another version of streamd: {', '.join(other)}")


def _digest_here() -> str:
    return code_digest()


def _outcome(future: Any, job: Job) -> Outcome:
    """What became of a job; the cluster itself may have failed it (a worker that died)."""
    if future.status == "finished":
        outcome: Outcome = future.result()
        return outcome
    if future.status == "error":
        error = future.exception()
        return Outcome(job, None, f"{type(error).__name__}: {error}\n", 0.0, "")
    return Outcome(job, None, f"the cluster gave it up: {future.status}\n", 0.0, "")
