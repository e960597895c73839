"""Strictly validates requests against the schema."""

import re
from collections.abc import Collection, Mapping
from typing import Any

from msgsvc_devkit.platforms.max.refusals import malformed

#: The mapping of types of the schema's Update.
UPDATE_TYPES = frozenset(
    {
        "bot_added",
        "bot_started",
        "bot_stopped",
        "bot_removed",
        "chat_title_changed",
        "dialog_cleared",
        "dialog_muted",
        "dialog_unmuted",
        "dialog_removed",
        "message_callback",
        "message_created",
        "message_edited",
        "message_removed",
        "user_added",
        "user_removed",
    }
)

FILE_TYPES = frozenset({"image", "video", "audio", "file"})

#: Maximum attachments of one message besides its keyboard (dev.max.ru, NewMessageBody).
MOST_FILES = 12

#: Maximum commands of a bot, and length of their names and descriptions (dev.max.ru, PATCH /me/commands).
MOST_COMMANDS, LONGEST_COMMAND, LONGEST_ABOUT = 32, 64, 128

_SECRET = re.compile(r"[a-zA-Z0-9_-]{5,256}")
_WEBHOOK = re.compile(r"https://[a-zA-Z0-9.-]+(/\S*)?|http://127\.0\.0\.1:\d+(/\S*)?")


def query_of(given: Mapping[str, str], known: Collection[str]) -> Mapping[str, str]:
    """The parameters of a call. Raises `Refused`."""
    for name in given:
        if name not in known:
            raise malformed(f"{name}: no such parameter")
    return given


