"""Sends what was posted to a gateway: to the first channel that takes it."""

from dataclasses import replace

from msgsvc_core.billing import BillingGate, Charge
from msgsvc_core.channels import Channel, OutgoingMessage
from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.system_messages.outbox import BotOutbox, OnComplete
from msgsvc_core.content.outgoing import Button
from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import HOUR_MS, Clock
from msgsvc_core.kernel.errors import Conflict, NotFound, ValidationFailed
from msgsvc_core.kernel.i18n import Texts, reported_tag
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.messages.service import Messages
from msgsvc_core.messages.templates.models import StoredTemplate
from msgsvc_core.messages.templates.service import Templates
from msgsvc_core.projects.service import Projects
from msgsvc_core.security import SecretBox
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_gateway import store, texts
from msgsvc_gateway.errors import GatewayRateLimited, GatewayRecipientUnreachable
from msgsvc_gateway.models import Gateway, GatewayMessage, Submitted
from msgsvc_gateway.recipients import Recipients, hint
from msgsvc_gateway.settings import GatewaySettings

#: What is charged for (hook `charge`).
OPERATION = "gateway.send"

#: Key of the template for every code; `gateway_<purpose>` comes before it.
TEMPLATE = "gateway"

#: What a template must show.
CODE_VARIABLE = "code"

#: The job that gets the outcome of a call.
TOLD = "gateway.told"


class Wording:
    """The message for what was submitted: in the project's words, the sender's or ours."""

    def __init__(self, *, projects: Projects, templates: Templates, texts: Texts) -> None:
        self._projects = projects
        self._templates = templates
        self._texts = texts

    def language(self, tag: str | None, subscriber: Subscriber) -> str:
        """The language of ours for a sender's tag, such as `ru_RU`; without one, the person's."""
        return self._texts.choose(tag, subscriber.lang)

    async def message(
        self, tx: Tx, project_id: str, submitted: Submitted, lang: str
    ) -> OutgoingMessage:
        """The message for a reader of `lang`.

        Raises `ValidationFailed` for a project's template that does not show the code, or has unknown
        variables.
        """
        _ = self._texts.into(lang, __name__)
        project = await self._projects.get(tx, project_id)
        template = await self._template(tx, project_id, submitted) if submitted.code else None
        if template is not None:
            content = await self._render(tx, template, submitted, project.public_name, lang)
        elif submitted.text:
            content = OutgoingMessage(submitted.text)
        else:
            text = texts.code_text(
                _, project=project.public_name, purpose=submitted.purpose, code=submitted.code
            )
            content = OutgoingMessage(text)
        if not submitted.link:
            return content
        button = Button(submitted.label or texts.link_label(_), url=submitted.link)
        return replace(content, buttons=(*content.buttons, (button,)))

    async def _template(
        self, tx: Tx, project_id: str, submitted: Submitted
    ) -> StoredTemplate | None:
        for key in (f"{TEMPLATE}_{submitted.purpose}", TEMPLATE):
            try:
                return await self._templates.find(tx, project_id, key)
            except NotFound:
                continue
        return None

    async def _render(
        self, tx: Tx, template: StoredTemplate, submitted: Submitted, project: str, lang: str
    ) -> OutgoingMessage:
        self._templates.check_shows(template, CODE_VARIABLE)
        variables = {
            CODE_VARIABLE: submitted.code,
            "project": project,
            "purpose": submitted.purpose,
        }
        try:
            content = await self._templates.render(
                template.project_id, template.key, variables, lang, tx
            )
        except ValidationFailed as error:
            raise error.said_as("template {key!r}: {reason}", key=template.key) from None
        return content.to_message()


class Calls:
    """Has the bot of a message's current step send it; the job `TOLD` gets the outcome."""

    def __init__(self, *, channels: Channels, messages: Messages, outbox: BotOutbox) -> None:
        self._channels = channels
        self._messages = messages
        self._outbox = outbox

    def check_size(self, content: OutgoingMessage) -> None:
        """Raises `ValidationFailed` for a message that no channel may send."""
        self._messages.check_size(content)

    async def find_channel(
        self, project_id: str, subscriber: Subscriber, content: OutgoingMessage
    ) -> Channel | None:
        """The bot that can show this to a subscriber; None if theirs is gone, or can't."""
        try:
            channel = await self._channels.get_bot(project_id, subscriber.bot, subscriber.channel)
            self._messages.check_content(channel, content)
        except (Conflict, ValidationFailed):
            return None
        return channel

    async def send(
        self,
        tx: Tx,
        message: GatewayMessage,
        channel: Channel,
        chat_id: str,
        content: OutgoingMessage,
    ) -> None:
        """After the commit."""
        told = {
            "project_id": message.project_id,
            "message_id": message.message_id,
            "step": message.step,
            "channel": channel.key,
        }
        await self._outbox.send(
            tx,
            channel.key,
            chat_id,
            content.of_project(message.project_id),
            expires_at_ms=message.expires_at_ms,
            on_complete=OnComplete(TOLD, told),
        )


