"""The methods of the Bot API."""

import re
from collections.abc import Awaitable, Callable
from pathlib import PurePosixPath
from typing import Any, Literal
from urllib.parse import urlsplit

from msgsvc_devkit.platforms.telegram.bots import FakeBot
from msgsvc_devkit.platforms.telegram.calls import Refusal, Upload, bad_request, complaint
from msgsvc_devkit.platforms.telegram.chats import (
    Chat,
    PrivateChat,
    ShownFile,
    ShownMessage,
)
from msgsvc_devkit.platforms.telegram.looks import check_caption, check_text
from msgsvc_devkit.platforms.telegram.rich import shown_text
from msgsvc_devkit.platforms.telegram.update_queue import Webhook

#: Fetches a file for the bot: its URL and kind to its content. Raises `Refusal`.
Fetch = Callable[[str, str], Awaitable[bytes]]

#: Maximum commands of a bot's menu, and characters of a description (Bot API, setMyCommands, BotCommand).
MAX_COMMANDS, MAX_ABOUT = 100, 256

#: Maximum bytes of a bot's upload (Bot API, "Sending files").
MAX_PHOTO_BYTES, MAX_FILE_BYTES = 10 * 1024 * 1024, 50 * 1024 * 1024

#: Maximum bytes of a file that a bot may download (Bot API, getFile).
MAX_DOWNLOAD_BYTES = 20 * 1024 * 1024

NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same"
    " as a current content and reply markup of the message"
)

#: Characters of a topic's name, and a colour of its icon (Bot API, createForumTopic).
MAX_TOPIC_NAME, TOPIC_COLOR = 128, 0x6FB9F0

_SECRET_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


class Methods:
    """The methods, for all bots of one fake. The types of parameters have been checked."""

    def __init__(self, fetch: Fetch, *, https_only: bool) -> None:
        self._fetch = fetch
        self._https_only = https_only

    async def run(self, bot: FakeBot, method: str, params: dict[str, Any]) -> Any:
        """The method's result. Raises `Refusal`."""
        if method.startswith("send"):
            return await self._send(bot, method.removeprefix("send").lower(), params)
        if method.startswith("edit"):
            return self._edit(bot, params, caption=method == "editMessageCaption")
        handlers: dict[str, Callable[[FakeBot, dict[str, Any]], Any]] = {
            "getMe": lambda bot, _: bot.me,
            "deleteMessage": _delete,
            "answerCallbackQuery": _answer,
            "setMyCommands": _set_commands,
            "setWebhook": self._set_webhook,
            "deleteWebhook": _delete_webhook,
            "getWebhookInfo": _webhook_info,
            "getFile": _get_file,
            "getManagedBotToken": _managed_token,
            "createForumTopic": _create_topic,
        }
        if method == "getUpdates":
            return await _get_updates(bot, params)
        return handlers[method](bot, params)

    async def _send(self, bot: FakeBot, kind: str, params: dict[str, Any]) -> dict[str, Any]:
        chat = bot.writable(params["chat_id"])
        looks: dict[str, Any] = {
            "buttons": params.get("reply_markup", {}).get("inline_keyboard", []),
            "silent": params.get("disable_notification", False),
            "topic": _topic(bot, chat, params.get("message_thread_id", 0)),
        }
        if kind == "message":
            check_text(params["text"])
            looks["entities"] = params.get("entities", [])
            message = chat.add(params["text"], from_bot=True, **looks)
        elif kind == "richmessage":
            looks["rich"] = params["rich_message"]
            message = chat.add(shown_text(params["rich_message"]), from_bot=True, **looks)
        else:
            assert kind in {"photo", "video", "document"}
            check_caption(params.get("caption", ""))
            looks["entities"] = params.get("caption_entities", [])
            looks["file"] = await self._file(kind, params[kind])  # type: ignore[arg-type] # asserted
            message = chat.add(params.get("caption", ""), from_bot=True, **looks)
        return bot.message_object(chat, message)

    async def _file(
        self, kind: Literal["photo", "video", "document"], given: str | Upload
    ) -> ShownFile:
        if isinstance(given, str):
            if not given.startswith(("http://", "https://")):
                raise bad_request("wrong file identifier/HTTP URL specified")
            name = PurePosixPath(urlsplit(given).path).name
            return ShownFile(kind, name, await self._fetch(given, kind), given)
        if not given.content:
            raise bad_request("file must be non-empty")
        if len(given.content) > (MAX_PHOTO_BYTES if kind == "photo" else MAX_FILE_BYTES):
            raise Refusal(413, "Request Entity Too Large")
        return ShownFile(kind, given.filename, given.content)

    def _edit(self, bot: FakeBot, params: dict[str, Any], *, caption: bool) -> dict[str, Any]:
        chat = bot.writable(params["chat_id"])
        message = _own(chat, params["message_id"], "edit")
        if caption and message.file is None:
            raise bad_request("there is no caption in the message to edit")
        if not caption and message.file is not None:
            raise bad_request("there is no text in the message to edit")
        rich = params.get("rich_message")
        if rich is not None:
            text = shown_text(rich)
        else:
            text = params.get("caption", "") if caption else params["text"]
            (check_caption if caption else check_text)(text)
        entities = params.get("caption_entities" if caption else "entities", [])
        buttons = params.get("reply_markup", {}).get("inline_keyboard", [])
        before = (message.text, message.entities, message.buttons, message.rich)
        if (text, entities, buttons, rich) == before:
            raise bad_request(NOT_MODIFIED)
        message.text, message.entities, message.buttons = text, entities, buttons
        message.rich = rich
        message.edits += 1
        chat.changed()
        return bot.message_object(chat, message)

    def _set_webhook(self, bot: FakeBot, params: dict[str, Any]) -> bool:
        url, secret = params["url"], params.get("secret_token", "")
        if not set(secret) <= _SECRET_LETTERS or len(secret) > 256:
            raise bad_request("secret token contains unallowed characters")
        if url and not url.startswith("https://" if self._https_only else "http"):
            raise bad_request("bad webhook: An HTTPS URL must be provided for webhook")
        if "allowed_updates" in params:
            bot.updates.allow(params["allowed_updates"])
        return _use_webhook(bot, Webhook(url, secret), params)


