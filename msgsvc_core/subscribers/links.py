"""Subscription links: opening one in a messenger subscribes to the project.

A link with an `external_id` identifies only the first person who opens it; anyone who opens it later
subscribes without one (docs/decisions/0019).
"""

import hashlib

from msgsvc_core.channels.inbound import InboundContext, InboundRule
from msgsvc_core.channels.updates import Started
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import Tx
from msgsvc_core.db.retention import RetentionRule
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.ids import new_token
from msgsvc_core.projects.service import Projects
from msgsvc_core.subscribers import link_store
from msgsvc_core.subscribers.consent import Consents
from msgsvc_core.subscribers.greetings import subscribed_to
from msgsvc_core.subscribers.models import CreateLinkBody
from msgsvc_core.subscribers.permissions.service import Permissions
from msgsvc_core.subscribers.service import Subscribers, check_external_id
from msgsvc_core.subscribers.tags.service import Tags

START_PREFIX = "sub_"

#: An expired link is of no use.
RETENTION = RetentionRule("core_links", "expires_at_ms")


class SubscriptionLinks:
    """Links that subscribe. One with an `external_id` is valid for `personal_link_s` seconds by default."""

    def __init__(
        self,
        *,
        clock: Clock,
        projects: Projects,
        subscribers: Subscribers,
        tags: Tags,
        permissions: Permissions,
        consents: Consents,
        personal_link_s: int,
    ) -> None:
        self._clock = clock
        self._projects = projects
        self._subscribers = subscribers
        self._tags = tags
        self._permissions = permissions
        self._consents = consents
        self._personal_link_s = personal_link_s

    async def create(self, tx: Tx, project_id: str, body: CreateLinkBody) -> tuple[str, int]:
        """The start payload of a new link, and its expiry in Unix milliseconds.

        Missing tags are created. Raises `ValidationFailed` for an unknown permission, `Conflict` beyond the
        limit of tags, `InvalidExternalId`.
        """
        if body.external_id is not None:
            check_external_id(body.external_id)
        await self._tags.ensure(tx, project_id, body.tags)
        await self._permissions.check(tx, project_id, body.permissions)
        token = new_token()
        lasts_s = body.expires_in
        if body.external_id is not None and "expires_in" not in body.model_fields_set:
            lasts_s = self._personal_link_s
        expires_at_ms = self._clock.now_ms() + lasts_s * 1000
        await link_store.insert(
            tx,
            project_id,
            _digest(token),
            tag_ids=await self._tags.ids_of(tx, project_id, body.tags),
            permissions=list(dict.fromkeys(body.permissions)),
            external_id=body.external_id,
            expires_at_ms=expires_at_ms,
        )
        return START_PREFIX + token, expires_at_ms

    def rules(self) -> list[InboundRule]:
        return [InboundRule("start", self._started, prefix=START_PREFIX)]

    async def _started(self, ctx: InboundContext) -> bool:
        assert isinstance(ctx.update, Started)
        token = ctx.update.payload.removeprefix(START_PREFIX)
        link = await link_store.find(ctx.tx, _digest(token), self._clock.now_ms())
        if link is None or not ctx.serves(link["project_id"]):
            return False
        project_id = link["project_id"]
        project = await self._projects.get(ctx.tx, project_id)
        if project.status != "active":
            return False
        await ctx.enter_project(project_id)
        external_id = link["external_id"]
        if external_id is not None and not await link_store.use(ctx.tx, project_id, link["digest"]):
            # Another user opened it concurrently.
            external_id = None
        holder = None
        if external_id is not None:
            me = ctx.channel_name, ctx.update.user.user_id
            holder = await self._consents.holder(ctx.tx, project_id, external_id, me)
        tags = await self._tags.names_of(ctx.tx, project_id, link["tag_ids"])
        subscriber, has_begun = await self._subscribers.subscribe(
            ctx.tx,
            project_id,
            ctx.channel,
            ctx.update.user,
            ctx.update.chat_id,
            source="deep_link",
            tags=tags,
            permissions=link["permissions"],
            external_id=external_id if holder is None else None,
        )
        if holder is not None:
            await self._consents.ask(ctx.tx, holder, subscriber)
        if not has_begun:
            # New subscribers get the welcome; existing ones get a reply too.
            said = subscribed_to(ctx._, project.public_name)
            await ctx.reply(OutgoingMessage(said))
        return True


def _digest(token: str) -> str:
    # A token has 128 random bits, so an unkeyed digest is enough.
    return hashlib.sha256(token.encode()).hexdigest()
