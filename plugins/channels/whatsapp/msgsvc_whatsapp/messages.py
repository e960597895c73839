"""Bodies of `POST /{phone-number-id}/messages` (OpenAPI of Meta, schema `Message`)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote, unquote

from msgsvc_core.channels import Button, DeliveryError, OutgoingMessage, Reason
from msgsvc_core.channels.buttons.fallbacks import links_of
from msgsvc_core.content.markup import Span, to_spans, utf16_length
from msgsvc_whatsapp.formatting import Written, plain_line, written

#: UTF-16 code units, the count that is never too low, of a text; of one beside buttons; and of one beside a
#: file.
MAX_TEXT, MAX_BODY, MAX_CAPTION = 4096, 1024, 1024

#: Reply buttons: how many, and the length of a title.
MAX_REPLIES, MAX_REPLY_TITLE = 3, 20

#: Lists: rows, and the length of a row's title, description and id.
MAX_ROWS, MAX_ROW_TITLE, MAX_ROW_ABOUT, MAX_ROW_ID = 10, 24, 72, 200

#: Length of the label of a button that opens a page.
MAX_URL_LABEL = 20

#: Length of a template's variable; its own text counts too, which is not known here.
MAX_VARIABLE = 1024

#: Ids of users in a business's portfolio, `US.13491208655302741918`, also across portfolios
#: (`US.ENT.118...`); and phone numbers without `+`.
_BUSINESS_SCOPED = re.compile(r"[A-Z]{2}\.(?:ENT\.)?[A-Za-z0-9]{1,128}")
_PHONE = re.compile(r"[1-9][0-9]{4,14}")

#: Half of a surrogate pair, which is no text.
_HALF = re.compile("[\ud800-\udfff]")

_BUTTON_ID = re.compile(r"[0-9]{1,2}:(.*)", re.DOTALL)

#: How the buttons of a message are shown: not at all, or as lines of its text; as a button that opens a
#: page; as buttons; as a list that opens.
Layout = Literal["text", "cta_url", "button", "list"]


@dataclass(frozen=True, slots=True)
class Content:
    """A message as the platform takes it: `text` has the addresses that are not on a button as lines."""

    layout: Layout
    text: Written
    replies: tuple[Button, ...] = ()
    url: Button | None = None


def recipient_of(chat_id: str) -> dict[str, Any]:
    """The fields that name the recipient of a message. Raises `DeliveryError`."""
    common = {"messaging_product": "whatsapp", "recipient_type": "individual"}
    if _BUSINESS_SCOPED.fullmatch(chat_id):
        return {**common, "recipient": chat_id}
    if _PHONE.fullmatch(chat_id):
        return {**common, "to": chat_id}
    raise DeliveryError(Reason.CHAT_NOT_FOUND, "chat_id: WhatsApp has no user with such an id")


def content_of(message: OutgoingMessage) -> Content:
    """The layout that suits a message's buttons, and its text."""
    every = [button for row in message.buttons for button in row]
    replies = tuple(button for button in every if button.data is not None)
    urls = [button for button in every if button.url is not None]
    limit = _limit_of(message, bool(replies))
    if not replies and len(urls) == 1 and message.media is None and message.text.strip():
        alone = _text(message, (), MAX_BODY)
        short = 1 <= utf16_length(urls[0].text.strip()) <= MAX_URL_LABEL
        if short and utf16_length(alone.text) <= MAX_BODY:
            return Content("cta_url", alone, url=urls[0])
    text = _text(message, links_of(message), limit)
    if not replies:
        return Content("text", text)
    layout: Layout = "button" if _fit_buttons(replies) else "list"
    return Content(layout, text, replies)


def problem_of(message: OutgoingMessage) -> str | None:
    """Why the platform would refuse a message whose text is short enough by itself."""
    labels = [button.text for row in message.buttons for button in row]
    if any(_HALF.search(text) for text in (message.text, *labels)):
        return "text: holds half of a character"
    content = content_of(message)
    limit = _limit_of(message, bool(content.replies))
    if utf16_length(content.text.text) > limit:
        beside = " beside buttons" if content.replies else ""
        return (
            f"text: must be at most {limit} UTF-16 code units{beside} on this channel, with its links and"
            " formatting"
        )
    return _problem_of_replies(message, content) if content.replies else None


def body_of(
    chat_id: str, message: OutgoingMessage, file: Mapping[str, str] | None, list_label: str
) -> dict[str, Any]:
    """The body that sends a message; `file` is its uploaded file. Raises `DeliveryError`."""
    content, to = content_of(message), recipient_of(chat_id)
    if content.layout == "text":
        if message.media is None:
            shows_url = "https://" in content.text.text or "http://" in content.text.text
            text: dict[str, Any] = {"body": content.text.text}
            return {
                **to,
                "type": "text",
                "text": text | ({"preview_url": True} if shows_url else {}),
            }
        captioned = dict(file or {})
        if content.text.text:
            captioned["caption"] = content.text.text
        return {**to, "type": message.media.type, message.media.type: captioned}
    interactive: dict[str, Any] = {
        "type": content.layout,
        "body": {"text": content.text.text},
        "action": _action(content, list_label),
    }
    if message.media is not None:
        kind = message.media.type
        interactive["header"] = {"type": kind, kind: dict(file or {})}
    return {**to, "type": "interactive", "interactive": interactive}


