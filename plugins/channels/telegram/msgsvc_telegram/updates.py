"""Converts Telegram's updates."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import structlog
from pydantic import ValidationError

from msgsvc_core.channels import (
    Blocked,
    BotCreated,
    ButtonPressed,
    ChannelUser,
    MessageEdited,
    MessageReceived,
    Started,
    Unblocked,
    Unreadable,
    UnreadableReason,
    Update,
)
from msgsvc_core.channels.inbound import placeholders
from msgsvc_telegram.files import files_of
from msgsvc_telegram.models import (
    CallbackQuery,
    ChatMemberUpdated,
    ManagedBotUpdated,
    Message,
    RawUpdate,
)

#: The kinds that we ask for.
ALLOWED_UPDATES = ("message", "edited_message", "callback_query", "my_chat_member")

#: Kinds that the Bot API has and that we don't ask for. Some come nevertheless, e.g. those that Telegram had
#: stored before it was told which ones to send.
OTHER_KINDS = frozenset(
    {
        "business_connection",
        "business_message",
        "channel_post",
        "chat_boost",
        "chat_join_request",
        "chat_member",
        "chosen_inline_result",
        "deleted_business_messages",
        "edited_business_message",
        "edited_channel_post",
        "inline_query",
        "message_reaction",
        "message_reaction_count",
        "poll",
        "poll_answer",
        "pre_checkout_query",
        "purchased_paid_media",
        "removed_chat_boost",
        "shipping_query",
    }
)

#: Messages without text. They arrive with their file if bots can download it, or as a line that says what
#: they are, so that they can be answered; service messages of Telegram (a pinned message, say) do not.
WORDLESS = frozenset(
    {
        "animation",
        "audio",
        "checklist",
        "contact",
        "dice",
        "document",
        "game",
        "giveaway",
        "giveaway_winners",
        "invoice",
        "live_photo",
        "location",
        "paid_media",
        "photo",
        "poll",
        "sticker",
        "story",
        "venue",
        "video",
        "video_note",
        "voice",
    }
)

#: A link with a payload makes the person's app send `/start payload`.
_START = re.compile(r"/start(?:@\w+)?(?:\s+(?P<payload>.*\S))?\s*", re.DOTALL)

log = structlog.get_logger(__name__)


def read_updates(found: Iterable[Any], channel: str) -> list[Update]:
    """The relevant ones of `found`, in order, with an `Unreadable` for each that can't be read; never
    raises."""
    updates: list[Update] = []
    for raw in found:
        try:
            update = _read(RawUpdate.model_validate(raw), raw)
        except ValidationError as error:
            update = Unreadable.of(raw, UnreadableReason.MALFORMED, _where(error))
        except Exception as error:
            # A fault of ours with one update must not stop the others.
            log.exception("update_failed", channel=channel)
            update = Unreadable.failed(raw, error)
        if update is None:
            log.debug("update_skipped", channel=channel, kinds=sorted(map(str, raw))[:5])
        else:
            updates.append(update)
    return updates


def _read(found: RawUpdate, raw: dict[str, Any]) -> Update | None:
    update_id = str(found.update_id)
    if found.message is not None:
        return _message(update_id, Message.model_validate(found.message), found.message)
    if found.edited_message is not None:
        return _edited(update_id, Message.model_validate(found.edited_message))
    if found.callback_query is not None:
        return _pressed(update_id, found.callback_query)
    if found.my_chat_member is not None:
        return _membership(update_id, found.my_chat_member)
    if found.managed_bot is not None:
        return _made(update_id, found.managed_bot)
    return _other(raw)


def _other(raw: dict[str, Any]) -> Update | None:
    """None for a kind that we don't ask for."""
    if OTHER_KINDS.isdisjoint(raw):
        why = "it is of no kind of the Bot API"
        return Unreadable.of(raw, UnreadableReason.UNKNOWN_KIND, why)
    return None


