"""Parameters of the methods that the fake supports, and their types.

From the published schema of Bot API 10.1 (PaulSonOfLars/telegram-bot-api-spec, `api.json`). Methods and
parameters that the plugin doesn't use are omitted, so that their use by mistake is noticed.
"""

import json
from collections.abc import Mapping
from typing import Any

from msgsvc_devkit.platforms.telegram.calls import Upload, bad_request, complaint
from msgsvc_devkit.platforms.telegram.looks import check_entities, check_keyboard

#: `!` marks required parameters. `File` is an upload, a URL or a file_id.
_MESSAGE = {
    "chat_id": "Integer!",
    "message_thread_id": "Integer",
    "disable_notification": "Boolean",
    "protect_content": "Boolean",
    "allow_paid_broadcast": "Boolean",
    "reply_markup": "Keyboard",
}
_TEXT = {"text": "String!", "entities": "Entities"}
_CAPTION = {"caption": "String", "caption_entities": "Entities"}
_EDIT = {"chat_id": "Integer!", "message_id": "Integer!", "reply_markup": "Keyboard"}

METHODS: dict[str, dict[str, str]] = {
    "getMe": {},
    "sendMessage": _MESSAGE | _TEXT,
    "sendRichMessage": _MESSAGE | {"rich_message": "Rich!"},
    "sendPhoto": _MESSAGE | _CAPTION | {"photo": "File!"},
    "sendVideo": _MESSAGE | _CAPTION | {"video": "File!", "supports_streaming": "Boolean"},
    "sendDocument": _MESSAGE | _CAPTION | {"document": "File!"},
    "editMessageText": _EDIT | {"text": "String", "entities": "Entities", "rich_message": "Rich"},
    "editMessageCaption": _EDIT | _CAPTION,
    "deleteMessage": {"chat_id": "Integer!", "message_id": "Integer!"},
    "answerCallbackQuery": {
        "callback_query_id": "String!",
        "text": "String",
        "show_alert": "Boolean",
    },
    "createForumTopic": {
        "chat_id": "Integer!",
        "name": "String!",
        "icon_color": "Integer",
        "icon_custom_emoji_id": "String",
    },
    "setMyCommands": {"commands": "Commands!", "language_code": "String"},
    "setWebhook": {
        "url": "String!",
        "max_connections": "Integer",
        "allowed_updates": "Strings",
        "drop_pending_updates": "Boolean",
        "secret_token": "String",
    },
    "deleteWebhook": {"drop_pending_updates": "Boolean"},
    "getWebhookInfo": {},
    "getFile": {"file_id": "String!"},
    "getManagedBotToken": {"user_id": "Integer!"},
    "getUpdates": {
        "offset": "Integer",
        "limit": "Integer",
        "timeout": "Integer",
        "allowed_updates": "Strings",
    },
}

_PYTHON_TYPES: dict[str, type | tuple[type, ...]] = {
    "Integer": int,
    "Boolean": bool,
    "String": str,
    "Strings": list,
    "Entities": list,
    "Commands": list,
    "Keyboard": dict,
    "Rich": dict,
    "File": (str, Upload),
}


def check_parameters(method: str, given: Mapping[str, Any], *, as_text: bool) -> dict[str, Any]:
    """The parameters, converted to their types.

    `as_text` is for forms and query strings, where numbers and objects are strings. Raises `Refusal` for
    unknown names, wrong types, and missing parameters.
    """
    known = METHODS[method]
    read: dict[str, Any] = {}
    for name, found in given.items():
        if name not in known:
            raise complaint(f"{method} has no parameter {name!r}")
        kind = known[name].rstrip("!")
        as_it_is = not as_text or not isinstance(found, str)
        value = found if as_it_is else _from_text(kind, name, found)
        expected = _PYTHON_TYPES[kind]
        if not isinstance(value, expected) or (kind == "Integer" and isinstance(value, bool)):
            raise complaint(f"{name} must be of type {kind}, not {type(value).__name__}")
        _check_inside(kind, name, value)
        read[name] = value
    missing = [name for name, kind in known.items() if kind.endswith("!") and name not in read]
    if missing:
        raise bad_request(f"parameter {missing[0]} is missing")
    if method == "editMessageText" and ("text" in read) == ("rich_message" in read):
        raise complaint("editMessageText has either text or rich_message")
    _check_looks(read)
    return read


def _from_text(kind: str, name: str, value: str) -> Any:
    if kind in {"String", "File"}:
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise bad_request(f"can't parse {name} JSON object") from None


def _check_inside(kind: str, name: str, value: Any) -> None:
    if kind == "Strings" and not all(isinstance(each, str) for each in value):
        raise complaint(f"{name} must hold strings")
    if kind == "Keyboard":
        check_keyboard(value)


def _check_looks(read: Mapping[str, Any]) -> None:
    check_entities(read.get("text", ""), read.get("entities", []))
    check_entities(read.get("caption", ""), read.get("caption_entities", []))
