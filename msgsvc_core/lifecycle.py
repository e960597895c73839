"""The order in which a service starts and stops, so that nothing is lost."""

from collections.abc import Callable
from contextlib import AsyncExitStack

import structlog
from pluggy import HookRelay

from msgsvc_core.channels import Channels
from msgsvc_core.channels.project_channels.sync import ChannelSync
from msgsvc_core.channels.reception.receiver import UpdateReceiver
from msgsvc_core.config.settings import Settings
from msgsvc_core.db import Database
from msgsvc_core.events import Events
from msgsvc_core.files.media import MediaFiles
from msgsvc_core.jobs import JobQueue
from msgsvc_core.jobs.engine import Role, start_jobs
from msgsvc_core.jobs.runner import LaneRunner
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.hooks import await_in_order
from msgsvc_core.limits import Limiter
from msgsvc_core.projects import Projects
from msgsvc_core.security import SecretBox, key_canary

log = structlog.get_logger(__name__)


async def reads_its_secrets(*, db: Database, secrets: SecretBox) -> bool:
    """Whether one of the secret keys reads what the database holds; with the first start it can."""
    async with db.read() as tx:
        readable = await key_canary.is_readable(tx, secrets)
    if readable is None:
        async with db.transaction() as tx:
            await key_canary.plant(tx, secrets)
    return readable is not False


async def start_parts(
    *,
    undo: AsyncExitStack,
    role: Role,
    new_runner: Callable[..., LaneRunner],
    settings: Settings,
    clock: Clock,
    limiter: Limiter,
    jobs: JobQueue,
    events: Events,
    media: MediaFiles,
    channels: Channels,
    sync: ChannelSync,
    receiver: UpdateReceiver,
    projects: Projects,
    hook: HookRelay,
) -> None:
    """Starts what works on an open database, and puts what stops it on `undo`."""

    async def stop_plugins() -> None:
        for stopped in hook.on_stop():
            try:
                await stopped
            except Exception:
                # The edge to plugins: the stop goes on.
                log.exception("plugin_did_not_stop")

    undo.push_async_callback(limiter.close)
    await limiter.open()
    undo.push_async_callback(media.close)
    undo.push_async_callback(channels.close)
    undo.push_async_callback(sync.stop)
    await sync.start()
    await events.start()
    undo.push_async_callback(events.stop)
    undo.push_async_callback(stop_plugins)
    await await_in_order(hook.on_start())
    await start_jobs(new_runner, queue=jobs, clock=clock, settings=settings, undo=undo, role=role)
    if role == "serve":
        undo.push_async_callback(projects.key_uses.stop)
        await projects.key_uses.start()
        if not settings.quarantine:
            await receiver.start()
            undo.push_async_callback(receiver.stop)
