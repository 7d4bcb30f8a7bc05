"""The life of a daemon process: start, run, drain, exit code.

Everything runs in one task group under one event loop. A daemon's own module
is a coroutine that is given a `Lifecycle`: it binds and starts, calls
`started`, waits for `stopping`, drains and returns.

The first SIGTERM or SIGINT asks for a drain, bounded by `shutdown_timeout`; the
second one kills at once, by the signal itself, so that shells and service managers see it.
"""

import asyncio
import gc
import os
import random
import signal
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from streamd import __version__
from streamd.clock import Clock, MonotonicClock
from streamd.config.model import DaemonConfig
from streamd.config.show import as_toml
from streamd.config.units import HostPort
from streamd.daemon.notify import Notifier
from streamd.errors import StreamdError
from streamd.histogram import Histogram
from streamd.io.lag import LagMeter
from streamd.observability import logs
from streamd.observability.console import say_error
from streamd.observability.endpoints import pages
from streamd.observability.http import HttpServer
from streamd.observability.metrics import LAG_BOUNDS, new_registry
from streamd.observability.results import check_writable

LAG_INTERVAL = 0.25
"""How often the event loop's lateness is measured (s)."""
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class DrainTimeout(StreamdError):
    """The drain took longer than `shutdown_timeout`."""


class Readiness:
    """What must be there before the daemon is of use, and what of it still is missing."""

    def __init__(self, *parts: str) -> None:
        self._missing = dict.fromkeys(parts)

    def wait_for(self, part: str) -> None:
        """Not ready without `part`, from now on."""
        self._missing[part] = None

    def have(self, part: str) -> None:
        """`part` is there."""
        self._missing.pop(part, None)

    def missing(self) -> list[str]:
        """What is not there, in the order it was asked for; empty = ready."""
        return list(self._missing)


