"""One business phone number on WhatsApp: the implementation of the channel contract."""

from typing import IO, Literal
from urllib.parse import quote, urlsplit

from msgsvc_core.channels import (
    BotProfile,
    Capabilities,
    Channel,
    ChannelContext,
    ChannelHealth,
    ChannelIdentity,
    DeliveryError,
    OutgoingMessage,
    Pace,
    Reason,
    Unreadable,
    Update,
    WebhookAnswer,
    WebhookCall,
    WebhookHealth,
)
from msgsvc_core.channels.failures import LocalFailure
from msgsvc_core.content.markup import Span
from msgsvc_core.db import DatabaseUnavailable
from msgsvc_whatsapp.client import WhatsAppClient
from msgsvc_whatsapp.failures import WhatsAppRefusal
from msgsvc_whatsapp.health import trouble_of
from msgsvc_whatsapp.messages import (
    MAX_CAPTION,
    body_of,
    content_of,
    problem_of,
    recipient_of,
    template_body,
)
from msgsvc_whatsapp.settings import WhatsAppSettings
from msgsvc_whatsapp.updates import read_call
from msgsvc_whatsapp.uploads import Uploads
from msgsvc_whatsapp.webhooks import challenge_of, verify_request, verify_signature

#: Milliseconds after a user's message in which a business may write freely: 24 hours, less what a call may
#: take to reach us and the platform.
WINDOW_MS = (24 * 60 - 5) * 60_000


