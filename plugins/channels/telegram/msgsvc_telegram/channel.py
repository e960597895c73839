"""One Telegram bot: the implementation of the channel contract."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import IO, Any
from urllib.parse import urlsplit

import structlog

from msgsvc_core.channels import (
    BotCommand,
    BotProfile,
    Capabilities,
    Channel,
    ChannelContext,
    ChannelHealth,
    ChannelIdentity,
    ChannelSpending,
    DeliveryError,
    InvalidWebhook,
    Media,
    MiniAppUser,
    OutgoingMessage,
    Pace,
    Polled,
    Reason,
    Unreadable,
    UnreadableReason,
    Update,
    WebhookCall,
    WebhookHealth,
)
from msgsvc_core.content.markup import Span
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_telegram import files
from msgsvc_telegram.client import BotApi
from msgsvc_telegram.failures import BotApiError
from msgsvc_telegram.formatting import MAX_ENTITIES, appearance, too_many_entities
from msgsvc_telegram.login import TelegramLogin
from msgsvc_telegram.managed_bots import ManagedBots
from msgsvc_telegram.messages import (
    METHODS,
    Call,
    editing,
    fetched_by_telegram,
    notice,
    number,
    problem_of_buttons,
    sending,
)
from msgsvc_telegram.mini_app import verify_init_data
from msgsvc_telegram.paid import PaidBroadcasts
from msgsvc_telegram.rich import is_rich, problem_of_blocks
from msgsvc_telegram.settings import TelegramSettings
from msgsvc_telegram.topics import GONE, Topics
from msgsvc_telegram.updates import ALLOWED_UPDATES, read_updates

HEADER = "x-telegram-bot-api-secret-token"

#: Seconds for which Telegram holds a question for updates while there are none (it takes up to 50).
POLL_S = 25

#: Updates in one answer; the Bot API's own limit.
POLL_LIMIT = 100

#: Seconds for which a failed call of Telegram's says something of now. It tries again within a minute or so.
WEBHOOK_ERROR_S = 600

#: The id of a user, and the largest one (https://core.telegram.org/api/bots/ids).
MAX_USER_ID = 1_099_511_627_775
_USER_ID = re.compile(r"[1-9][0-9]{0,12}")

log = structlog.get_logger(__name__)


class TelegramChannel(Channel):
    """Calls the Bot API, and parses its updates. Sends to groups, but ignores messages in them."""

    capabilities = Capabilities(
        max_text_length=4096,  # Bot API, sendMessage
        max_caption_length=1024,  # Bot API, sendPhoto
        rich=True,
        mini_app=True,
        receives_files=True,
        tells_replies=True,
        commands=True,
        threads=True,
    )

    def __init__(
        self, context: ChannelContext, identity: ChannelIdentity, settings: TelegramSettings
    ) -> None:
        super().__init__(identity)
        self._clock = context.clock
        self._media = context.media
        self._is_own_address = context.is_own_address
        self._settings = settings
        self._api = BotApi(settings)
        self.bot_maker = (
            ManagedBots(api=self._api, profile=self.known_profile) if settings.makes_bots else None
        )
        self._topics = Topics(api=self._api, clock=context.clock)
        self._login = TelegramLogin.from_settings(settings, context.clock)
        self.platform_sign_in = self._login
        self.capabilities = replace(self.capabilities, commands=settings.command_menu)
        self.receiving = settings.receiving
        self._free_pace = Pace(settings.per_bot_s, settings.per_chat_s, settings.per_group_min)
        self._paid_pace = replace(self._free_pace, per_bot_s=settings.paid_per_bot_s)
        self._paid = _paid_broadcasts(context, identity, settings)
        self.budget = self._paid.budget if self._paid else None

    def parse_chat_id(self, text: str) -> str:
        # The private chat with a user has the user's id. Those of groups and channels are negative
        # (https://core.telegram.org/api/bots/ids).
        if not _USER_ID.fullmatch(text) or int(text) > MAX_USER_ID:
            raise InvalidValue("must be the id of a person's chat, which is a positive number")
        return text

    # ---- out ------------------------------------------------------------------------------------

    # The faster one while Stars are left: a variable of the contract, which nobody sets here.
    @property
    def pace(self) -> Pace:  # type: ignore[override] # nobody sets it here
        is_paid = self._paid is not None and not self._paid.used_up
        return self._paid_pace if is_paid else self._free_pace

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        sent = await self._send(chat_id, message)
        message_id = sent.get("message_id") if isinstance(sent, dict) else None
        if type(message_id) is not int:
            raise DeliveryError(
                Reason.PLATFORM_UNAVAILABLE, "sent, but without a message_id", in_doubt=True
            )
        return str(message_id)

    async def open_thread(self, chat_id: str, title: str) -> str | None:
        # In groups only administrators open topics, and messages there aren't listened to.
        return None if self.is_group(chat_id) else await self._topics.open(_chat(chat_id), title)

    async def edit(self, chat_id: str, message_ref: str, message: OutgoingMessage) -> None:
        # A caption is edited by another method; the caller need not know what was sent.
        caption = message.media is not None
        try:
            await self._edit(chat_id, message_ref, message, caption=caption)
        except BotApiError as error:
            if not error.says("there is no text in the message", "there is no caption in the mess"):
                raise
            await self._edit(chat_id, message_ref, message, caption=not caption)

    async def delete(self, chat_id: str, message_ref: str) -> None:
        message_id = number(message_ref, Reason.INVALID_MESSAGE, "message")
        params = {"chat_id": _chat(chat_id), "message_id": message_id}
        try:
            await self._in_chat(chat_id, None, Call("deleteMessage", params))
        except BotApiError as error:
            # One that "can't be deleted", because it is older than 48 hours, still stands there.
            if not error.says("message to delete not found", "message_id_invalid"):
                raise

    async def answer_button(self, button_ref: str, text: str | None = None) -> None:
        params = {"callback_query_id": button_ref}
        if text:
            params["text"] = notice(text)
        try:
            await self._api.call("answerCallbackQuery", params)
        except BotApiError as error:
            if not error.says("query is too old", "query id is invalid"):
                raise

    def deep_link(self, payload: str) -> str:
        username = self._settings.username or self.known_profile().username
        return f"https://t.me/{username}?start={payload}"

    async def check(self) -> ChannelHealth:
        try:
            bot = await self._api.call("getMe")
        except DeliveryError as error:
            revoked = error.reason is Reason.BOT_BANNED
            detail = f"Telegram refuses the bot's token: {error.text}" if revoked else error.text
            return ChannelHealth(
                ok=False, detail=detail, revoked=revoked, unreachable=error.reason.retryable
            )
        name = bot.get("first_name") if isinstance(bot, dict) else None
        username = bot.get("username") if isinstance(bot, dict) else None
        if not isinstance(name, str) or not isinstance(username, str):
            return ChannelHealth(ok=False, detail="getMe: no answer of the Bot API")
        self._topics.learn(bot)
        account = bot.get("id")
        return ChannelHealth(
            ok=True,
            detail=f"@{username}{self._making_trouble(bot)}{await self._webhook_trouble()}",
            profile=BotProfile(name, username),
            account=None if account is None else str(account),
        )

    def _making_trouble(self, bot: dict[str, Any]) -> str:
        """Why the bot can't make others as it should; empty if it can, or is not to."""
        if self.bot_maker is None or bot.get("can_manage_bots") is True:
            return ""
        return "; it can't make bots before bot management is enabled in @BotFather"

    def problem(self, message: OutgoingMessage) -> str | None:
        if message.media is None and not message.text.strip():
            return "text: shows nothing"
        found = super().problem(message) or problem_of_buttons(message)
        if is_rich(message):
            return found or problem_of_blocks(message)
        if found is None and too_many_entities(message.text, message.format):
            return f"text: Telegram shows no more than {MAX_ENTITIES} formatted parts"
        return found

    def appearance(self, message: OutgoingMessage) -> list[Span]:
        return appearance(message.text, message.format)

    def is_group(self, chat_id: str) -> bool:
        return chat_id.startswith("-")

    async def _send(self, chat_id: str, message: OutgoingMessage) -> Any:
        """Sends, for Stars where that is needed and they are left."""
        call = sending(_chat(chat_id), message)
        if self._paid is None:
            return await self._in_chat(chat_id, message, call)
        paid = await self._paid.params()
        call.params.update(paid)
        try:
            return await self._in_chat(chat_id, message, call)
        except DeliveryError as error:
            if not error.in_doubt:
                self._paid.refund(paid)
            raise

    async def _edit(
        self, chat_id: str, message_ref: str, message: OutgoingMessage, *, caption: bool
    ) -> None:
        message_id = number(message_ref, Reason.INVALID_MESSAGE, "message")
        try:
            call = editing(_chat(chat_id), message_id, message, caption=caption)
            await self._in_chat(chat_id, None, call)
        except BotApiError as error:
            if not error.says("message is not modified"):
                raise

    async def _in_chat(self, chat_id: str, message: OutgoingMessage | None, call: Call) -> Any:
        """Makes the call, where the group is now if it was turned into a supergroup, and outside of its topic
        if that was deleted.

        The core knows the old id only, so its next call goes the same way.
        """
        try:
            return await self._call(call, message)
        except BotApiError as error:
            if error.says(GONE) and call.params.pop("message_thread_id", None) is not None:
                log.info("topic_gone", channel=self.key)
                return await self._call(call, message)
            if error.migrated_to is None:
                raise
            log.info("group_moved", channel=self.key, chat_id=chat_id, to=error.migrated_to)
            call.params["chat_id"] = error.migrated_to
            return await self._call(call, message)

    async def _call(self, call: Call, message: OutgoingMessage | None) -> Any:
        """Sends a picture that is too wide or too high for one as a document: the same bytes."""
        if call.file_field is None:
            return await self._api.call(call.method, call.params)
        assert message is not None, "only what is sent has a file"
        assert message.media is not None, "a call has a file's field because the message has a file"
        try:
            return await self._with_file(call, call.file_field, message.media)
        except BotApiError as error:
            if message.media.type != "image" or not error.says("photo_invalid_dimensions"):
                raise
        method, field = METHODS["document"]
        async with self._media().fetch(message.media) as file:
            return await self._api.upload(method, call.params, field, file)

    async def _with_file(self, call: Call, field: str, media: Media) -> Any:
        """Sends a file by its URL where Telegram may fetch it, and else, or if it could not, itself.

        Telegram fetches pictures up to 5 MB and other files up to 20 MB, and not from every host.
        """
        # What is kept here need not be read at an address that Telegram, and whoever else, can reach.
        if fetched_by_telegram(media) and not self._is_own_address(media.url):
            try:
                return await self._api.call(call.method, call.params | {field: media.url})
            except BotApiError as error:
                if not error.not_fetched:
                    raise
        async with self._media().fetch(media) as file:
            return await self._api.upload(call.method, call.params, field, file)

    # ---- in -------------------------------------------------------------------------------------

    @property
    def _allowed_updates(self) -> tuple[str, ...]:
        return (*ALLOWED_UPDATES, *([] if self.bot_maker is None else ["managed_bot"]))

    async def set_webhook(self, url: str, secret: str) -> None:
        # What Telegram has kept for us stays: updates are taken once, however they come.
        await self._api.call(
            "setWebhook",
            {"url": url, "secret_token": secret, "allowed_updates": self._allowed_updates},
        )

    async def set_commands(self, commands: Sequence[BotCommand], default_lang: str) -> None:
        # Telegram knows languages of two letters alone (setMyCommands, `language_code`).
        langs = {lang for command in commands for lang in command.about if len(lang) == 2}
        # The list without a language applies to everyone else.
        for lang in [None, *sorted(langs)]:
            shown = [
                {"command": one.name, "description": one.about[lang or default_lang]}
                for one in commands
            ]
            params = {"commands": shown} | ({"language_code": lang} if lang else {})
            await self._api.call("setMyCommands", params)

    def parse_update(self, call: WebhookCall) -> list[Update]:
        if not call.has_secret(HEADER):
            raise InvalidWebhook("wrong or missing X-Telegram-Bot-Api-Secret-Token")
        try:
            found = json.loads(call.body)
        except (ValueError, RecursionError):
            return [Unreadable.of(call.body, UnreadableReason.MALFORMED, "it is not JSON")]
        return read_updates([found], self.key)

    async def take_anyway(self, item: Unreadable) -> list[Update]:
        """As this version reads it: there is no check that could be left out."""
        try:
            found = json.loads(item.raw)
        except (ValueError, RecursionError):
            return [item]
        return read_updates([found], self.key)

    async def check_webhook(self, url: str) -> WebhookHealth:
        info = await self._webhook_info()
        there = info.get("url")
        if there == "":
            return WebhookHealth(ok=False, detail="Telegram has no webhook any more", missing=True)
        if isinstance(there, str) and there != url:
            return WebhookHealth(
                ok=False,
                detail=f"Telegram calls another address, at {urlsplit(there).netloc}: another program,"
                " or another deployment of this one, uses the same bot; each needs a bot of its own",
            )
        failed_at = info.get("last_error_date")
        # Telegram reports its last failure indefinitely, even if all calls succeeded since.
        is_old = isinstance(failed_at, int) and self._clock.time() - failed_at > WEBHOOK_ERROR_S
        trouble = None if is_old else _why_updates_wait(info)
        return WebhookHealth(ok=trouble is None, detail=trouble or "")

    async def _webhook_trouble(self) -> str:
        """Why updates wait at Telegram, which nobody but Telegram knows; empty if none do."""
        if self.receiving != "webhook":
            return ""
        try:
            trouble = _why_updates_wait(await self._webhook_info())
        except DeliveryError as error:
            # It only explains: who the bot is was answered, and stays so.
            return f"; getWebhookInfo: {error.text[:200]}"
        return "" if trouble is None else f"; {trouble}"

    async def _webhook_info(self) -> dict[str, Any]:
        info = await self._api.call("getWebhookInfo")
        return info if isinstance(info, dict) else {}

    async def poll_updates(self, cursor: str | None) -> Polled:
        if cursor is None:
            await self._api.call("deleteWebhook")
        try:
            found = await self._get_updates(cursor)
        except BotApiError as error:
            if not error.says("webhook is active"):
                raise _explained(error) from None
            # The channel was switched from webhook to polling, and knows a cursor of an earlier time.
            log.warning("webhook_removed", channel=self.key)
            await self._api.call("deleteWebhook")
            found = await self._get_updates(cursor)
        return Polled(tuple(read_updates(found, self.key)), _next_cursor(found, cursor))

    async def _get_updates(self, cursor: str | None) -> list[Any]:
        params: dict[str, Any] = {
            "timeout": POLL_S,
            "limit": POLL_LIMIT,
            "allowed_updates": self._allowed_updates,
        }
        if cursor is not None:
            params["offset"] = number(cursor, Reason.UNKNOWN, "update")
        found = await self._api.call("getUpdates", params, wait_s=POLL_S)
        if not isinstance(found, list):
            raise DeliveryError(Reason.PLATFORM_UNAVAILABLE, "getUpdates: no list of updates")
        return found

    async def fetch_file(self, file_ref: str, into: IO[bytes], max_bytes: int) -> None:
        await files.fetch(self._api, file_ref, into, max_bytes)

    def verify_mini_app(self, init_data: str) -> MiniAppUser:
        return verify_init_data(init_data, self._settings.token.get_secret_value())

    # ---- its life -------------------------------------------------------------------------------

    async def close(self) -> None:
        await self._api.close()
        if self._login is not None:
            await self._login.close()


