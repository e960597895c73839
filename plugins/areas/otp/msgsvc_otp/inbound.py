"""Code requests in the bot: the first user who opens the link is subscribed and gets the code."""

import structlog

from msgsvc_core.channels import InboundContext, InboundRule, Started
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import ApiError, TooEarly
from msgsvc_core.projects.models import Project
from msgsvc_core.projects.service import Projects
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_otp import payloads, texts
from msgsvc_otp.errors import OtpRateLimited
from msgsvc_otp.models import OneTimeCode
from msgsvc_otp.service import OneTimeCodes

log = structlog.get_logger(__name__)


class CodeBot:
    """Handles opened links. A request has no user until its code was sent."""

    def __init__(
        self, *, clock: Clock, projects: Projects, subscribers: Subscribers, codes: OneTimeCodes
    ) -> None:
        self._clock = clock
        self._projects = projects
        self._subscribers = subscribers
        self._codes = codes

    def rules(self) -> list[InboundRule]:
        return [InboundRule("start", self._started, prefix=payloads.PREFIX)]

    async def _started(self, ctx: InboundContext) -> bool:
        """What can't be had any more is left to the core's answer."""
        assert isinstance(ctx.update, Started)
        token = payloads.read_payload(ctx.update.payload)
        request = token and await self._codes.lock_requested(ctx.tx, token)
        if not request or not ctx.serves(request.project_id):
            return False
        project = await self._projects.get(ctx.tx, request.project_id)
        if project.status != "active":
            return False
        if request.stored_status == "waiting":
            return await self._open(ctx, request, project)
        if request.is_live(self._clock.now_ms()) and await self._is_of(ctx, request):
            # It can't be sent again: nobody knows it any more but they.
            await ctx.reply(texts.look_above(ctx._, project.public_name))
            return True
        return False

    async def _open(self, ctx: InboundContext, request: OneTimeCode, project: Project) -> bool:
        if request.status(self._clock.now_ms()) == "expired":
            return False
        if request.channel not in {None, ctx.channel_name}:
            return False
        try:
            # All or nothing: if the code cannot be sent, nobody is subscribed, and the link stays valid.
            async with ctx.tx.savepoint():
                await self._deliver(ctx, request)
        except (TooEarly, OtpRateLimited) as error:
            await ctx.reply(texts.wait(ctx._, error.retry_after_s or 1))
        except ApiError as error:
            log.warning("otp_not_sent", otp_id=request.otp_id, code=error.code, error=error.message)
            await ctx.reply(texts.not_now(ctx._, project.public_name))
        return True

    async def _deliver(self, ctx: InboundContext, request: OneTimeCode) -> None:
        await ctx.enter_project(request.project_id)
        subscriber = await self._subscribers.ensure(
            ctx.tx,
            request.project_id,
            ctx.channel,
            ctx.update.user,
            ctx.update.chat_id,
            source="otp",
        )
        await self._codes.issue(ctx.tx, request, subscriber)

    async def _is_of(self, ctx: InboundContext, request: OneTimeCode) -> bool:
        """Whether the code was sent to this person."""
        assert request.subscriber_id is not None
        subscriber = await self._subscribers.get(ctx.tx, request.project_id, request.subscriber_id)
        return (subscriber.bot, subscriber.user_id) == (ctx.channel, ctx.update.user.user_id)