def template_body(
    chat_id: str, message: OutgoingMessage, name: str, language: str
) -> dict[str, Any]:
    """The body that sends the text of a message by a template with one variable. Raises `DeliveryError`."""
    if message.media is not None:
        raise _not_by_template("a file")
    if any(button.data is not None for row in message.buttons for button in row):
        raise _not_by_template("a button that sends an answer")
    text = plain_line(_spans(message, links_of(message)))
    if not 1 <= utf16_length(text) <= MAX_VARIABLE:
        raise _not_by_template(f"no text, or one of more than {MAX_VARIABLE} characters,")
    variable = {"type": "text", "text": text}
    template = {
        "name": name,
        "language": {"code": language},
        "components": [{"type": "body", "parameters": [variable]}],
    }
    return {**recipient_of(chat_id), "type": "template", "template": template}


def button_id(number: int, data: str) -> str:
    """The id of a button: unique in its message, and without blanks at its ends, as the platform wants it."""
    return f"{number}:{quote(data, safe='')}"


def data_of(given: str) -> str:
    """The data of a button with this id."""
    found = _BUTTON_ID.fullmatch(given)
    return unquote(found[1]) if found else given


def _fit_buttons(replies: Sequence[Button]) -> bool:
    titles = [button.text.strip() for button in replies]
    return (
        len(replies) <= MAX_REPLIES
        and len(set(titles)) == len(titles)
        and all(1 <= utf16_length(title) <= MAX_REPLY_TITLE for title in titles)
    )


def _action(content: Content, list_label: str) -> dict[str, Any]:
    if content.url is not None:
        parameters = {"display_text": content.url.text.strip(), "url": content.url.url}
        return {"name": "cta_url", "parameters": parameters}
    ids = [button_id(number, one.data or "") for number, one in enumerate(content.replies)]
    if content.layout == "button":
        return {
            "buttons": [
                {"type": "reply", "reply": {"id": one_id, "title": one.text.strip()}}
                for one_id, one in zip(ids, content.replies, strict=True)
            ]
        }
    rows = _rows(content.replies)
    return {
        "button": list_label,
        "sections": [
            {"rows": [{"id": one_id, **row} for one_id, row in zip(ids, rows, strict=True)]}
        ],
    }


def _rows(replies: Sequence[Button]) -> list[dict[str, str]]:
    """Rows of a list. If a label is too long for a title, or there twice, all are numbered."""
    titles = [" ".join(button.text.split()) for button in replies]
    if len(set(titles)) == len(titles) and all(
        utf16_length(title) <= MAX_ROW_TITLE for title in titles
    ):
        return [{"title": title} for title in titles]
    return [{"title": str(number), "description": title} for number, title in enumerate(titles, 1)]


def _problem_of_replies(message: OutgoingMessage, content: Content) -> str | None:
    if not content.text.text.strip():
        return "text: must be given with buttons on this channel"
    if message.media is not None and content.layout == "list":
        return (
            f"buttons: beside a file must be at most {MAX_REPLIES} on this channel, with different labels of"
            f" 1-{MAX_REPLY_TITLE} characters"
        )
    if len(content.replies) > MAX_ROWS:
        return f"buttons: must be at most {MAX_ROWS} that send data on this channel"
    for number, button in enumerate(content.replies):
        if not 1 <= utf16_length(button.text.strip()) <= MAX_ROW_ABOUT:
            return f"buttons: a label must be 1-{MAX_ROW_ABOUT} characters on this channel"
        if len(button_id(number, button.data or "")) > MAX_ROW_ID:
            return "buttons: data is too long for this channel"
    return None


def _limit_of(message: OutgoingMessage, has_replies: bool) -> int:
    if has_replies:
        return MAX_BODY
    return MAX_TEXT if message.media is None else MAX_CAPTION


def _text(message: OutgoingMessage, lines: Sequence[str], limit: int) -> Written:
    return written(_spans(message, lines), limit)


def _spans(message: OutgoingMessage, lines: Sequence[str]) -> list[Span]:
    spans = to_spans(message.text, message.format)
    if lines:
        spans.append(Span(("\n\n" if spans else "") + "\n".join(lines)))
    return spans


def _not_by_template(what: str) -> DeliveryError:
    return DeliveryError(
        Reason.INVALID_MESSAGE,
        "the user has not written for 24 hours, and a message with"
        f" {what} can't be sent by the template",
    )
