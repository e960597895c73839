"""Starts job processing in this process, and the wake-ups between processes, according to `jobs.runner`."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Literal, Protocol

from msgsvc_core.config.settings import Settings
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.jobs.runner import LaneRunner
from msgsvc_core.kernel.clock import Clock

#: `serve` handles requests and updates; `work` is one of the processes of `msgsvc worker`.
Role = Literal["serve", "work"]


class MakeRunner(Protocol):
    """Builds this process's runner; `pass_on` is called with lanes that other runners can share."""

    def __call__(self, *, pass_on: Callable[[str], None] | None = None) -> LaneRunner: ...


async def start_jobs(
    make_runner: MakeRunner,
    *,
    queue: JobQueue,
    clock: Clock,
    settings: Settings,
    undo: AsyncExitStack,
    role: Role,
) -> None:
    """Starts what the settings and the role require; `undo` gets the functions that stop it.

    In quarantine nothing: every message, webhook and other call of the service's own accord is a job.

    Raises `SettingsError` if RabbitMQ's client is not installed.
    """
    kind = settings.jobs.runner
    if settings.quarantine:
        return
    if kind == "embedded":
        runner = make_runner()
        undo.push_async_callback(runner.stop)
        await runner.start()
    elif kind == "dramatiq":
        await _start_with_broker(make_runner, queue, clock, settings, undo, role)


async def _start_with_broker(
    make_runner: MakeRunner,
    queue: JobQueue,
    clock: Clock,
    settings: Settings,
    undo: AsyncExitStack,
    role: Role,
) -> None:
    from msgsvc_core.jobs.broker import (  # noqa: PLC0415 - loads dramatiq only where it is used
        Announcer,
        Listener,
        close_broker,
        open_broker,
    )

    broker, broker_queue = open_broker(settings)
    undo.callback(close_broker, broker)
    announcer = Announcer(broker, broker_queue)
    undo.push_async_callback(asyncio.to_thread, announcer.stop)
    announcer.start()

    def announce(lane: str, run_at_ms: int) -> None:
        # The sweeper finds later jobs.
        if run_at_ms <= clock.now_ms():
            announcer.announce(lane)

    if role == "serve":
        queue.woken_by(announce)
        undo.callback(queue.woken_by, None)
        return
    runner = make_runner(pass_on=announcer.announce)
    listener = Listener(broker, broker_queue, runner.wake)

    async def stop() -> None:
        """Concurrently: the broker may respond slowly, and jobs have their own grace period."""
        await asyncio.gather(asyncio.to_thread(listener.stop), runner.stop())

    undo.push_async_callback(stop)
    await runner.start()
    listener.start()
