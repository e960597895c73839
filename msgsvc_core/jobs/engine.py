"""Who works on jobs in this process, and who tells whom of new ones: by `jobs.runner`."""

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Literal

from msgsvc_core.jobs.runner import LaneRunner

if TYPE_CHECKING:
    from msgsvc_core.service import Service

#: `serve` takes requests and updates; `work` is one of the processes of `msgsvc worker`.
Role = Literal["serve", "work"]


async def start_jobs(service: "Service", undo: AsyncExitStack, role: Role) -> None:
    """Starts what the settings and the role ask for; `undo` gets what ends it.

    Raises `SettingsError` when RabbitMQ's client is missing.
    """
    kind = service.settings.jobs.runner
    if kind == "embedded":
        runner = LaneRunner(service, service.job_specs, service.lane_specs)
        undo.push_async_callback(runner.stop)
        await runner.start()
    elif kind == "dramatiq":
        await _start_with_broker(service, undo, role)


async def _start_with_broker(service: "Service", undo: AsyncExitStack, role: Role) -> None:
    from msgsvc_core.jobs.broker import (  # noqa: PLC0415 - loads dramatiq, only for who asked
        Announcer,
        Listener,
        close_broker,
        open_broker,
    )

    broker, queue = open_broker(service.settings)
    undo.callback(close_broker, broker)
    announcer = Announcer(broker, queue)
    undo.push_async_callback(asyncio.to_thread, announcer.stop)
    announcer.start()

    def announce(lane: str, run_at_ms: int) -> None:
        # What is for later is the sweeper's.
        if run_at_ms <= service.clock.now_ms():
            announcer.announce(lane)

    if role == "serve":
        service.jobs.woken_by(announce)
        undo.callback(service.jobs.woken_by, None)
        return
    runner = LaneRunner(service, service.job_specs, service.lane_specs, pass_on=announcer.announce)
    listener = Listener(broker, queue, runner.wake)

    async def stop() -> None:
        """Both at once: the broker may be slow to answer, and jobs have their own time to end."""
        await asyncio.gather(asyncio.to_thread(listener.stop), runner.stop())

    undo.push_async_callback(stop)
    await runner.start()
    listener.start()
