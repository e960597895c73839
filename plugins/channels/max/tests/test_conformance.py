"""The channel keeps the core's contract, by polling and by webhook."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from msgsvc_core.channels import Button, ChannelUser, MediaType, Reason
from msgsvc_devkit import (
    ChannelContract,
    Fault,
    Messenger,
    PluginContract,
    ReceivingContract,
    Shown,
    cannot,
)
from msgsvc_devkit.conformance.mischief import NOISE, OVERSIZED, Mischief, Trick
from msgsvc_devkit.platforms.max import FakeMax, Refused
from msgsvc_devkit.platforms.max.faults import Break
from msgsvc_devkit.platforms.max.people import Kind
from msgsvc_max import plugin

#: The refusals in the platform's words.
REFUSALS = {
    Reason.USER_BLOCKED_BOT: (403, "chat.denied", "error.dialog.suspended"),
    Reason.CHAT_NOT_FOUND: (404, "chat.not.found", "Chat 1 not found"),
    Reason.BOT_BANNED: (401, "verify.token", "Invalid access_token"),
    Reason.INVALID_MESSAGE: (400, "proto.payload", "text: size must be between 0 and 4000"),
    Reason.RATE_LIMITED: (429, "too.many.requests", "Too many requests"),
    Reason.PLATFORM_UNAVAILABLE: (503, "service.unavailable", "Service unavailable"),
    Reason.UNKNOWN: (403, "access.denied", "You don't have permission"),
}

#: The platform's files, in our words.
MEDIA = {"image": "image", "video": "video", "file": "document", None: None}


def _body_of(update: Mapping[str, Any]) -> dict[str, Any] | None:
    """The body of the message that somebody wrote; None for other updates."""
    message = update.get("message")
    body = message.get("body") if isinstance(message, dict) else None
    return body if isinstance(body, dict) and isinstance(body.get("text"), str) else None


class MaxMessenger(Messenger):
    """Ann, on the fake platform."""

    tricks = frozenset({"malformed", "oversized", "doubled", "late"})

    def __init__(self, platform: FakeMax, receiving: str) -> None:
        self._platform = platform
        self._ann = platform.person("Ann", username="ann", locale="en-GB")
        self.settings = {**platform.settings, "receiving": receiving}
        self.user = ChannelUser(str(self._ann.user_id), "Ann", "ann", "en-GB")
        self.chat_id = str(self._ann.chat_id)

    async def follow(self, link: str) -> None:
        await self._ann.open(link)

    async def start(self, payload: str = "") -> None:
        await self._ann.start(payload or None)

    async def write(self, text: str) -> None:
        await self._ann.write(text)

    async def send_file(
        self, media_type: MediaType, content: bytes, filename: str, text: str = ""
    ) -> None:
        kinds: dict[MediaType, Kind] = {"image": "image", "video": "video", "document": "file"}
        await self._ann.send_file(kinds[media_type], content, filename, text)

    async def edit_text(self, text: str) -> None:
        await self._ann.edit(text)

    async def reply(self, ref: str, text: str) -> None:
        await self._ann.reply(ref, text)

    async def press(self, ref: str, data: str) -> None:
        await self._ann.press(data, ref)

    async def block(self) -> None:
        await self._ann.block()

    async def unblock(self) -> None:
        cannot("who lets the bot write again presses Start, says MAX")

    async def shown(self) -> Sequence[Shown]:
        return [
            Shown(
                ref=message.mid,
                text=message.text,
                buttons=tuple(
                    tuple(Button(one["text"], one.get("url"), one.get("payload")) for one in row)
                    for row in message.buttons
                ),
                media_type=MEDIA[message.media],  # type: ignore[arg-type] - read from a table
                silent=message.silent,
            )
            for message in self._ann.messages
        ]

    async def notices(self) -> Sequence[str]:
        return self._ann.notices

    async def fail_next(self, reason: Reason, retry_after_s: float | None = None) -> None:
        status, code, words = REFUSALS[reason]
        self._platform.faults.fail_next(Refused(status, code, words, retry_after_s))

    async def break_next(self, fault: Fault) -> None:
        if fault == "5xx":
            await self.fail_next(Reason.PLATFORM_UNAVAILABLE)
        else:
            done: dict[Fault, Break] = {"504": "gateway", "reset": "lost"}
            self._platform.faults.break_next(done.get(fault, fault))

    async def kill(self) -> None:
        await self._platform.kill()

    async def restart(self) -> None:
        await self._platform.restart()

    async def leave(self) -> None:
        await self._ann.remove_dialog()

    async def revoke(self) -> None:
        self._platform.revoked = True

    async def misbehave(self, trick: Trick, mischief: Mischief) -> None:
        updates = self._platform.updates
        if trick in {"doubled", "late"}:
            updates.tell(updates.all[-1] if trick == "doubled" else mischief.pick(updates.all))
            return
        text = NOISE * (OVERSIZED // len(NOISE)) if trick == "oversized" else NOISE
        last = next((each for each in updates.all[::-1] if _body_of(each)), updates.all[0])
        if (body := _body_of(last)) is not None:
            body = {**body, "mid": f"noise.{len(updates.all)}", "text": text}
            last = {**last, "message": {**last["message"], "body": body}}
        updates.tell(mischief.spoilt(last) if trick == "malformed" else last)

    async def puzzle(self) -> None:
        self._platform.updates.tell({"update_type": "moon_landed", "timestamp": 1})
        self._platform.updates.tell({"update_type": "message_created", "message": {"body": 7}})

    async def forget_presses(self) -> None:
        self._platform.forget_presses()

    async def menu(self, lang: str) -> Mapping[str, str]:
        return self._platform.menu

    async def mini_app_data(self, payload: str = "", *, of_other_bot: bool = False) -> str:
        token = "another-bots-token" if of_other_bot else None
        return self._platform.init_data(self._ann, payload, token=token)


class TestMaxByPolling(ChannelContract):
    """The whole contract."""

    plugin = plugin
    kind = "max"

    @pytest.fixture
    async def messenger(self, platform: FakeMax) -> Messenger:
        return MaxMessenger(platform, "poll")


class TestMaxByWebhook(ReceivingContract):
    """What differs where the platform calls."""

    plugin = plugin
    kind = "max"

    @pytest.fixture
    async def messenger(self, platform: FakeMax) -> Messenger:
        return MaxMessenger(platform, "webhook")


class TestMaxPlugin(PluginContract):
    """The rules for every plugin."""

    plugin = plugin
    name = "max"
