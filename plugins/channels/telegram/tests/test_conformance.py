"""Telegram's plugin keeps the contract of channels, polling and called, and that of plugins."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest

from msgsvc_core.channels import Button, ChannelUser, MediaType, Reason
from msgsvc_devkit import ChannelContract, Fault, Messenger, PluginContract, Shown
from msgsvc_devkit.conformance.mischief import NOISE, OVERSIZED, Mischief, Trick
from msgsvc_devkit.platforms.telegram import FakeTelegram, Person
from msgsvc_devkit.platforms.telegram.people import FileKind
from msgsvc_telegram import plugin

MEDIA_TYPES = {"photo": "image", "video": "video", "document": "document"}

#: How Telegram says it: status, words, parameters.
WORDS = {
    Reason.USER_BLOCKED_BOT: (403, "Forbidden: bot was blocked by the user"),
    Reason.CHAT_NOT_FOUND: (400, "Bad Request: chat not found"),
    Reason.BOT_BANNED: (401, "Unauthorized"),
    Reason.INVALID_MESSAGE: (400, "Bad Request: message is too long"),
    Reason.RATE_LIMITED: (429, "Too Many Requests: retry after 3"),
    Reason.PLATFORM_UNAVAILABLE: (500, "Internal Server Error: restart"),
    Reason.UNKNOWN: (403, "Forbidden: for a reason that is new"),
}


def _text_of(update: Mapping[str, Any]) -> dict[str, Any] | None:
    """The message of an update that holds a text."""
    message = update.get("message")
    return message if isinstance(message, dict) and "text" in message else None


class TelegramSide(Messenger):
    """A person of the fake Bot API."""

    # Updates are numbered, so that they can't come in another order.
    tricks = frozenset({"malformed", "oversized", "doubled", "late"})

    def __init__(self, telegram: FakeTelegram, person: Person, receiving: str) -> None:
        self._telegram = telegram
        self._person = person
        self.settings = {
            "token": telegram.bot.token,
            "base_url": telegram.url,
            "receiving": receiving,
        }
        telegram.bot.has_topics = True
        self.user = ChannelUser(str(person.user_id), "Anna", "anna_k", "ru")
        self.chat_id = str(person.user_id)

    async def follow(self, link: str) -> None:
        await self._person.open(link)

    async def start(self, payload: str = "") -> None:
        await self._person.start(payload)

    async def write(self, text: str) -> None:
        await self._person.write(text)

    async def send_file(
        self, media_type: MediaType, content: bytes, filename: str, text: str = ""
    ) -> None:
        kinds: dict[MediaType, FileKind] = {"image": "photo", "video": "video"}
        kind = kinds.get(media_type, "document")
        # Telegram keeps no name of a picture.
        name = None if kind == "photo" else filename
        await self._person.send_file(kind, content, name=name, caption=text or None)

    async def write_in(self, thread: str, text: str) -> None:
        await self._person.write(text, topic=int(thread))

    async def end_thread(self, thread: str) -> None:
        self._person.delete_topic(int(thread))

    async def edit_text(self, text: str) -> None:
        await self._person.edit(text)

    async def reply(self, ref: str, text: str) -> None:
        await self._person.reply(self._person.chat.messages[int(ref)], text)

    async def press(self, ref: str, data: str) -> None:
        message = self._person.chat.messages[int(ref)]
        buttons = [button for row in message.buttons for button in row]
        label = next(one["text"] for one in buttons if one.get("callback_data") == data)
        await self._person.press(label, message)

    async def block(self) -> None:
        await self._person.block()

    async def unblock(self) -> None:
        await self._person.unblock()

    async def shown(self) -> Sequence[Shown]:
        return [
            Shown(
                str(one.message_id),
                one.text,
                tuple(
                    tuple(Button(b["text"], b.get("url"), b.get("callback_data")) for b in row)
                    for row in one.buttons
                ),
                MEDIA_TYPES[one.file.kind] if one.file else None,
                one.silent,
                None if one.topic is None else str(one.topic),
            )
            for one in self._person.messages
        ]

    async def notices(self) -> Sequence[str]:
        presses = self._telegram.bot.presses.values()
        return [press.notice for press in presses if press.notice is not None]

    async def fail_next(self, reason: Reason, retry_after_s: float | None = None) -> None:
        status, words = WORDS[reason]
        wait = {} if retry_after_s is None else {"retry_after": int(retry_after_s)}
        self._telegram.fail_next("*", status, words, parameters=wait)

    async def break_next(self, fault: Fault) -> None:
        if fault == "5xx":
            self._telegram.answer_next("*", 502, b"<h1>Bad Gateway</h1>")
        elif fault == "504":
            self._telegram.answer_next("*", 504, b"<h1>Gateway Time-out</h1>", done=True)
        elif fault == "garbage":
            self._telegram.answer_next("*", 200, b"<h1>It works!</h1>", done=True)
        else:
            self._telegram.break_next("*", fault, done=True)

    async def kill(self) -> None:
        await self._telegram.kill()

    async def restart(self) -> None:
        await self._telegram.restart()

    async def leave(self) -> None:
        self._person.chat.deactivated = True

    async def revoke(self) -> None:
        self._telegram.bot.revoked = True

    async def puzzle(self) -> None:
        self._telegram.bot.updates.puzzle({"brand_new": {}})
        self._telegram.bot.updates.puzzle({"message": {"chat": "broken"}})

    async def misbehave(self, trick: Trick, mischief: Mischief) -> None:
        updates = self._telegram.bot.updates
        if trick in {"doubled", "late"}:
            # What is not confirmed comes again anyway.
            if ids := updates.confirmed_ids:
                updates.repeat(ids[-1] if trick == "doubled" else mischief.pick(ids))
            return
        text = NOISE * (OVERSIZED // len(NOISE)) if trick == "oversized" else NOISE
        last = next(
            one for each in reversed(updates.sent_ids) if (one := _text_of(updates.sent(each)))
        )
        content = {"message": {**last, "text": text}}
        updates.puzzle(mischief.spoilt(content) if trick == "malformed" else content)

    async def forget_presses(self) -> None:
        for press in self._telegram.bot.presses.values():
            press.too_old = True

    async def menu(self, lang: str) -> Mapping[str, str]:
        return self._telegram.bot.menu(lang)

    async def mini_app_data(self, payload: str = "", *, of_other_bot: bool = False) -> str:
        if of_other_bot:
            return self._telegram.add_bot("other_bot").person("Anna").open_mini_app(payload)
        return self._person.open_mini_app(payload)


class TestPolling(ChannelContract):
    plugin = plugin
    kind = "telegram"
    receiving = "poll"

    @pytest.fixture
    async def messenger(self) -> AsyncIterator[Messenger]:
        async with FakeTelegram() as telegram:
            person = telegram.person("Anna", username="anna_k", lang="ru")
            yield TelegramSide(telegram, person, self.receiving)
            assert telegram.complaints == []


class TestWebhook(TestPolling):
    receiving = "webhook"


class TestTelegramPlugin(PluginContract):
    plugin = plugin
    name = "telegram"
