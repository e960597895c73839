"""Converts outgoing messages to parameters of the Bot API's methods."""

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from msgsvc_core.channels import Button, DeliveryError, Media, OutgoingMessage, Reason
from msgsvc_telegram.formatting import formatted
from msgsvc_telegram.rich import is_rich, rich_message

#: By our type of media: the method, and its parameter for the file.
METHODS = {
    "image": ("sendPhoto", "photo"),
    "video": ("sendVideo", "video"),
    "document": ("sendDocument", "document"),
}

#: Bytes that a button can send back (Bot API, InlineKeyboardButton.callback_data).
MAX_CALLBACK_BYTES = 64

#: Characters of a notice (Bot API, answerCallbackQuery).
MAX_NOTICE = 200

#: What sendDocument fetches by URL; all else must be uploaded (Bot API, "Sending files").
_FETCHED_DOCUMENTS = frozenset({".gif", ".pdf", ".zip"})


@dataclass(frozen=True, slots=True)
class Call:
    """A method and its parameters; `file_field` is the parameter of the file, if there is one."""

    method: str
    params: dict[str, Any]
    file_field: str | None = None


def sending(chat_id: int, message: OutgoingMessage) -> Call:
    """The call that sends `message`; the file's parameter is set later."""
    params: dict[str, Any] = {"chat_id": chat_id}
    if message.thread is not None:
        params["message_thread_id"] = number(message.thread, Reason.INVALID_MESSAGE, "topic")
    if message.silent:
        params["disable_notification"] = True
    if message.buttons:
        params["reply_markup"] = keyboard(message.buttons)
    if is_rich(message):
        return Call("sendRichMessage", params | {"rich_message": rich_message(message.text)})
    if message.media is None:
        return Call("sendMessage", params | _text(message, "text", "entities"))
    method, field = METHODS[message.media.type]
    return Call(method, params | _text(message, "caption", "caption_entities"), field)


def editing(chat_id: int, message_id: int, message: OutgoingMessage, *, caption: bool) -> Call:
    """The call that replaces text and buttons; omitted buttons are removed."""
    params: dict[str, Any] = {"chat_id": chat_id, "message_id": message_id}
    if message.buttons:
        params["reply_markup"] = keyboard(message.buttons)
    if caption:
        return Call("editMessageCaption", params | _text(message, "caption", "caption_entities"))
    if is_rich(message):
        return Call("editMessageText", params | {"rich_message": rich_message(message.text)})
    return Call("editMessageText", params | _text(message, "text", "entities"))


def keyboard(rows: tuple[tuple[Button, ...], ...]) -> dict[str, Any]:
    return {"inline_keyboard": [[_button(button) for button in row] for row in rows]}


def fetched_by_telegram(media: Media) -> bool:
    """Whether Telegram can fetch the file itself.

    Only a file that we upload can have a name.
    """
    if media.type != "document":
        return True
    suffix = PurePosixPath(urlsplit(media.url).path).suffix.lower()
    return media.filename is None and suffix in _FETCHED_DOCUMENTS


def problem_of_buttons(message: OutgoingMessage) -> str | None:
    for row in message.buttons:
        for button in row:
            if button.data is not None and not _fits(button.data):
                return f"buttons: data must be 1-{MAX_CALLBACK_BYTES} bytes on this channel"
    return None


def notice(text: str) -> str:
    """A notice cut to the maximum length."""
    return text if len(text) <= MAX_NOTICE else text[: MAX_NOTICE - 1] + "…"


def number(text: str, reason: Reason, what: str) -> int:
    """A chat's or a message's id as Telegram's number.

    Raises `DeliveryError` with `reason` for an invalid id.
    """
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) <= 18:
        return int(text)
    raise DeliveryError(reason, f"Telegram has no {what} with such an id")


def _text(message: OutgoingMessage, text_field: str, entities_field: str) -> dict[str, Any]:
    text, entities = formatted(message.text, message.format)
    return {text_field: text, entities_field: entities} if entities else {text_field: text}


def _button(button: Button) -> dict[str, str]:
    shown = {"text": button.text} | ({"style": button.style} if button.style else {})
    if button.url is not None:
        return shown | {"url": button.url}
    return shown | {"callback_data": button.data or ""}


def _fits(data: str) -> bool:
    return 1 <= len(data.encode("utf-8", "surrogatepass")) <= MAX_CALLBACK_BYTES