class GatewaySending:
    """Accepts messages of senders."""

    def __init__(
        self,
        *,
        clock: Clock,
        settings: GatewaySettings,
        secrets: SecretBox,
        recipients: Recipients,
        wording: Wording,
        calls: Calls,
        billing: BillingGate,
        outbox: BotOutbox,
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._secrets = secrets
        self._recipients = recipients
        self._wording = wording
        self._calls = calls
        self._billing = billing
        self._outbox = outbox

    async def submit(self, tx: Tx, gateway: Gateway, submitted: Submitted) -> GatewayMessage:
        """Queues a message; the same request again gets the message that is there.

        Raises `ValidationFailed`, `GatewayRecipientUnreachable`, `GatewayRateLimited`, `BillingBlocked`.
        """
        project_id, gateway_id = gateway.project_id, gateway.gateway_id
        to = self._recipients.normalized(submitted.to)
        to_hash = self._secrets.keyed_hash("gateway recipient", to)
        await tx.lock(f"gateway {gateway_id} to {to_hash}")
        if submitted.once is not None:
            known = await store.find_repeated(tx, project_id, gateway_id, submitted.once)
            if known is not None:
                return known
        now_ms = self._clock.now_ms()
        last = await self._last(tx, gateway, to_hash, now_ms)
        people = await self._recipients.find(
            tx, project_id, gateway.channels, to, reported_tag(submitted.lang)
        )
        people = self._from_next(people, last, now_ms)
        ids = tuple(one.subscriber_id for one in people)
        for step, subscriber in enumerate(people):
            lang = self._wording.language(submitted.lang, subscriber)
            content = await self._wording.message(tx, project_id, submitted, lang)
            self._calls.check_size(content)
            channel = await self._calls.find_channel(project_id, subscriber, content)
            if channel is None:
                continue
            message = GatewayMessage(
                project_id=project_id,
                message_id=new_id("gwm"),
                gateway_id=gateway_id,
                to_hint=hint(to),
                people=ids,
                step=step,
                sealed=self._outbox.seal(content),
                status="queued",
                subscriber_id=subscriber.subscriber_id,
                channel=subscriber.channel,
                reason=None,
                created_at_ms=now_ms,
                expires_at_ms=now_ms + self._settings.lifetime_s * 1000,
            )
            await store.add_message(tx, message, to_hash=to_hash, once_digest=submitted.once)
            await self._billing.charge(tx, Charge(project_id, OPERATION, message.message_id))
            await self._calls.send(tx, message, channel, subscriber.chat_id, content)
            return message
        raise GatewayRecipientUnreachable

    async def _last(
        self, tx: Tx, gateway: Gateway, to_hash: str, now_ms: int
    ) -> GatewayMessage | None:
        """The recipient's last message. Raises `GatewayRateLimited`."""
        limit = self._settings.messages_per_hour
        recent = await store.list_recent(
            tx,
            gateway.project_id,
            gateway.gateway_id,
            to_hash,
            since_ms=now_ms - HOUR_MS,
            limit=limit,
        )
        if len(recent) == limit:
            raise GatewayRateLimited(
                "more than {limit} messages in an hour to this recipient",
                limit=limit,
                retry_after_s=max(1, -(-(recent[-1].created_at_ms + HOUR_MS - now_ms) // 1000)),
            )
        return recent[0] if recent else None

    def _from_next(
        self, people: list[Subscriber], last: GatewayMessage | None, now_ms: int
    ) -> list[Subscriber]:
        """`people` from behind the one whom the last message went to, if it was sent a moment ago: somebody
        who asks for another code did not see it there."""
        if last is None or last.created_at_ms <= now_ms - self._settings.again_within_s * 1000:
            return people
        ids = [one.subscriber_id for one in people]
        if last.subscriber_id not in ids:
            return people
        start = ids.index(last.subscriber_id) + 1
        return people[start:] + people[:start]
