"""One bot on MAX: the implementation of the channel contract."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import IO, Any, TypeVar
from urllib.parse import quote, urlsplit

from msgsvc_core.channels import (
    BotCommand,
    BotProfile,
    Capabilities,
    Channel,
    ChannelContext,
    ChannelHealth,
    ChannelIdentity,
    ChannelNotReady,
    DeliveryError,
    InvalidWebhook,
    Media,
    MiniAppUser,
    OutgoingMessage,
    Pace,
    Polled,
    Reason,
    Unreadable,
    Update,
    WebhookCall,
    WebhookHealth,
)
from msgsvc_core.content.markup import Span
from msgsvc_max import files
from msgsvc_max.client import MaxClient
from msgsvc_max.failures import MaxRefusal
from msgsvc_max.formatting import MAX_TEXT, appearance, keyboard, problem_of, text_fields
from msgsvc_max.mini_app import read_init_data
from msgsvc_max.settings import MaxSettings
from msgsvc_max.updates import UPDATE_TYPES, read_call, read_updates
from msgsvc_max.uploads import Uploads, attachment

#: By which the platform proves that a call is its own (schema: SubscriptionRequestBody).
SECRET_HEADER = "x-max-bot-api-secret"  # noqa: S105 - the header's name

#: Seconds without a successful call after which MAX drops a webhook (POST /subscriptions at dev.max.ru).
GIVEN_UP_AFTER_S = 8 * 3600.0

#: Seconds to wait for a file that the platform is still working on, before each further try.
NOT_READY_WAITS_S = (0.5, 1.0, 2.0, 4.0)

#: Attachments that are files, and stay with an edited message.
FILE_TYPES = frozenset({"image", "video", "audio", "file"})

T = TypeVar("T")


class MaxChannel(Channel):
    """Calls the Bot API; decisions are in docs/decisions/0016."""

    capabilities = Capabilities(
        max_text_length=MAX_TEXT,
        text_unit="utf16",
        edit_media=True,
        mini_app=True,
        receives_files=True,
        tells_replies=True,
        commands=True,
    )

    def __init__(
        self, context: ChannelContext, identity: ChannelIdentity, settings: MaxSettings
    ) -> None:
        super().__init__(identity)
        self.capabilities = replace(self.capabilities, commands=settings.command_menu)
        self.receiving = settings.receiving
        self.pace = Pace(per_bot_s=settings.per_bot_s, per_chat_s=settings.per_chat_s)
        self._is_own_address = context.is_own_address
        self._token = settings.token
        media = context.media()
        self._client = MaxClient(settings, media.guard)
        self._uploads = Uploads(clock=context.clock, media=media, client=self._client)
        self._webhooks_ended = False

    # ---- out ------------------------------------------------------------------------------------

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        _check(chat_id)
        if message.media is not None and self._fetched_by_platform(message.media):
            # The platform fetches pictures itself, and is given those that it could not fetch.
            try:
                return await self._send(chat_id, message, {"url": message.media.url})
            except MaxRefusal as refusal:
                if not refusal.of_file:
                    raise
        return await self._send(chat_id, message, await self._uploaded(message.media))

    async def edit(self, chat_id: str, message_ref: str, message: OutgoingMessage) -> None:
        # An edit replaces all attachments, so those that are to stay are named again.
        if message.media is None:
            kept = _files_of(await self._client.message(message_ref))
        else:
            kept = [attachment(message.media, await self._uploaded(message.media))]
        body = {**text_fields(message), "attachments": kept + keyboard(message.buttons)}
        await _when_ready(lambda: self._client.edit(message_ref, body))

    async def delete(self, chat_id: str, message_ref: str) -> None:
        try:
            await self._client.delete(message_ref)
        except MaxRefusal as refusal:
            if not refusal.gone:
                raise

    async def answer_button(self, button_ref: str, text: str | None = None) -> None:
        try:
            await self._client.answer(button_ref, {"notification": text} if text else {})
        except MaxRefusal as refusal:
            # The schema has no code for a press that is too old; nothing else is wrong with ours.
            if refusal.reason not in {Reason.INVALID_MESSAGE, Reason.CHAT_NOT_FOUND}:
                raise

    def deep_link(self, payload: str) -> str:
        username = self.known_profile().username
        if username is None:
            raise ChannelNotReady(f"the bot {self.name!r} has no name on MAX yet")
        return f"https://max.ru/{quote(username, safe='')}?start={payload}"

    async def check(self) -> ChannelHealth:
        try:
            me = await self._client.me()
        except DeliveryError as error:
            revoked = error.reason is Reason.BOT_BANNED
            return ChannelHealth(
                ok=False, detail=error.text, revoked=revoked, unreachable=error.reason.retryable
            )
        name, username = me.get("first_name") or me.get("name"), me.get("username")
        if not isinstance(name, str) or not isinstance(username, str | None):
            return ChannelHealth(ok=False, detail="the platform's answer is not about a bot")
        detail = name if username is None else f"{name} (@{username})"
        account = me.get("user_id")
        return ChannelHealth(
            ok=True,
            detail=detail,
            profile=BotProfile(name, username or None),
            account=None if account is None else str(account),
        )

    def problem(self, message: OutgoingMessage) -> str | None:
        return super().problem(message) or problem_of(message)

    def appearance(self, message: OutgoingMessage) -> list[Span]:
        return appearance(message)

    def is_group(self, chat_id: str) -> bool:
        # Chats of many have negative ids, a dialog's is positive.
        return chat_id.startswith("-")

    # ---- in -------------------------------------------------------------------------------------

    async def set_webhook(self, url: str, secret: str) -> None:
        await self._client.subscribe(url, secret, UPDATE_TYPES)
        # The platform keeps addresses of before, and calls them too.
        await self._unsubscribe(keep=url)

    async def check_webhook(self, url: str) -> WebhookHealth:
        # MAX has no method that reports the outcome of its calls. All that shows is that it drops an
        # address after `GIVEN_UP_AFTER_S`.
        found = await self._client.subscriptions()
        if url in found:
            return WebhookHealth(ok=True)
        if not found:
            return WebhookHealth(
                ok=False,
                detail="MAX calls no address any more: it drops one that answered no call well for 8"
                " hours, unless another program has removed it",
                missing=True,
                given_up_after_s=GIVEN_UP_AFTER_S,
            )
        hosts = ", ".join(sorted({urlsplit(one).netloc for one in found}))
        return WebhookHealth(
            ok=False,
            detail=f"MAX calls another address, at {hosts}: another program, or another deployment of"
            " this one, uses the same bot; each needs a bot of its own",
        )

    async def set_commands(self, commands: Sequence[BotCommand], default_lang: str) -> None:
        # MAX has one menu for people of every language.
        await self._client.set_commands(
            [{"name": one.name, "description": one.about[default_lang]} for one in commands]
        )

    def parse_update(self, call: WebhookCall) -> list[Update]:
        if not call.has_secret(SECRET_HEADER):
            raise InvalidWebhook(f"{SECRET_HEADER} is missing or wrong")
        return read_call(call.body, self.key)

    async def take_anyway(self, item: Unreadable) -> list[Update]:
        """As this version reads it: there is no check that could be left out."""
        return read_call(item.raw, self.key)

    async def poll_updates(self, cursor: str | None) -> Polled:
        if cursor is None or not self._webhooks_ended:
            await self._unsubscribe()
            self._webhooks_ended = True
        answer = await self._client.updates(cursor, UPDATE_TYPES)
        found, marker = answer.get("updates"), answer.get("marker")
        if not isinstance(found, list):
            raise DeliveryError(
                Reason.PLATFORM_UNAVAILABLE, "the platform's answer holds no updates"
            )
        known = isinstance(marker, int) and not isinstance(marker, bool)
        return Polled(tuple(read_updates(found, self.key)), str(marker) if known else cursor)

    async def fetch_file(self, file_ref: str, into: IO[bytes], max_bytes: int) -> None:
        await files.fetch(self._client, file_ref, into, max_bytes)

    def verify_mini_app(self, init_data: str) -> MiniAppUser:
        return read_init_data(init_data, self._token.get_secret_value())

    # ---- its life -------------------------------------------------------------------------------

    async def close(self) -> None:
        await self._client.close()

    async def _send(
        self, chat_id: str, message: OutgoingMessage, file: Mapping[str, str] | None
    ) -> str:
        body = text_fields(message)
        sent = [attachment(message.media, file)] if message.media and file else []
        if attachments := sent + keyboard(message.buttons):
            body["attachments"] = attachments
        if message.silent:
            body["notify"] = False
        made = await _when_ready(lambda: self._client.send(chat_id, body))
        mid = _mid(made)
        if mid is None:
            raise DeliveryError(
                Reason.UNKNOWN, "the platform did not say which message it is", in_doubt=True
            )
        return mid

    def _fetched_by_platform(self, media: Media) -> bool:
        # What is kept here need not be read at an address that the platform, and whoever else, can reach.
        return media.type == "image" and not self._is_own_address(media.url)

    async def _uploaded(self, media: Media | None) -> dict[str, str] | None:
        return None if media is None else {"token": await self._uploads.token(media)}

    async def _unsubscribe(self, keep: str | None = None) -> None:
        for url in await self._client.subscriptions():
            if url != keep:
                await self._client.unsubscribe(url)


async def _when_ready(call: Callable[[], Awaitable[T]]) -> T:
    """What `call` answers, tried again while the platform still works on a file of it."""
    for wait_s in NOT_READY_WAITS_S:
        try:
            return await call()
        except MaxRefusal as refusal:
            if not refusal.not_ready:
                raise
        await asyncio.sleep(wait_s)
    return await call()


def _check(chat_id: str) -> None:
    if not chat_id.removeprefix("-").isdecimal():
        raise DeliveryError(Reason.CHAT_NOT_FOUND, "chat_id: a chat on MAX is a number")


def _mid(made: Mapping[str, Any]) -> str | None:
    message = made.get("message")
    body = message.get("body") if isinstance(message, dict) else None
    mid = body.get("mid") if isinstance(body, dict) else None
    return mid if isinstance(mid, str) and mid else None


def _files_of(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The files of a message, as an edit names them. Raises `DeliveryError` if there is no message."""
    body = message.get("body")
    if not isinstance(body, dict):
        raise DeliveryError(Reason.INVALID_MESSAGE, "there is no such message to edit")
    kept = []
    for one in body.get("attachments") or ():
        payload = one.get("payload") if isinstance(one, dict) else None
        if isinstance(payload, dict) and one.get("type") in FILE_TYPES and payload.get("token"):
            kept.append({"type": one["type"], "payload": {"token": payload["token"]}})
    return kept