def number_in(query: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    """A numeric parameter."""
    value = query.get(name, str(default))
    if not re.fullmatch(r"-?\d{1,19}", value) or not least <= int(value) <= most:
        raise malformed(f"{name}: must be a number of {least}-{most}")
    return int(value)


def object_of(value: Any, where: str, known: Collection[str]) -> dict[str, Any]:
    """A JSON object without other fields."""
    if not isinstance(value, dict):
        raise malformed(f"{where}: must be an object")
    for name in value:
        if name not in known:
            raise malformed(f"{where}.{name}: no such field")
    return value


def text_in(
    holder: Mapping[str, Any], name: str, *, least: int = 0, most: int, required: bool = True
) -> str | None:
    """A string with that many UTF-16 code units."""
    value = holder.get(name)
    if value is None and not required:
        return None
    if not isinstance(value, str):
        raise malformed(f"{name}: must be a text")
    if not least <= len(value.encode("utf-16-le", "surrogatepass")) // 2 <= most:
        raise malformed(f"{name}: must be {least}-{most} characters")
    return value


def message_body(value: Any) -> dict[str, Any]:
    """A NewMessageBody; references of its attachments are resolved elsewhere. Raises `Refused`."""
    body = object_of(value, "body", {"text", "attachments", "link", "notify", "format"})
    text_in(body, "text", most=4000, required=False)
    if body.get("format") not in {None, "html", "markdown"}:
        raise malformed("format: must be html or markdown")
    if not isinstance(body.get("notify", True), bool):
        raise malformed("notify: must be true or false")
    if body.get("link") is not None:
        raise malformed("link: the fake takes no links to other messages")
    _check_attachments(body.get("attachments"))
    return body


def answer_body(value: Any) -> dict[str, Any]:
    """A CallbackAnswer."""
    body = object_of(value, "body", {"message", "notification"})
    text_in(body, "notification", most=4000, required=False)
    if body.get("message") is not None:
        message_body(body["message"])
    return body


def commands_body(value: Any) -> dict[str, str]:
    """The body of PATCH /me/commands: descriptions by name."""
    given = object_of(value, "body", {"commands"}).get("commands")
    if not isinstance(given, list) or len(given) > MOST_COMMANDS:
        raise malformed(f"commands: must be an array of at most {MOST_COMMANDS}")
    shown: dict[str, str] = {}
    for command in given:
        fields = object_of(command, "commands", {"name", "description"})
        name, description = fields.get("name"), fields.get("description", "-")
        if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_COMMAND:
            raise malformed(f"commands.name: must have 1-{LONGEST_COMMAND} characters")
        if not isinstance(description, str) or not 1 <= len(description) <= LONGEST_ABOUT:
            raise malformed(f"commands.description: must have 1-{LONGEST_ABOUT} characters")
        shown[name] = description
    return shown


def subscription_body(value: Any) -> dict[str, Any]:
    """A SubscriptionRequestBody. Besides https the fake allows http on this machine."""
    body = object_of(value, "body", {"url", "update_types", "secret"})
    if not isinstance(body.get("url"), str) or not _WEBHOOK.fullmatch(body["url"]):
        raise malformed("url: must be https, without a port")
    secret = body.get("secret")
    if secret is not None and not (isinstance(secret, str) and _SECRET.fullmatch(secret)):
        raise malformed("secret: must be 5-256 letters, digits, _ and -")
    types = body.get("update_types")
    if types is not None:
        if not isinstance(types, list) or len(set(map(str, types))) != len(types):
            raise malformed("update_types: must be a list in which nothing is twice")
        check_types(types)
    return body


def check_types(types: Collection[Any]) -> None:
    for kind in types:
        if kind not in UPDATE_TYPES:
            raise malformed(f"update_types: there is no {kind!r}")


def _check_attachments(value: Any) -> None:
    if value is None:
        return
    if not isinstance(value, list):
        raise malformed("attachments: must be a list")
    kinds = []
    for number, one in enumerate(value):
        where = f"attachments[{number}]"
        attachment = object_of(one, where, {"type", "payload"})
        kinds.append(attachment.get("type"))
        if kinds[-1] == "inline_keyboard":
            payload = object_of(attachment.get("payload"), where, {"buttons"})
            _check_keyboard(payload.get("buttons"))
        elif kinds[-1] in FILE_TYPES:
            _check_file(attachment, where)
        else:
            raise malformed(f"{where}.type: unknown")
    files = [kind for kind in kinds if kind != "inline_keyboard"]
    if len(files) > MOST_FILES or kinds.count("inline_keyboard") > 1:
        raise malformed("attachments: too many")
    if len(files) > 1 and not set(files) <= {"image", "video"}:
        raise malformed("attachments: a file or audio must be alone, but for a keyboard")


def _check_file(attachment: Mapping[str, Any], where: str) -> None:
    of_image = {"url", "token", "photos"} if attachment["type"] == "image" else {"token"}
    payload = object_of(attachment.get("payload"), f"{where}.payload", of_image)
    given = [name for name, value in payload.items() if value is not None]
    if len(given) != 1:
        raise malformed("No `photos`, `url` or `token` provided. Check payload.")
    if given[0] != "photos":
        text_in(payload, given[0], least=1, most=10_000)


def _check_keyboard(rows: Any) -> None:
    if not isinstance(rows, list) or not 1 <= len(rows) <= 30:
        raise malformed("buttons: must be 1-30 rows")
    for row in rows:
        if not isinstance(row, list) or not row:
            raise malformed("buttons: a row must be a list, and not empty")
        kinds = [_check_button(button) for button in row]
        limit = 3 if "link" in kinds else 7
        if len(row) > limit:
            raise malformed(f"buttons: this row must be at most {limit} buttons")


def _check_button(value: Any) -> str:
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "callback":
        button = object_of(value, "button", {"type", "text", "payload"})
        text_in(button, "payload", most=1024)
    elif kind == "link":
        button = object_of(value, "button", {"type", "text", "url"})
        text_in(button, "url", least=1, most=2048)
        if not re.match(r"https?://\S+$", button["url"]):
            raise malformed("button.url: must be an address")
    else:
        raise malformed("button.type: the fake knows callback and link")
    text_in(button, "text", least=1, most=128)
    return str(kind)
