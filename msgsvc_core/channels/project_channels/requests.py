"""Channels whose bot a person makes on the platform in one step, without pasting a token."""

import secrets
import string
from collections.abc import Mapping, Sequence
from typing import Any

import structlog

from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.failures import ChannelNotReady, DeliveryError
from msgsvc_core.channels.project_channels import request_store as store
from msgsvc_core.channels.project_channels.models import (
    ChannelRequestAnswer,
    ChannelRequestFinished,
    ChannelRequestStatus,
    CreateChannelBody,
)
from msgsvc_core.channels.project_channels.request_store import ChannelRequest
from msgsvc_core.channels.project_channels.service import ProjectChannels
from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.updates import BotCreated
from msgsvc_core.config.settings import Settings
from msgsvc_core.db import Tx
from msgsvc_core.events import Events
from msgsvc_core.jobs.contract import Job, JobContext, JobSpec, NewJob
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import HOUR_MS, Clock, to_rfc3339
from msgsvc_core.kernel.errors import ApiError, Conflict, NotFound, ValidationFailed
from msgsvc_core.kernel.ids import new_id

#: Prefix of the ids.
ID_PREFIX = "chr"

#: The job that fetches the token of a bot that was made.
JOB = "channel.connect"

#: The event that tells what became of a bot that was made.
FINISHED = "channel_request.finished"

#: Attempts of it, over some hours.
MAX_ATTEMPTS = 12

#: Milliseconds for which a request waits for its bot.
OPEN_MS = HOUR_MS

#: Random characters of a username: nobody else can know it, and answer the request with a bot of theirs.
RANDOM = 10

#: The statuses of the API, by those of the rows.
STATUSES: Mapping[store.RequestStatus, ChannelRequestStatus] = {
    "waiting": "pending",
    "made": "connecting",
    "done": "connected",
    "failed": "failed",
    "cancelled": "cancelled",
}

log = structlog.get_logger(__name__)


