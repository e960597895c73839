"""Validates messages before they are queued: recipient, content and channel."""

import json
from collections.abc import Awaitable, Callable, Collection

from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.registry import Channels
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import Database, DataLoader, Tx
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.messages import previews
from msgsvc_core.messages.limits import MessageLimits
from msgsvc_core.messages.models import METADATA_BYTES, PreparedMessage, SendBody
from msgsvc_core.messages.templates.service import Templates
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
    ) -> None:
        self._channels = channels
        self._subscribers = subscribers
        self._templates = templates
        self._limits = limits
        #: Batches the lookups of concurrent sends.
        self._permissions = DataLoader(db, permissions.find_existing)

    async def judge(
        self,
        project_id: str,
        body: SendBody,
        tx: Tx | None = None,
        *,
        pause: Callable[[], Awaitable[None]] | None = None,
    ) -> PreparedMessage:
        """See `Messages.judge`."""
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