def _topic(bot: FakeBot, chat: Chat, topic: int) -> int | None:
    """The topic of a message to be sent; groups without topics ignore it. Raises `Refusal`."""
    if topic == 0 or not isinstance(chat, PrivateChat):
        return None
    if not bot.has_topics or topic not in chat.topics:
        raise bad_request("message thread not found")
    return topic


def _create_topic(bot: FakeBot, params: dict[str, Any]) -> dict[str, Any]:
    chat, name = bot.writable(params["chat_id"]), params["name"]
    if not bot.has_topics or not isinstance(chat, PrivateChat):
        # In TDLib's words.
        raise bad_request("the chat is not a forum")
    if not 1 <= len(name.strip()) <= MAX_TOPIC_NAME:
        raise complaint(f"a topic's name has 1-{MAX_TOPIC_NAME} characters, not {len(name)}")
    topic = chat.open_topic(name)
    return {"message_thread_id": topic, "name": name, "icon_color": TOPIC_COLOR}


def _delete(bot: FakeBot, params: dict[str, Any]) -> bool:
    chat = bot.writable(params["chat_id"])
    message = _own(chat, params["message_id"], "delete")
    if message.old:
        raise bad_request("message can't be deleted for everyone")
    del chat.messages[message.message_id]
    chat.changed()
    return True


def _own(chat: Chat, message_id: int, what: str) -> ShownMessage:
    message = chat.messages.get(message_id)
    if message is None:
        raise bad_request(f"message to {what} not found")
    if not message.from_bot and what == "edit":
        raise bad_request("message can't be edited")
    return message


def _answer(bot: FakeBot, params: dict[str, Any]) -> bool:
    if len(params.get("text", "")) > 200:
        raise bad_request("MESSAGE_TOO_LONG")
    press = bot.presses.get(params["callback_query_id"])
    if press is None:
        raise bad_request("query is too old and response timeout expired or query ID is invalid")
    press.answer(params.get("text", ""))
    return True


def _set_commands(bot: FakeBot, params: dict[str, Any]) -> bool:
    given, lang = params["commands"], params.get("language_code") or None
    if len(given) > MAX_COMMANDS:
        raise bad_request("BOT_COMMANDS_TOO_MUCH")
    if lang is not None and not re.fullmatch(r"[a-z]{2}", lang):
        raise bad_request("invalid language_code specified")
    shown: dict[str, str] = {}
    for command in given:
        if not isinstance(command, dict) or set(command) != {"command", "description"}:
            raise complaint("commands must hold objects of command and description")
        name, description = command["command"], command["description"]
        if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9_]{1,32}", name):
            raise bad_request("BOT_COMMAND_INVALID")
        if not isinstance(description, str) or not 1 <= len(description.strip()) <= MAX_ABOUT:
            raise bad_request("BOT_COMMAND_DESCRIPTION_INVALID")
        shown[name] = description
    bot.commands[lang] = shown
    return True


def _get_file(bot: FakeBot, params: dict[str, Any]) -> dict[str, Any]:
    file = bot.files.get(params["file_id"])
    if file is None:
        raise bad_request("wrong file_id or the file is temporarily unavailable")
    if len(file.content) > MAX_DOWNLOAD_BYTES:
        raise bad_request("file is too big")
    return {
        "file_id": params["file_id"],
        "file_unique_id": "u",
        "file_size": len(file.content),
        "file_path": file.path,
    }


def _managed_token(bot: FakeBot, params: dict[str, Any]) -> str:
    managed = bot.managed.get(params["user_id"])
    if managed is None:
        # Of an id that the bot has never seen; what Telegram says of others' bots isn't published.
        raise bad_request("user not found")
    return managed.token


def _delete_webhook(bot: FakeBot, params: dict[str, Any]) -> bool:
    return _use_webhook(bot, Webhook(), params)


def _use_webhook(bot: FakeBot, webhook: Webhook, params: dict[str, Any]) -> bool:
    if webhook.url:
        bot.updates.end_polling("Conflict: terminated by setWebhook request")
    bot.updates.webhook = webhook
    if params.get("drop_pending_updates"):
        bot.updates.drop()
    bot.updates.wake()
    return True


def _webhook_info(bot: FakeBot, _: dict[str, Any]) -> dict[str, Any]:
    webhook = bot.updates.webhook
    info: dict[str, Any] = {
        "url": webhook.url,
        "has_custom_certificate": False,
        "pending_update_count": len(bot.updates),
    }
    if webhook.last_error:
        info |= {"last_error_date": webhook.last_error_at, "last_error_message": webhook.last_error}
    return info


async def _get_updates(bot: FakeBot, params: dict[str, Any]) -> list[dict[str, Any]]:
    if "allowed_updates" in params:
        bot.updates.allow(params["allowed_updates"])
    limit, timeout_s = params.get("limit", 100), params.get("timeout", 0)
    if not 1 <= limit <= 100 or not 0 <= timeout_s <= 50:
        raise bad_request("limit must be 1-100, and timeout 0-50")
    return await bot.updates.poll(params.get("offset", 0), limit, timeout_s)