class ChannelRequests:
    """Requests for bots that a messenger's own bot makes."""

    def __init__(
        self,
        *,
        clock: Clock,
        jobs: JobQueue,
        events: Events,
        channels: Channels,
        own_channels: ProjectChannels,
        settings: Settings,
    ) -> None:
        self._clock = clock
        self._jobs = jobs
        self._events = events
        self._channels = channels
        self._own_channels = own_channels
        self._plugins = {name: each.plugin for name, each in settings.channels.items()}

    @property
    def spec(self) -> JobSpec:
        return JobSpec(JOB, self.connect, max_attempts=MAX_ATTEMPTS, on_dead=self._on_dead)

    def manager(self, plugin: str) -> Channel | None:
        """The shared bot that makes bots of that kind; None if there is none, or its name is unknown yet."""
        for channel in self._channels.shared:
            is_ready = channel.bot_maker is not None and channel.profile is not None
            if is_ready and self._plugins[channel.name] == plugin:
                return channel
        return None

    async def create(self, tx: Tx, project_id: str, name: str, plugin: str) -> ChannelRequest:
        """A request that waits an hour for its bot. An earlier one for this channel is cancelled.

        Raises `ValidationFailed` if no bot makes others of that kind, and `Conflict` for a name in use and at
        the limit.
        """
        manager = self.manager(plugin)
        if manager is None or manager.bot_maker is None:
            raise ValidationFailed(
                "no bot here makes others of the kind {kind!r}", field="plugin", kind=plugin
            )
        await tx.lock(f"channels of {project_id}")
        now_ms = self._clock.now_ms()
        await store.cancel_waiting(tx, project_id, name, now_ms)
        waiting = await store.count_waiting(tx, project_id, now_ms)
        await self._own_channels.check_free(tx, project_id, name, plugin, waiting=waiting)
        alphabet = string.ascii_lowercase + string.digits
        random = "".join(secrets.choice(alphabet) for _ in range(RANDOM))
        request = ChannelRequest(
            project_id=project_id,
            request_id=new_id(ID_PREFIX),
            name=name,
            plugin=plugin,
            manager=manager.key,
            username=manager.bot_maker.suggest(name, random),
            created_at_ms=now_ms,
            expires_at_ms=now_ms + OPEN_MS,
        )
        await store.insert(tx, request)
        return request

    async def get(self, tx: Tx, project_id: str, request_id: str) -> ChannelRequest:
        """Raises `NotFound`, also for another project's request."""
        request = await store.find(tx, project_id, request_id)
        if request is None:
            raise NotFound("there is no such request")
        return request

    async def page(
        self, tx: Tx, project_id: str, after: str | None, limit: int
    ) -> list[ChannelRequest]:
        """Up to `limit` requests, newest first, from before `after`."""
        return await store.list_page(tx, project_id, after, limit)

    async def cancel(self, tx: Tx, project_id: str, request_id: str) -> ChannelRequest:
        """The request, whose link no longer leads to a channel.

        Raises `NotFound`, also for another project's request, and `Conflict` once its bot is made, or if it
        has ended.
        """
        cancelled = await store.cancel(tx, project_id, request_id, self._clock.now_ms())
        if cancelled is None:
            found = await self.get(tx, project_id, request_id)
            raise Conflict("it is {status}", field="status", status=self.status(found))
        return cancelled

    def status(self, request: ChannelRequest) -> ChannelRequestStatus:
        """The status in the form of the API."""
        return "expired" if self.has_expired(request) else STATUSES[request.status]

    def answer(self, request: ChannelRequest, title: str) -> ChannelRequestAnswer:
        """The request in the form of the API; `title` is as for `link`."""
        status = self.status(request)
        return ChannelRequestAnswer(
            channel_request_id=request.request_id,
            name=request.name,
            plugin=request.plugin,
            username=request.username,
            status=status,
            detail=request.detail,
            link=self.link(request, title) if status == "pending" else None,
            created_at=to_rfc3339(request.created_at_ms),
            expires_at=to_rfc3339(request.expires_at_ms),
        )

    def has_expired(self, request: ChannelRequest) -> bool:
        """Whether its bot has not come in time."""
        return request.status == "waiting" and request.expires_at_ms <= self._clock.now_ms()

    def link(self, request: ChannelRequest, title: str) -> str | None:
        """The URL on which the bot is made; `title` is the name that it gets there. None if the managing bot
        is gone."""
        manager = self._channels.get(request.manager)
        if manager is None or manager.bot_maker is None:
            return None
        try:
            return manager.bot_maker.link(request.username, title)
        except ChannelNotReady:
            return None

    async def record(self, tx: Tx, manager: str, created: BotCreated) -> None:
        """Has the token fetched of a bot that somebody was asked to make; any other is left alone.

        `manager` is the key of the bot that the platform told.
        """
        username, now_ms = created.username.lower(), self._clock.now_ms()
        request = await store.take(tx, manager, username, created.account, now_ms)
        if request is None:
            log.info("bot_not_requested", channel=manager)
            return
        await self._jobs.enqueue(
            tx,
            NewJob(
                JOB,
                {"project_id": request.project_id, "request_id": request.request_id},
                key=request.request_id,
                project_id=request.project_id,
            ),
        )

    async def connect(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """The job that makes a channel of a bot."""
        for job in jobs:
            await self._connect(ctx, job)

    async def _connect(self, ctx: JobContext, job: Job) -> None:
        project_id, request_id = job.payload["project_id"], job.payload["request_id"]
        async with ctx.reading() as tx:
            request = await store.find(tx, project_id, request_id)
        if request is None or request.status != "made" or request.account is None:
            async with ctx.completing(job):
                return
        options: dict[str, Any] | None = None
        problem = "the bot that manages it is gone"
        async with self._channels.borrow(request.manager) as manager:
            if manager is not None and manager.bot_maker is not None:
                try:
                    options = dict(await manager.bot_maker.settings_of(request.account))
                except DeliveryError as error:
                    if error.reason.retryable:
                        raise
                    problem = error.text
        async with ctx.completing(job) as tx:
            if options is not None:
                problem = await self._make_channel(tx, request, options) or ""
            await self._finish(tx, project_id, request_id, problem or None)
        if problem:
            log.warning("channel_not_connected", channel=request.manager, error=problem)

    async def _make_channel(
        self, tx: Tx, request: ChannelRequest, options: dict[str, Any]
    ) -> str | None:
        """Why the channel could not be made; None if it is."""
        body = CreateChannelBody(name=request.name, plugin=request.plugin, settings=options)
        try:
            await self._own_channels.create(tx, request.project_id, body)
        except ApiError as error:
            # The name was taken meanwhile, or the limit reached: refused before anything is written.
            return str(error)
        return None

    async def _on_dead(self, tx: Tx, job: Job, error: str) -> None:
        project_id, request_id = job.payload["project_id"], job.payload["request_id"]
        await self._finish(tx, project_id, request_id, error[:300])

    async def _finish(self, tx: Tx, project_id: str, request_id: str, problem: str | None) -> None:
        status: store.RequestStatus = "done" if problem is None else "failed"
        request = await store.finish(tx, project_id, request_id, status, problem)
        if request is None:
            return
        told = ChannelRequestFinished(
            channel_request_id=request_id,
            name=request.name,
            plugin=request.plugin,
            status="connected" if problem is None else "failed",
            detail=problem,
        )
        await self._events.emit(tx, project_id, FINISHED, told.model_dump())
