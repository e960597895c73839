"""Strictly validates requests against Meta's OpenAPI document (schemas `Message`, `InteractiveObject`)."""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from msgsvc_devkit.platforms.whatsapp.refusals import Refused, malformed

#: What can be uploaded, and the most bytes of it (Cloud API: "Supported media types").
MEDIA_TYPES: Mapping[str, tuple[frozenset[str], int]] = {
    "image": (frozenset({"image/jpeg", "image/png"}), 5 * 1024 * 1024),
    "video": (frozenset({"video/mp4", "video/3gpp"}), 16 * 1024 * 1024),
    "document": (
        frozenset(
            {
                "text/plain",
                "application/pdf",
                "application/msword",
                "application/vnd.ms-excel",
                "application/vnd.ms-powerpoint",
                "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
                "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
                "application/vnd.openxmlformats-officedocument.presentationml.presentation",
            }
        ),
        100 * 1024 * 1024,
    ),
}

_RECIPIENT = re.compile(r"[A-Z]{2}\.(?:ENT\.)?[A-Za-z0-9]{1,128}")
_PHONE = re.compile(r"\+?[1-9][0-9]{4,14}")
_URL = re.compile(r"https?://[^\s/]\S*")


def message_body(value: Any) -> dict[str, Any]:
    """A message; what it names is looked up elsewhere. Raises `Refused`."""
    common = {
        "messaging_product",
        "recipient_type",
        "to",
        "recipient",
        "type",
        "context",
        "biz_opaque_callback_data",
    }
    kind = value.get("type") if isinstance(value, dict) else None
    check = _BODIES.get(kind) if isinstance(kind, str) else None
    if check is None:
        raise malformed("type: unknown")
    body = object_of(value, "body", {*common, str(kind)})
    if body.get("messaging_product") != "whatsapp":
        raise malformed("messaging_product: must be whatsapp")
    if body.get("recipient_type", "individual") != "individual":
        raise malformed("recipient_type: the fake knows individuals alone")
    _check_recipient(body)
    check(body.get(str(kind)))
    return body


def webhook_body(value: Any) -> dict[str, str]:
    """The body that overrides the webhook of a phone number."""
    override = object_of(value, "body", {"webhook_configuration"}).get("webhook_configuration")
    fields = object_of(override, "webhook_configuration", {"override_callback_uri", "verify_token"})
    url, token = fields.get("override_callback_uri"), fields.get("verify_token")
    if url == "":
        return {"url": "", "token": ""}
    if not isinstance(url, str) or not re.fullmatch(
        r"https://\S+|http://127\.0\.0\.1:\d+/\S*", url
    ):
        raise malformed("override_callback_uri: must be https")
    if not isinstance(token, str) or not token:
        raise malformed("verify_token: must be given")
    return {"url": url, "token": token}


def read_body(value: Any) -> dict[str, Any] | None:
    """The body that marks a message as read; None for any other."""
    if not isinstance(value, dict) or "status" not in value:
        return None
    body = object_of(
        value, "body", {"messaging_product", "status", "message_id", "typing_indicator"}
    )
    if body.get("status") != "read" or not isinstance(body.get("message_id"), str):
        raise malformed("status: must be read, of a message")
    return body


def object_of(value: Any, where: str, known: Collection[str]) -> dict[str, Any]:
    """A JSON object without other fields."""
    if not isinstance(value, dict):
        raise malformed(f"{where}: must be an object")
    for name in value:
        if name not in known:
            raise malformed(f"{where}.{name}: no such field")
    return value


def text_in(holder: Mapping[str, Any], name: str, most: int) -> str:
    """A text with 1 to `most` UTF-16 code units."""
    value = holder.get(name)
    if not isinstance(value, str) or not value.strip():
        raise malformed(f"{name}: must be a text")
    if len(value.encode("utf-16-le", "surrogatepass")) // 2 > most:
        raise malformed(f"{name}: must be at most {most} characters long")
    return value


def _check_recipient(body: Mapping[str, Any]) -> None:
    # Of both, `to` would win (Business-scoped user IDs); the fake wants one.
    if ("to" in body) == ("recipient" in body):
        raise malformed("one of to and recipient must be given")
    if "to" in body and not (isinstance(body["to"], str) and _PHONE.fullmatch(body["to"])):
        raise malformed("to: must be a phone number")
    recipient = body.get("recipient", "US.1")
    if not (isinstance(recipient, str) and _RECIPIENT.fullmatch(recipient)):
        raise malformed("recipient: must be a business-scoped user ID")


def _check_text(value: Any) -> None:
    text = object_of(value, "text", {"body", "preview_url"})
    text_in(text, "body", 4096)
    if not isinstance(text.get("preview_url", False), bool):
        raise malformed("text.preview_url: must be true or false")