class Lifecycle:
    """What a daemon's main coroutine gets: clock, metrics, readiness, tasks, and when to stop."""

    def __init__(self, config: DaemonConfig, clock: Clock, notifier: Notifier) -> None:
        self.config = config
        self.clock = clock
        self.log = logs.get_logger(f"streamd.daemon.{config.role}")
        self.readiness = Readiness("starting")
        self.stopping = asyncio.Event()
        self.stop_reason = ""
        """Why the drain began: a signal's name, or what was given to `request_stop`."""
        self.seed = random.Random().getrandbits(63) if config.seed is None else config.seed
        self._lag = Histogram(LAG_BOUNDS)
        self.registry = new_registry(self._lag, os.environ.get("STREAMD_REVISION", ""))
        self._notifier = notifier
        self.http_address: HostPort | None = None
        """Where the HTTP endpoints are really bound; None without them."""
        self._group: asyncio.TaskGroup | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    def rng(self, name: str) -> random.Random:
        """The random numbers of one component: the same for the same seed and name."""
        return random.Random(f"{self.seed}:{name}")

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Run a task beside main: its failure is the daemon's; it is cancelled when main ends."""
        assert self._group is not None
        task = self._group.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def request_stop(self, reason: str) -> None:
        """Begin the drain: the source ended, the time is up, a signal came. Only once."""
        if self.stopping.is_set():
            return
        self.stop_reason = reason
        self.readiness.wait_for("stopping")
        self._notifier.stopping()
        self.log.info("stopping", reason=reason)
        self.stopping.set()

    def started(self, **addresses: object) -> None:
        """Sockets are bound and the session runs: say so, with the addresses really bound."""
        http = {"http": str(self.http_address)} if self.http_address else {}
        bound = {name: str(address) for name, address in addresses.items()}
        self.log.info(
            "started", version=__version__, pid=os.getpid(), seed=self.seed, **bound, **http
        )
        self.readiness.have("starting")
        self._notifier.ready()
        # What exists now stays: keep it out of the collector's full passes, which stall packets.
        gc.collect()
        gc.freeze()

    def status(self, text: str) -> None:
        """One line for the service manager's status display."""
        self._notifier.status(text)

    async def supervise(self, main: Callable[["Lifecycle"], Awaitable[None]]) -> None:
        """Run `main` to its end with everything a daemon has beside it."""
        loop = asyncio.get_running_loop()
        crashed: asyncio.Future[None] = loop.create_future()
        loop.set_exception_handler(lambda _, context: _crash(crashed, context))
        server, meter = self._http_server(), self._lag_meter()
        try:
            async with asyncio.TaskGroup() as self._group:
                self.http_address = await self._listen(server)
                worker = self._group.create_task(_as_coroutine(main(self)), name="main")
                self.spawn(_raise_from(crashed), "crash-guard")
                self.spawn(self._bound_drain(worker), "drain-guard")
                if self.config.duration is not None:
                    self.spawn(self._stop_after(self.config.duration), "duration")
                await worker
                for task in list(self._tasks):
                    task.cancel()
        finally:
            meter.close()
            await server.close()

    def _http_server(self) -> HttpServer:
        return HttpServer(
            pages(
                role=self.config.role,
                registry=self.registry,
                missing=self.readiness.missing,
                config_text=as_toml(self.config),
            )
        )

    async def _listen(self, server: HttpServer) -> HostPort | None:
        port = self.config.metrics_port
        return None if port is None else await server.start(self.config.metrics_host, port)

    async def _stop_after(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self.request_stop("duration")

    async def _bound_drain(self, worker: asyncio.Task[None]) -> None:
        await self.stopping.wait()
        limit = self.config.shutdown_timeout
        done, _ = await asyncio.wait({worker}, timeout=limit)
        if not done:
            raise DrainTimeout(f"not drained within shutdown_timeout ({limit:g} s); giving up")

    def _lag_meter(self) -> LagMeter:
        """Also feeds the watchdog: from this loop, so that a stuck one is seen."""
        watchdog = self._notifier.watchdog_interval

        def measured(lag: float) -> None:
            self._lag.observe(lag)
            if watchdog is not None:
                self._notifier.alive()

        interval = LAG_INTERVAL if watchdog is None else min(LAG_INTERVAL, watchdog)
        loop = asyncio.get_running_loop()
        return LagMeter(loop, self.clock, measured, interval=interval)


def run_daemon(
    main: Callable[[Lifecycle], Awaitable[None]],
    config: DaemonConfig,
    *,
    clock: Clock | None = None,
) -> int:
    """Run a daemon to its end and give the process's exit code.

    0 after a clean drain or a normal end; a StreamdError ends with one line on stderr and
    its own exit code; anything else is a bug: one critical log line and 1.
    """
    clock = clock or MonotonicClock()
    logs.configure(role=config.role, clock=clock, form=config.log_format, level=config.log_level)
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(_start(main, config, clock))
    except BaseExceptionGroup as group:
        return _report(config.role, _worst(group))
    except Exception as error:
        return _report(config.role, error)
    return 0


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's where it is installed, else None for asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def _start(
    main: Callable[[Lifecycle], Awaitable[None]], config: DaemonConfig, clock: Clock
) -> None:
    if config.json_file is not None:
        check_writable(config.json_file)
    lifecycle = Lifecycle(config, clock, Notifier(os.environ))
    with _signal_handlers(lifecycle):
        await lifecycle.supervise(main)


@contextmanager
def _signal_handlers(lifecycle: Lifecycle) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def first(number: signal.Signals) -> None:
        # From here on the kernel acts: a second signal works even if our loop is stuck.
        for each in _SIGNALS:
            loop.remove_signal_handler(each)
            signal.signal(each, signal.SIG_DFL)
        lifecycle.request_stop(number.name)

    for number in _SIGNALS:
        loop.add_signal_handler(number, first, number)
    try:
        yield
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
            signal.signal(number, before[number])


async def _as_coroutine(work: Awaitable[None]) -> None:
    await work


async def _raise_from(crashed: asyncio.Future[None]) -> None:
    await crashed


def _crash(crashed: "asyncio.Future[None]", context: dict[str, Any]) -> None:
    """A callback or a forgotten task failed: the daemon must not live on half dead."""
    error = context.get("exception")
    if not crashed.done():
        crashed.set_exception(error or RuntimeError(context.get("message", "event loop error")))


def _worst(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The exception to report: a bug before an error that was raised on purpose."""
    leaves = list(_leaves(group))
    bugs = [leaf for leaf in leaves if not isinstance(leaf, StreamdError)]
    return (bugs or leaves)[0]


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _leaves(part)
    else:
        yield error


def _report(role: str, error: BaseException) -> int:
    if isinstance(error, StreamdError):
        return say_error(f"streamd {role}", error)
    if not isinstance(error, Exception):
        raise error
    log = logs.get_logger(f"streamd.daemon.{role}")
    log.critical("unhandled_exception", exc_info=error)
    return 1