def _chat(chat_id: str) -> int:
    return number(chat_id, Reason.CHAT_NOT_FOUND, "chat")


def _why_updates_wait(info: dict[str, Any]) -> str | None:
    waiting, said = info.get("pending_update_count"), info.get("last_error_message")
    if not waiting or not isinstance(said, str):
        return None
    return f"updates waiting: {waiting}, Telegram's last call to us failed: {said[:200]}"


def _next_cursor(found: list[Any], cursor: str | None) -> str:
    """Past everything in `found`, also past what could not be read: it would come for ever.

    "0" is Telegram's word for the first that it has kept.
    """
    ids = [each.get("update_id") for each in found if isinstance(each, dict)]
    numbers = [update_id for update_id in ids if type(update_id) is int]
    return str(max(numbers) + 1) if numbers else cursor or "0"


def _explained(error: BotApiError) -> BotApiError:
    if not error.says("terminated by other getupdates"):
        return error
    return BotApiError(
        error.reason,
        f"{error.text} (another program, or another deployment of this one, asks for the updates of"
        " the same bot; each bot needs a token of its own)",
    )


def _paid_broadcasts(
    context: ChannelContext, identity: ChannelIdentity, settings: TelegramSettings
) -> PaidBroadcasts | None:
    if settings.paid_broadcast_stars is None:
        return None
    return PaidBroadcasts(
        key=identity.key,
        clock=context.clock,
        spending=ChannelSpending(clock=context.clock, db=context.db),
        stars=settings.paid_broadcast_stars,
        free_per_s=settings.per_bot_s,
    )
