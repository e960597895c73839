"""One sender of emails: the implementation of the channel contract."""

from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

from msgsvc_core.channels import (
    Blocked,
    BotProfile,
    Capabilities,
    Channel,
    ChannelContext,
    ChannelHealth,
    ChannelIdentity,
    ChannelNotReady,
    ChannelUser,
    DeliveryError,
    InvalidWebhook,
    OutgoingMessage,
    Pace,
    Reason,
    Update,
    WebhookAnswer,
    WebhookCall,
)
from msgsvc_core.kernel import email
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_email import unsubscribing
from msgsvc_email.layout import Footer
from msgsvc_email.message import Addresses, composed, problem_of
from msgsvc_email.settings import EmailSettings
from msgsvc_email.smtp import Envelope, SmtpServers
from msgsvc_email.texts import EmailTexts
from msgsvc_email.tokens import Tokens


class EmailChannel(Channel):
    """Sends by SMTP; decisions are in docs/decisions/0143. The id of a user, and of their chat, is their
    address; that of a message is its `Message-ID`."""

    capabilities = Capabilities(
        buttons="pages",
        identity="mailbox",
        addresses=True,
        start_links=False,
        edit=False,
        delete=False,
        hook_methods=frozenset({"GET", "POST"}),
    )

    def __init__(
        self, context: ChannelContext, identity: ChannelIdentity, settings: EmailSettings
    ) -> None:
        super().__init__(identity)
        self.capabilities = replace(self.capabilities, repeatable=settings.drops_duplicates)
        self.pace = Pace(per_bot_s=settings.per_second)
        self._context = context
        self._settings = settings
        self._servers = SmtpServers(settings, context.clock)
        self._tokens = Tokens(context.secrets, identity.key, settings.domain, context.base_url)

    # ---- out ------------------------------------------------------------------------------------

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        address = self._address(chat_id)
        problem = self.problem(message)
        if problem is not None:
            raise DeliveryError(Reason.INVALID_MESSAGE, problem)
        message_id = self._tokens.message_id(message.key, address)
        async with AsyncExitStack() as stack:
            file = None
            if message.media is not None:
                file = await stack.enter_async_context(self._context.media().fetch(message.media))
            content = composed(
                message,
                Addresses(address, self._reply_to(address), message_id),
                self._settings,
                at=datetime.fromtimestamp(self._context.clock.now_ms() / 1000, UTC),
                footer=self._footer(address) if self._settings.unsubscribe else None,
                file=file,
            )
        await self._servers.deliver(
            Envelope(
                self._return_path(address),
                address,
                content,
                envelope_id=message.key or message_id,
                utf8=not address.isascii(),
            )
        )
        return message_id

    async def edit(self, chat_id: str, message_ref: str, message: OutgoingMessage) -> None:
        raise DeliveryError(Reason.INVALID_MESSAGE, "an email that was sent can't be changed")

    async def delete(self, chat_id: str, message_ref: str) -> None:
        raise DeliveryError(Reason.INVALID_MESSAGE, "an email that was sent can't be deleted")

    async def answer_button(self, button_ref: str, text: str | None = None) -> None:
        """Buttons are links: nobody waits."""

    def deep_link(self, payload: str) -> str:
        raise ChannelNotReady(f"the channel {self.name!r} receives no emails")

    async def check(self) -> ChannelHealth:
        try:
            await self._servers.check()
        except DeliveryError as error:
            revoked = error.reason is Reason.BOT_BANNED
            return ChannelHealth(
                ok=False, detail=error.text, revoked=revoked, unreachable=error.reason.retryable
            )
        name = self._settings.sender_name or self._settings.sender
        return ChannelHealth(
            ok=True,
            detail=f"{name} <{self._settings.sender}>",
            profile=BotProfile(name),
            account=self._settings.sender,
        )

    def problem(self, message: OutgoingMessage) -> str | None:
        return super().problem(message) or problem_of(message)

    def parse_address(self, text: str) -> str:
        return email.normalized(text)

    # ---- in -------------------------------------------------------------------------------------

    def parse_update(self, call: WebhookCall) -> list[Update]:
        if call.path != unsubscribing.PATH:
            raise InvalidWebhook("nothing but unsubscribe links leads here")
        address = self._tokens.address_in(call.query.get("t", ""))
        if address is None or call.method != "POST":
            return []
        user = ChannelUser(address, address)
        # People may unsubscribe by one link, come back, and unsubscribe again: each is an update of its own.
        update_id = f"unsubscribe-{uuid4().hex}"
        return [Blocked(update_id=update_id, chat_id=address, user=user)]

    def answer_webhook(self, call: WebhookCall) -> WebhookAnswer | None:
        texts = self._context.provided(EmailTexts)
        lang = unsubscribing.language(call, texts.all, self._settings.lang)
        translate = texts.into(lang)
        address = self._tokens.address_in(call.query.get("t", ""))
        if address is None:
            return unsubscribing.unknown(translate, lang)
        sender = self._settings.sender_name or self._settings.sender
        shown = unsubscribing.question if call.method == "GET" else unsubscribing.confirmation
        return shown(translate, lang, sender, address)

    # ---- its life -------------------------------------------------------------------------------

    async def close(self) -> None:
        await self._servers.close()

    def _address(self, chat_id: str) -> str:
        try:
            return email.normalized(chat_id)
        except InvalidValue:
            raise DeliveryError(Reason.CHAT_NOT_FOUND, "chat_id: is no email address") from None

    def _footer(self, address: str) -> Footer:
        _ = self._context.provided(EmailTexts).into(self._settings.lang)
        sender = self._settings.sender_name or self._settings.sender
        return Footer(
            text=_("You get this email because you subscribed to {sender}.", sender=sender),
            label=_("Unsubscribe"),
            url=self._tokens.unsubscribe_url(address),
        )

    def _reply_to(self, _address: str) -> str | None:
        return self._settings.reply_to

    def _return_path(self, _address: str) -> str:
        return self._settings.sender
