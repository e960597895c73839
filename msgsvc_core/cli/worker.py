"""`msgsvc worker`: runs background jobs in one or more processes."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import structlog
import typer
import uvloop

from msgsvc_core.cli.configuration import (
    ConfigOption,
    QuarantineOption,
    find_config,
    quarantined,
    read_settings,
)
from msgsvc_core.cli.tracing import exporting_spans
from msgsvc_core.config.settings import Settings
from msgsvc_core.kernel.errors import SettingsError
from msgsvc_core.server import STOP_SIGNALS, heeded, serving_metrics
from msgsvc_core.service import Service
from msgsvc_core.telemetry.logs import configure_logs
from msgsvc_core.telemetry.loop_watchdog import watched_loop

#: Seconds before a dead process is replaced: one that dies at once must not keep a core busy.
RESTART_S = 1.0

log = structlog.get_logger(__name__)

#: Seconds beyond `jobs.grace_s` for a process to close its connections.
CLOSE_S = 10.0

#: Seconds between checks of the processes.
LOOK_S = 0.1

#: Exit code of a process with an unusable configuration or database. Within the first `FIRST_S` seconds
#: (a busy machine starts processes slowly) it ends the worker, since another process would fail too; later
#: the process is replaced, since the database may be unavailable for a while.
UNUSABLE, FIRST_S = 2, 60.0


def worker(
    config: ConfigOption = None,
    processes: Annotated[
        int,
        typer.Option(
            "--processes", "-p", min=1, max=512, help="Number of processes; each uses one core."
        ),
    ] = 1,
    quarantine: QuarantineOption = False,
    one_of_many: Annotated[bool, typer.Option("--one-of-many", hidden=True)] = False,
    place: Annotated[int, typer.Option("--place", hidden=True)] = 0,
) -> None:
    """Run background jobs until Ctrl-C (needs jobs.runner = "dramatiq")."""
    settings = read_settings(config, **quarantined(quarantine))
    configure_logs(settings.log, for_good=True)
    if settings.jobs.runner != "dramatiq":
        raise SettingsError(
            f'jobs.runner: workers have work when it is "dramatiq"; it is "{settings.jobs.runner}"'
        )
    if processes == 1:
        with exporting_spans(settings):
            uvloop.run(_work(settings, one_of_many=one_of_many, place=place))
    else:
        command = ["--quarantine"] if settings.quarantine else []
        ran = _Processes(find_config(config), processes, settings.jobs.grace_s, command).run()
        raise typer.Exit(ran)


async def _work(settings: Settings, *, one_of_many: bool, place: int) -> None:
    """Runs jobs until a signal. The processes of a worker serve metrics on consecutive ports."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    if one_of_many:
        # Ctrl-C and the end of a terminal reach every process there; the parent stops its children itself.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        # A pipe from the parent, which is closed when the parent ends.
        loop.add_reader(sys.stdin.fileno(), ended.set)
    for number in heeded(STOP_SIGNALS):
        loop.add_signal_handler(number, ended.set)
    service = Service(settings)
    await service.start("work")
    try:
        if settings.log.format == "json":
            log.info("working", process=os.getpid(), quarantine=settings.quarantine)
        else:
            typer.echo(
                f"msgsvc works in process {os.getpid()}"
                + (", in quarantine: it runs no jobs" if settings.quarantine else "")
                + ("" if one_of_many else "; Ctrl-C ends it")
            )
        async with (
            watched_loop(service.metrics.registry),
            serving_metrics(service.metrics, settings, _metrics_port(settings, place)),
        ):
            await ended.wait()
        log.info("stopping")
        if one_of_many:
            loop.remove_reader(sys.stdin.fileno())
    finally:
        await service.stop()
        log.info("stopped")


def _metrics_port(settings: Settings, place: int) -> int | None:
    first = settings.metrics.worker_port
    return first + place if first else None


class _Processes:
    """Worker processes as children; one that dies is replaced."""

    def __init__(
        self, config: Path | None, count: int, grace_s: float, options: Sequence[str]
    ) -> None:
        self._command = [sys.executable, "-m", "msgsvc_core", "worker", "--one-of-many", *options]
        if config is not None:
            self._command += ["--config", str(config)]
        self._grace_s = grace_s
        self._children: list[subprocess.Popen[bytes] | None] = [None] * count
        self._start_at = [0.0] * count
        self._ending = False
        self._began = time.monotonic()

    def run(self) -> int:
        """Runs until a signal; returns the exit code."""
        for number in heeded(STOP_SIGNALS):
            signal.signal(number, self._end)
        code = 0
        while not self._ending:
            code = self._look()
            if code:
                break
            time.sleep(LOOK_S)
        stopped = self._stop()
        return code or stopped

    def _end(self, _number: int, _frame: object) -> None:
        self._ending = True

    def _look(self) -> int:
        """Replaces dead processes; returns an exit code if the worker must end instead, or 0."""
        now = time.monotonic()
        for place, child in enumerate(self._children):
            if child is None:
                if now >= self._start_at[place] and not self._ending:
                    command = [*self._command, "--place", str(place)]
                    self._children[place] = subprocess.Popen(command, stdin=subprocess.PIPE)
                continue
            code = child.poll()
            if code is None:
                continue
            self._forget(place)
            if code == UNUSABLE and now - self._began < FIRST_S:
                return code
            typer.echo(f"msgsvc: process {child.pid} ended with {code}; starting another", err=True)
            self._start_at[place] = now + RESTART_S
        return 0

    def _stop(self) -> int:
        """Stops all processes, and kills those that exceed the deadline; returns 1 if any failed."""
        for started in filter(None, self._children):
            started.terminate()
        deadline = time.monotonic() + self._grace_s + CLOSE_S
        failed = 0
        for place, child in enumerate(self._children):
            if child is None:
                continue
            try:
                failed |= child.wait(max(0.0, deadline - time.monotonic())) != 0
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
                failed = 1
            self._forget(place)
        return int(failed)

    def _forget(self, place: int) -> None:
        child, self._children[place] = self._children[place], None
        if child is not None and child.stdin is not None:
            child.stdin.close()
