"""Validates messages before they are queued: recipient, content and channel."""

import json
from collections.abc import Awaitable, Callable, Collection

from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.registry import Channels
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import Database, DataLoader, Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Conflict, NotFound, ValidationFailed
from msgsvc_core.messages import previews
from msgsvc_core.messages.bodies import SendBody
from msgsvc_core.messages.fields import METADATA_BYTES
from msgsvc_core.messages.limits import MessageLimits
from msgsvc_core.messages.models import PreparedMessage, PreparedRoute
from msgsvc_core.messages.templates.service import Templates
from msgsvc_core.routing import Routes
from msgsvc_core.subscribers.models import Recipient
from msgsvc_core.subscribers.permissions.service import Permissions
from msgsvc_core.subscribers.preferences_links import VARIABLE
from msgsvc_core.subscribers.service import Subscribers


class MessageValidation:
    """Validates messages, and resolves their recipients."""

    def __init__(
        self,
        *,
        db: Database,
        channels: Channels,
        subscribers: Subscribers,
        permissions: Permissions,
        templates: Templates,
        limits: MessageLimits,
        routes: Routes,
        clock: Clock,
    ) -> None:
        self._clock = clock
        self._chooser = routes.chooser
        #: One lookup for the concurrent sends by a route.
        self._routes = DataLoader(db, routes.find_many)
        self._channels = channels
        self._subscribers = subscribers
        self._templates = templates
        self._limits = limits
        #: Batches the lookups of concurrent sends.
        self._permissions = DataLoader(db, permissions.find_existing)

    async def prepare(
        self,
        project_id: str,
        body: SendBody,
        tx: Tx | None = None,
        *,
        pause: Callable[[], Awaitable[None]] | None = None,
        route_id: str | None = None,
    ) -> PreparedMessage:
        """See `Messages.prepare`."""
        if body.route_id is not None and body.external_id is None:
            raise ValidationFailed("is required with route_id", field="external_id")
        if (route_id := body.route_id or route_id) is not None:
            return await self._judge_routed(project_id, body, route_id, tx, pause)
        receiver = await self._subscribers.get_recipient(
            project_id,
            subscriber_id=body.subscriber_id,
            external_id=body.external_id,
            channel=body.channel,
            tx=tx,
        )
        await self._check_permission(project_id, body.permission, tx)
        content = await self._content(project_id, body, receiver, tx)
        channel = await self._channels.get_bot(project_id, receiver.bot, receiver.channel)
        if pause is not None:
            await pause()
        self._check(channel, content, body)
        return PreparedMessage(receiver, channel, content)

    async def _judge_routed(
        self,
        project_id: str,
        body: SendBody,
        route_id: str,
        tx: Tx | None,
        pause: Callable[[], Awaitable[None]] | None,
    ) -> PreparedMessage:
        """A message that begins at the first step of a route by which the person can be reached now."""
        route = await self._routes.get((project_id, route_id), tx)
        if route is None:
            raise NotFound("there is no route {route_id!r}", route_id=route_id)
        await self._check_permission(project_id, body.permission, tx)
        choice = await self._chooser.choose(
            project_id,
            route.steps,
            now_ms=self._clock.now_ms(),
            subscriber_id=body.subscriber_id,
            external_id=body.external_id,
            permission=body.permission,
            tx=tx,
        )
        if not choice.candidates:
            why = ", ".join(f"{skip.channel}: {skip.reason}" for skip in choice.skipped)
            raise Conflict(
                "no step of the route reaches this person now ({why})", field="route_id", why=why
            )
        first = choice.candidates[0]
        content = await self._content(project_id, body, first.recipient, tx)
        if pause is not None:
            await pause()
        self._check(first.channel, content, body)
        before = tuple(skip for skip in choice.skipped if skip.step < first.step)
        prepared = PreparedRoute(route_id, route.steps, first.step, before)
        return PreparedMessage(first.recipient, first.channel, content, prepared)

    def previews(
        self, project_id: str, message: OutgoingMessage, channels: Collection[str] | None = None
    ) -> list[previews.Preview]:
        """Previews of a message on the project's channels, or on those in `channels`."""
        theirs = self._channels.list_for_project(project_id)
        shown = [one for one in theirs if channels is None or one.name in channels]
        return previews.previews(shown, message, self._limits)

    def check_content(self, channel: Channel, content: OutgoingMessage) -> None:
        """Raises `ValidationFailed` for a message that exceeds the limits, or that the channel does not
        support."""
        self._limits.check_content(channel, content)

    def check_size(self, content: OutgoingMessage) -> None:
        """Raises `ValidationFailed` for a message that exceeds the limits of the settings."""
        self._limits.check_size(content)

    async def _content(
        self, project_id: str, body: SendBody, receiver: Recipient, tx: Tx | None
    ) -> OutgoingMessage:
        """The content; a template is rendered now, so that later changes don't affect it."""
        if body.template is None:
            return body.to_message()
        own = {VARIABLE: self._subscribers.preferences.url(project_id, receiver.subscriber_id)}
        rendered = await self._templates.render(
            project_id, body.template, {**(body.variables or {}), **own}, receiver.lang, tx
        )
        return rendered.to_message(silent=body.silent)

    async def _check_permission(self, project_id: str, key: str | None, tx: Tx | None) -> None:
        if key is not None and not await self._permissions.get((project_id, key), tx):
            raise ValidationFailed(
                "this project has no permission {key!r}", field="permission", key=key
            )

    def _check(self, channel: Channel, content: OutgoingMessage, body: SendBody) -> None:
        """Checks the limits, and the channel's capabilities."""
        self.check_content(channel, content)
        if body.metadata is not None and len(json.dumps(body.metadata)) > METADATA_BYTES:
            raise ValidationFailed(
                "must be at most {limit} bytes as JSON", field="metadata", limit=METADATA_BYTES
            )