def _check_media(value: Any) -> None:
    media = object_of(value, "media", {"id", "link", "caption", "filename"})
    if ("id" in media) == ("link" in media):
        raise malformed("one of id and link must be given")
    if "caption" in media:
        text_in(media, "caption", 1024)
    text_in(media, "id" if "id" in media else "link", 2048)


def _check_interactive(value: Any) -> None:
    interactive = object_of(value, "interactive", {"type", "header", "body", "footer", "action"})
    text_in(object_of(interactive.get("body"), "interactive.body", {"text"}), "text", 1024)
    kind, header = interactive.get("type"), interactive.get("header")
    if header is not None:
        if kind == "list" and header.get("type") != "text":
            raise malformed("interactive.header: of a list must be text")
        _check_header(header)
    check = _ACTIONS.get(str(kind))
    if check is None:
        raise malformed("interactive.type: the fake knows button, list and cta_url")
    check(interactive.get("action"))


def _check_header(value: Any) -> None:
    kind = value.get("type") if isinstance(value, dict) else None
    header = object_of(value, "interactive.header", {"type", str(kind)})
    if kind == "text":
        text_in(header, "text", 60)
    elif kind in MEDIA_TYPES:
        media = object_of(header.get(str(kind)), "interactive.header", {"id", "link", "filename"})
        _check_media(media)
    else:
        raise malformed("interactive.header.type: unknown")


def _check_buttons(value: Any) -> None:
    buttons = object_of(value, "interactive.action", {"buttons"}).get("buttons")
    if not isinstance(buttons, list) or not 1 <= len(buttons) <= 3:
        raise malformed("interactive.action.buttons: must be 1-3")
    replies = []
    for one in buttons:
        button = object_of(one, "button", {"type", "reply"})
        if button.get("type") != "reply":
            raise malformed("button.type: must be reply")
        replies.append(object_of(button.get("reply"), "button.reply", {"id", "title"}))
    for reply in replies:
        text_in(reply, "title", 20)
    _check_ids(replies, 256)
    if len({reply["title"] for reply in replies}) < len(replies):
        raise malformed("button.reply.title: must be unique")


def _check_list(value: Any) -> None:
    action = object_of(value, "interactive.action", {"button", "sections"})
    text_in(action, "button", 20)
    sections = action.get("sections")
    if not isinstance(sections, list) or not 1 <= len(sections) <= 10:
        raise malformed("interactive.action.sections: must be 1-10")
    rows: list[Any] = []
    for one in sections:
        section = object_of(one, "section", {"title", "rows"})
        if len(sections) > 1:
            text_in(section, "title", 24)
        rows += section.get("rows") or []
    if not 1 <= len(rows) <= 10:
        raise malformed("interactive.action.sections: must be 1-10 rows together")
    for row in rows:
        object_of(row, "row", {"id", "title", "description"})
        text_in(row, "title", 24)
        if "description" in row:
            text_in(row, "description", 72)
    _check_ids(rows, 200)


def _check_ids(holders: list[dict[str, Any]], limit: int) -> None:
    ids = [text_in(one, "id", limit) for one in holders]
    if any(one != one.strip() for one in ids) or len(set(ids)) < len(ids):
        raise malformed("id: must be unique, without blanks at its ends")


def _check_url_button(value: Any) -> None:
    action = object_of(value, "interactive.action", {"name", "parameters"})
    if action.get("name") != "cta_url":
        raise malformed("interactive.action.name: must be cta_url")
    fields = object_of(action.get("parameters"), "parameters", {"display_text", "url"})
    text_in(fields, "display_text", 20)
    if not _URL.fullmatch(text_in(fields, "url", 2000)):
        raise malformed("parameters.url: must be an address")


def _check_template(value: Any) -> None:
    template = object_of(value, "template", {"name", "language", "components"})
    text_in(template, "name", 512)
    text_in(object_of(template.get("language"), "language", {"code", "policy"}), "code", 10)
    for one in template.get("components", []):
        component = object_of(one, "component", {"type", "parameters"})
        if str(component.get("type")).lower() != "body":
            raise malformed("component.type: the fake knows bodies alone")
        for parameter in component.get("parameters", []):
            fields = object_of(parameter, "parameter", {"type", "text"})
            text = text_in(fields, "text", 1024)
            if re.search(r"[\n\t]| {5}", text):
                raise Refused(
                    400,
                    132012,
                    "Parameter format does not match",
                    "Param text cannot have new-line/tab characters or more than 4 consecutive spaces",
                )


_ACTIONS: Mapping[str, Callable[[Any], None]] = {
    "button": _check_buttons,
    "list": _check_list,
    "cta_url": _check_url_button,
}

_BODIES: Mapping[str, Callable[[Any], None]] = {
    "text": _check_text,
    "image": _check_media,
    "video": _check_media,
    "document": _check_media,
    "interactive": _check_interactive,
    "template": _check_template,
}
