"""Validates lengths, entities and keyboards of messages, by the Bot API's documentation."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from msgsvc_devkit.platforms.telegram.calls import bad_request, complaint

MAX_TEXT, MAX_CAPTION, MAX_ENTITIES, MAX_BUTTONS, MAX_CALLBACK_BYTES = 4096, 1024, 100, 100, 64

#: Entities that a bot may send; Telegram detects mentions, URLs and the like itself.
ENTITY_FIELDS: dict[str, frozenset[str]] = {
    **dict.fromkeys(
        ("bold", "italic", "underline", "strikethrough", "spoiler", "code", "blockquote"),
        frozenset({"type", "offset", "length"}),
    ),
    "pre": frozenset({"type", "offset", "length", "language"}),
    "text_link": frozenset({"type", "offset", "length", "url"}),
}

#: Styles of buttons (Bot API 9.4, InlineKeyboardButton).
STYLES = frozenset({"danger", "success", "primary"})

#: Entities that can't be nested.
ALONE = frozenset({"code", "pre"})


def units(text: str) -> int:
    """The length in UTF-16 code units, in which Telegram counts offsets of entities."""
    return sum(2 if ord(character) > 0xFFFF else 1 for character in text)


def check_text(text: str) -> None:
    if not text.strip():
        raise bad_request("message text is empty")
    if len(text) > MAX_TEXT:
        raise bad_request("message is too long")


def check_caption(text: str) -> None:
    if len(text) > MAX_CAPTION:
        raise bad_request("message caption is too long")


def check_entities(text: str, entities: Sequence[Any]) -> None:
    """Raises `Refusal` unless all of `entities` are complete, within the text, and disjoint or nested."""
    if len(entities) > MAX_ENTITIES:
        raise complaint(f"{len(entities)} entities; Telegram drops all beyond {MAX_ENTITIES}")
    ends = _boundaries(text)
    ranges = [_range(entity, ends) for entity in entities]
    for index, (start, end, kind) in enumerate(ranges):
        for other_start, other_end, other_kind in ranges[:index]:
            if end <= other_start or other_end <= start:
                continue
            within = start >= other_start and end <= other_end
            around = start <= other_start and end >= other_end
            if not within and not around:
                raise complaint(f"{kind} and {other_kind} overlap")
            if ALONE & {kind, other_kind}:
                raise complaint(f"{kind} and {other_kind} can't be nested")


def check_keyboard(markup: Mapping[str, Any]) -> None:
    rows = markup.get("inline_keyboard")
    if set(markup) != {"inline_keyboard"} or not isinstance(rows, list):
        raise complaint("reply_markup must be an inline keyboard")
    if not all(isinstance(row, list) and row for row in rows):
        raise complaint("an inline keyboard holds rows, each with a button or more")
    buttons = [button for row in rows for button in row]
    if len(buttons) > MAX_BUTTONS:
        raise bad_request("reply markup is too long")
    for button in buttons:
        _check_button(button)


def _boundaries(text: str) -> frozenset[int]:
    """Offsets between characters, in UTF-16 code units."""
    found, position = {0}, 0
    for character in text:
        position += units(character)
        found.add(position)
    return frozenset(found)


def _range(entity: Any, boundaries: frozenset[int]) -> tuple[int, int, str]:
    kind = entity.get("type") if isinstance(entity, dict) else None
    if not isinstance(kind, str) or kind not in ENTITY_FIELDS:
        raise complaint(f"no entity of type {kind!r}")
    if not set(entity) <= ENTITY_FIELDS[kind]:
        raise complaint(f"{kind} has fields that it should not: {sorted(entity)}")
    offset, length = entity.get("offset"), entity.get("length")
    if type(offset) is not int or type(length) is not int or length < 1:
        raise complaint(f"{kind} must have an offset, and a length of 1 or more")
    if not {offset, offset + length} <= boundaries:
        raise complaint(f"{kind} ends beyond the text, or inside a character")
    if kind == "text_link" and not _leads_somewhere(entity.get("url")):
        raise complaint("text_link needs a url")
    return offset, offset + length, kind


def _check_button(button: Any) -> None:
    if not isinstance(button, dict) or not isinstance(button.get("text"), str):
        raise complaint("a button is an object with a text")
    if not button["text"].strip():
        raise bad_request("inline keyboard button text must be non-empty")
    if "style" in button and button["style"] not in STYLES:
        raise bad_request("can't parse inline keyboard button: invalid button style specified")
    kinds = set(button) - {"text", "style"}
    if kinds == {"url"}:
        if not _leads_somewhere(button["url"]) or _is_dotless(button["url"]):
            raise bad_request(
                f"inline keyboard button URL '{button['url']}' is invalid: Wrong HTTP URL"
            )
    elif kinds == {"callback_data"}:
        data = button["callback_data"]
        if not isinstance(data, str) or not 1 <= len(data.encode()) <= MAX_CALLBACK_BYTES:
            raise bad_request("BUTTON_DATA_INVALID")
    else:
        raise complaint(f"a button has either url or callback_data, not {sorted(kinds)}")


def _is_dotless(url: str) -> bool:
    """Whether the host has no dot, as in http://localhost, which the Bot API rejects as a button's URL."""
    parts = urlsplit(url)
    return parts.scheme != "tg" and "." not in (parts.hostname or "")


def _leads_somewhere(url: Any) -> bool:
    return isinstance(url, str) and url.startswith(("http://", "https://", "tg://"))