def _message(update_id: str, message: Message, raw: dict[str, Any]) -> Update | None:
    user, chat_id = _sender(message), str(message.chat.id)
    text = message.text if message.text is not None else message.caption
    if user is None or (text is None and WORDLESS.isdisjoint(raw)):
        return None
    files = files_of(message)
    if text is None and not files:
        text = _shown(raw)
    start = _START.fullmatch(message.text or "")
    if start:
        payload = start["payload"] or ""
        return Started(
            update_id=update_id, chat_id=chat_id, user=user, thread=message.topic, payload=payload
        )
    return MessageReceived(
        update_id=update_id,
        chat_id=chat_id,
        user=user,
        thread=message.topic,
        text=text or "",
        files=files,
        message_ref=str(message.message_id),
        reply_to=str(message.reply_to_message.message_id) if message.reply_to_message else None,
    )


def _shown(raw: Mapping[str, Any]) -> str:
    """What a message without words and files says, in a line."""
    # A venue has its location beside it.
    kind = "venue" if "venue" in raw else min(WORDLESS & raw.keys())
    content = raw[kind] if isinstance(raw[kind], dict) else {}
    if kind in {"venue", "location"}:
        point = content.get("location", content)
        at = point if isinstance(point, dict) else {}
        names = (content.get("title"), content.get("address"))
        return placeholders.place(at.get("latitude"), at.get("longitude"), *names)
    if kind == "contact":
        parts = [content.get(name) for name in ("first_name", "last_name")]
        name = " ".join(part for part in parts if isinstance(part, str))
        return placeholders.contact(name, [content.get("phone_number")])
    said = content.get("emoji") if kind in {"sticker", "dice"} else None
    return said if isinstance(said, str) and said else placeholders.unknown(kind)


def _edited(update_id: str, message: Message) -> Update | None:
    user, files = _sender(message), files_of(message)
    text = message.text if message.text is not None else message.caption
    # Without either it is a place that moves, or a poll that people answer.
    if user is None or (text is None and not files):
        return None
    return MessageEdited(
        update_id=update_id,
        chat_id=str(message.chat.id),
        user=user,
        thread=message.topic,
        message_ref=str(message.message_id),
        text=text or "",
        files=files,
    )


def _sender(message: Message) -> ChannelUser | None:
    """Who wrote to the bot. None in a group, which can't sign in or subscribe: one person would decide
    for all."""
    sender = message.sender
    if sender is None or sender.is_bot or message.chat.type != "private":
        return None
    return sender.channel_user()


def _pressed(update_id: str, query: CallbackQuery) -> Update | None:
    message = query.message
    # Without a message it was sent in inline mode, without data it is a game's: we make neither.
    if message is None or query.data is None or message.chat.type != "private":
        return None
    rows = message.reply_markup.inline_keyboard if message.reply_markup else []
    pressed = [button for row in rows for button in row if button.callback_data == query.data]
    return ButtonPressed(
        update_id=update_id,
        chat_id=str(message.chat.id),
        user=query.sender.channel_user(),
        thread=message.topic,
        data=query.data,
        message_ref=str(message.message_id),
        button_ref=query.id,
        text=pressed[0].text if pressed else "",
    )


def _membership(update_id: str, change: ChatMemberUpdated) -> Update | None:
    kinds: dict[str, type[Update]] = {"kicked": Blocked, "member": Unblocked}
    kind = kinds.get(change.new_chat_member.status)
    if kind is None or change.chat.type != "private":
        return None
    user = change.sender.channel_user()
    return kind(update_id=update_id, chat_id=str(change.chat.id), user=user)


def _made(update_id: str, change: ManagedBotUpdated) -> Update | None:
    if change.bot.username is None:
        return None
    return BotCreated(
        update_id=update_id,
        chat_id=str(change.user.id),
        user=change.user.channel_user(),
        account=str(change.bot.id),
        username=change.bot.username,
    )


def _where(error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{'.'.join(map(str, problem['loc']))[:100]}: {problem['type']}"