class WhatsAppChannel(Channel):
    """Calls the Cloud API; decisions are in docs/decisions/0142."""

    receiving = "webhook"
    capabilities = Capabilities(
        max_text_length=4000,
        max_caption_length=MAX_CAPTION,
        text_unit="utf16",
        notices=False,
        edit=False,
        delete=False,
        receives_files=True,
        tells_replies=True,
        hook_methods=frozenset({"GET", "POST"}),
        reports=frozenset({"delivered", "read"}),
    )

    def __init__(
        self, context: ChannelContext, identity: ChannelIdentity, settings: WhatsAppSettings
    ) -> None:
        super().__init__(identity)
        self.pace = Pace(per_bot_s=settings.per_bot_s, per_chat_s=settings.per_chat_s)
        self._clock = context.clock
        self._last_update_ms = context.last_update_ms
        self._settings = settings
        media = context.media()
        self._client = WhatsAppClient(settings, media.guard)
        self._uploads = Uploads(clock=context.clock, media=media, client=self._client)

    # ---- out ------------------------------------------------------------------------------------

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        recipient_of(chat_id)
        if problem := self.problem(message):
            raise DeliveryError(Reason.INVALID_MESSAGE, problem)
        window, template = await self._window(chat_id), self._settings.template
        if template is None:
            if window == "closed":
                raise DeliveryError(
                    Reason.INVALID_MESSAGE,
                    "the user has not written for 24 hours, and no template is set",
                )
            return await self._send(chat_id, message)
        if window == "open":
            try:
                return await self._send(chat_id, message)
            except WhatsAppRefusal as refusal:
                # The clocks of both sides differ. The refusal leaves no doubt, so that the template is no
                # second call for the same message.
                if not refusal.window_closed:
                    raise
        body = template_body(chat_id, message, template, self._settings.template_language)
        return _message_id(await self._client.send(body))

    async def edit(self, chat_id: str, message_ref: str, message: OutgoingMessage) -> None:
        raise DeliveryError(Reason.INVALID_MESSAGE, "businesses can't edit messages on WhatsApp")

    async def delete(self, chat_id: str, message_ref: str) -> None:
        raise DeliveryError(Reason.INVALID_MESSAGE, "businesses can't delete messages on WhatsApp")

    async def answer_button(self, button_ref: str, text: str | None = None) -> None:
        """Nothing waits for an answer: `Capabilities.notices` is False."""

    def deep_link(self, payload: str) -> str:
        # The text stands in the field for a message; the user sends it.
        text = quote(f"start {payload}", safe="")
        return f"https://wa.me/{self._settings.phone_number}?text={text}"

    async def check(self) -> ChannelHealth:
        try:
            found = await self._client.number()
        except DeliveryError as error:
            revoked = error.reason is Reason.BOT_BANNED
            return ChannelHealth(
                ok=False, detail=error.text, revoked=revoked, unreachable=error.reason.retryable
            )
        name, number, number_id = (
            found.get(field) for field in ("verified_name", "display_phone_number", "id")
        )
        if not isinstance(number, str) or not isinstance(name, str | None):
            return ChannelHealth(
                ok=False, detail="the platform's answer is not about a phone number"
            )
        digits = "".join(filter(str.isdigit, number))
        if digits != self._settings.phone_number:
            return ChannelHealth(
                ok=False,
                detail=f"phone_number is wrong: {number} has this phone_number_id, and links would lead to"
                " another chat",
            )
        detail, trouble = (f"{name} ({number})" if name else number), trouble_of(found)
        return ChannelHealth(
            ok=True,
            detail=detail if trouble is None else f"{detail}: {trouble}",
            profile=BotProfile(name or number),
            refuses_messages=trouble is not None,
            account=str(number_id),
        )

    def problem(self, message: OutgoingMessage) -> str | None:
        return super().problem(message) or problem_of(message)

    def appearance(self, message: OutgoingMessage) -> list[Span]:
        content = content_of(OutgoingMessage(message.text, format=message.format))
        return content.text.spans

    # ---- in -------------------------------------------------------------------------------------

    async def set_webhook(self, url: str, secret: str) -> None:
        # With a verify token of the operator's, the address is entered in the app's dashboard.
        if self._settings.verify_token is None:
            await self._client.set_webhook(url, secret)

    async def check_webhook(self, url: str) -> WebhookHealth:
        found = await self._client.webhooks()
        own = found.get("phone_number")
        called = own or found.get("whatsapp_business_account") or found.get("application")
        if called == url:
            return WebhookHealth(ok=True)
        if not isinstance(called, str) or not called:
            return WebhookHealth(
                ok=False,
                detail="WhatsApp calls no address for this phone number",
                missing=self._settings.verify_token is None,
            )
        return WebhookHealth(
            ok=False,
            detail=f"WhatsApp calls another address, at {urlsplit(called).netloc}: another program, or"
            " another deployment of this one, uses the same phone number",
            # Only an address of the number itself was set by somebody for the number.
            missing=self._settings.verify_token is None and not own,
        )

    def parse_update(self, call: WebhookCall) -> list[Update]:
        if call.method == "GET":
            verify_request(call, self._verify_tokens(call))
            return []
        verify_signature(call, self._settings.app_secret.get_secret_value())
        return read_call(call.body, self._settings.phone_number_id, self.key)

    async def take_anyway(self, item: Unreadable) -> list[Update]:
        """As this version reads it: there is no check that could be left out."""
        return read_call(item.raw, self._settings.phone_number_id, self.key)

    def answer_webhook(self, call: WebhookCall) -> WebhookAnswer | None:
        return challenge_of(call) if call.method == "GET" else None

    async def fetch_file(self, file_ref: str, into: IO[bytes], max_bytes: int) -> None:
        found = await self._client.media(file_ref)
        url, size = found.get("url"), found.get("file_size")
        if not isinstance(url, str):
            raise DeliveryError(
                Reason.INVALID_MESSAGE, "the platform does not say where the file is"
            )
        if type(size) is int and size > max_bytes:
            raise DeliveryError(Reason.INVALID_MESSAGE, f"it is larger than {max_bytes} bytes")
        await self._client.download(url, into, max_bytes)

    # ---- its life -------------------------------------------------------------------------------

    async def close(self) -> None:
        await self._client.close()

    async def _send(self, chat_id: str, message: OutgoingMessage) -> str:
        file = None if message.media is None else await self._uploads.fields(message.media)
        body = body_of(chat_id, message, file, self._settings.list_label)
        return _message_id(await self._client.send(body))

    async def _window(self, chat_id: str) -> Literal["open", "closed", "unknown"]:
        """Whether the user wrote in the last 24 hours; unknown if never, as far as we know.

        The platform accepts messages outside of the window too, and reports only later that it has not
        delivered them.
        """
        try:
            last_ms = await self._last_update_ms(self.key, chat_id)
        except DatabaseUnavailable as error:
            # The platform was not called.
            raise LocalFailure(Reason.PLATFORM_UNAVAILABLE, "the service has to wait") from error
        if last_ms is None:
            return "unknown"
        return "open" if self._clock.now_ms() - last_ms < WINDOW_MS else "closed"

    def _verify_tokens(self, call: WebhookCall) -> list[str]:
        own = self._settings.verify_token
        return [*call.secrets] if own is None else [own.get_secret_value()]


def _message_id(sent: dict[str, object]) -> str:
    messages = sent.get("messages")
    first = messages[0] if isinstance(messages, list) and messages else None
    message_id = first.get("id") if isinstance(first, dict) else None
    if not isinstance(message_id, str) or not message_id:
        raise DeliveryError(
            Reason.PLATFORM_UNAVAILABLE,
            "the platform did not say which message it is",
            in_doubt=True,
        )
    return message_id
