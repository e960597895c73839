"""Single-use links that bind a member to a messenger account."""

import hashlib

from msgsvc_core.channels.inbound import InboundContext, InboundRule
from msgsvc_core.channels.updates import Started
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import Row, Tx
from msgsvc_core.db.retention import RetentionRule
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Conflict
from msgsvc_core.kernel.ids import new_token
from msgsvc_core.members import store
from msgsvc_core.members.service import Members
from msgsvc_core.projects.service import Projects
from msgsvc_core.subscribers.service import Subscribers

START_PREFIX = "mem_"

#: An expired link is of no use.
RETENTION = RetentionRule("core_member_links", "expires_at_ms")


class MemberLinks:
    """Links by which members connect a messenger."""

    def __init__(
        self, *, clock: Clock, projects: Projects, subscribers: Subscribers, members: Members
    ) -> None:
        self._clock = clock
        self._projects = projects
        self._subscribers = subscribers
        self._members = members

    async def create(
        self, tx: Tx, project_id: str, member_id: str, expires_in_s: int
    ) -> tuple[str, int]:
        """The start payload of a new link, and its expiry in Unix milliseconds.

        Raises `NotFound`, and `Conflict` for a removed member.
        """
        member = await self._members.get(tx, project_id, member_id)
        if member.status != "active":
            raise Conflict("{member_id} was removed; add them anew", member_id=member_id)
        token = new_token()
        expires_at_ms = self._clock.now_ms() + expires_in_s * 1000
        await store.insert_link(tx, project_id, member_id, _digest(token), expires_at_ms)
        return START_PREFIX + token, expires_at_ms

    def rules(self) -> list[InboundRule]:
        return [InboundRule("start", self._started, prefix=START_PREFIX)]

    async def _started(self, ctx: InboundContext) -> bool:
        assert isinstance(ctx.update, Started)
        digest = _digest(ctx.update.payload.removeprefix(START_PREFIX))
        link = await self._find(ctx, digest)
        if link is None or not ctx.serves(link["project_id"]):
            return False
        project_id = link["project_id"]
        project = await self._projects.get(ctx.tx, project_id)
        if project.status != "active":
            return False
        # Waits for a concurrent use of the link, or removal of the member; its result is visible now.
        member = await store.lock(ctx.tx, project_id, link["member_id"])
        link = await self._find(ctx, digest)
        if member is None or link is None or not await self._may_use(ctx, link):
            return False
        await ctx.enter_project(project_id)
        subscriber = await self._subscribers.ensure(
            ctx.tx,
            project_id,
            ctx.channel,
            ctx.update.user,
            ctx.update.chat_id,
            source="deep_link",
        )
        await store.use_link(ctx.tx, digest, subscriber.subscriber_id)
        await self._members.bind(ctx.tx, project_id, member.member_id, subscriber.subscriber_id)
        _ = ctx._
        said = _(
            "{name}, you are now an agent of {project} here.",
            name=member.name,
            project=project.public_name,
        )
        await ctx.reply(OutgoingMessage(said))
        return True

    async def _find(self, ctx: InboundContext, digest: str) -> Row | None:
        return await store.find_link(ctx.tx, digest, self._clock.now_ms())

    async def _may_use(self, ctx: InboundContext, link: Row) -> bool:
        """Whether the link is unused, or was used by this person."""
        if link["used_by"] is None:
            return True
        key = (link["project_id"], link["used_by"])
        opened_by = (await self._subscribers.get_many(ctx.tx, [key])).get(key)
        return opened_by is not None and (opened_by.bot, opened_by.user_id) == (
            ctx.channel,
            ctx.update.user.user_id,
        )


def _digest(token: str) -> str:
    # A token has 128 random bits, so an unkeyed digest is enough.
    return hashlib.sha256(token.encode()).hexdigest()
