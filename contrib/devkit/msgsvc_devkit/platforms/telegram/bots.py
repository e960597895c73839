"""A bot as Telegram knows it: its token, chats, updates and pressed buttons."""

import secrets
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from msgsvc_devkit.platforms.telegram.calls import bad_request
from msgsvc_devkit.platforms.telegram.chats import Chat, Group, PrivateChat, SentFile, ShownMessage
from msgsvc_devkit.platforms.telegram.people import Person, Press
from msgsvc_devkit.platforms.telegram.update_queue import UpdateQueue

_bot_ids = count(7_000_000_001)
_update_ids = count(100_001, 10_000)


@dataclass(slots=True)
class FakeBot:
    """Made by `FakeTelegram.add_bot`. `revoked` makes its token invalid."""

    username: str
    name: str
    bot_id: int
    token: str
    revoked: bool
    chats: dict[int, Chat]
    presses: dict[str, Press]
    updates: UpdateQueue
    numbers: "count[int]"
    #: Files that users sent to it, by `file_id`.
    files: dict[str, SentFile] = field(default_factory=dict)
    #: Whether bot management is enabled for it in @BotFather, and the bots that it manages, by id.
    can_manage_bots: bool = False
    managed: "dict[int, FakeBot]" = field(default_factory=dict)
    #: Whether topics in private chats are enabled for it in @BotFather.
    has_topics: bool = False
    #: Tenths of Telegram Stars on its balance: what a message of a paid broadcast costs.
    star_tenths: int = 0
    #: Its menu: names and descriptions by language, None for all other languages.
    commands: dict[str | None, dict[str, str]] = field(default_factory=dict)

    @classmethod
    def make(cls, username: str, name: str) -> "FakeBot":
        bot_id = next(_bot_ids)
        token = f"{bot_id}:AA{secrets.token_hex(16)}-"
        updates = UpdateQueue(next(_update_ids))
        return cls(username, name, bot_id, token, False, {}, {}, updates, count(1))

    @property
    def user(self) -> dict[str, Any]:
        """Telegram's User object."""
        return {
            "id": self.bot_id,
            "is_bot": True,
            "first_name": self.name,
            "username": self.username,
        }

    @property
    def me(self) -> dict[str, Any]:
        """The result of getMe, which says more."""
        return self.user | {
            "can_join_groups": True,
            "can_manage_bots": self.can_manage_bots,
            "has_topics_enabled": self.has_topics,
        }

    def person(
        self, name: str = "Anna", *, username: str | None = None, lang: str | None = "en"
    ) -> Person:
        """A new user, who has not started the bot yet."""
        return Person(self, name, username=username, lang=lang)

    def group(self, title: str = "Family") -> Group:
        """A group that the bot is in."""
        chat_id = -next(_group_ids)
        group = Group(chat_id, {"id": chat_id, "type": "group", "title": title}, self.numbers)
        self.chats[chat_id] = group
        return group

    def menu(self, lang: str) -> dict[str, str]:
        """The menu shown to a user with that language."""
        return self.commands.get(lang) or self.commands.get(None, {})

    def chat(self, chat_id: int) -> Chat:
        """The chat with that id. Raises `Refusal` for one that this bot has never seen."""
        found = self.chats.get(chat_id)
        if found is None or (isinstance(found, PrivateChat) and not _seen(found)):
            raise bad_request("chat not found")
        return found

    def writable(self, chat_id: int) -> Chat:
        """The chat with that id. Raises `Refusal` also if the bot may not write there."""
        chat = self.chat(chat_id)
        chat.check_writable()
        return chat

    def message_object(self, chat: Chat, message: ShownMessage) -> dict[str, Any]:
        """Telegram's Message object of a message that the bot sent."""
        shown: dict[str, Any] = {
            "message_id": message.message_id,
            "from": self.user,
            "chat": chat.info,
            "date": 1_780_000_000,
        }
        if message.topic is not None:
            shown |= topic_fields(message.topic)
        if message.file:
            file_object = {"file_id": f"file-{message.message_id}", "file_unique_id": "u"}
            sizes = [file_object] if message.file.kind == "photo" else file_object
            shown[message.file.kind] = sizes
        if message.rich:
            # The blocks that Telegram makes of it are left out: the plugin doesn't read them.
            shown["rich_message"] = {"blocks": []}
        elif message.text:
            shown["caption" if message.file else "text"] = message.text
        if message.buttons:
            shown["reply_markup"] = {"inline_keyboard": message.buttons}
        return shown


_group_ids = count(4_000_001)


def topic_fields(topic: int) -> dict[str, Any]:
    """What Telegram's Message object says of its topic."""
    return {"message_thread_id": topic, "is_topic_message": True}


def _seen(chat: PrivateChat) -> bool:
    """A user who wrote to the bot or shares a group with it; a bot can't use other users' ids."""
    return chat.started or chat.blocked or chat.deactivated
