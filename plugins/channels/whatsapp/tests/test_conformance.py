"""The channel keeps the core's contract."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import pytest

from msgsvc_core.channels import Button, ChannelUser, MediaType, Reason, WebhookCall
from msgsvc_devkit import ChannelContract, Fault, Messenger, PluginContract, Shown, cannot
from msgsvc_devkit.conformance.mischief import NOISE, OVERSIZED, Mischief, Trick
from msgsvc_devkit.platforms.whatsapp import FakeWhatsApp, Refused
from msgsvc_devkit.platforms.whatsapp.faults import Break
from msgsvc_devkit.platforms.whatsapp.people import ShownButton
from msgsvc_whatsapp import plugin
from msgsvc_whatsapp.formatting import GRAVE, JOINER
from msgsvc_whatsapp.messages import data_of

#: The refusals in the platform's words.
REFUSALS = {
    Reason.USER_BLOCKED_BOT: (400, 131050, "Unable to deliver the message."),
    Reason.CHAT_NOT_FOUND: (400, 131026, "Message undeliverable"),
    Reason.BOT_BANNED: (401, 190, "Access token has expired"),
    Reason.INVALID_MESSAGE: (400, 131009, "Parameter value is not valid"),
    Reason.RATE_LIMITED: (400, 130429, "Rate limit hit"),
    Reason.PLATFORM_UNAVAILABLE: (503, 131016, "Service unavailable"),
    Reason.UNKNOWN: (400, 130472, "User's number is part of an experiment"),
}

#: What each file of the kit is.
MIME_TYPES: dict[MediaType, str] = {
    "image": "image/png",
    "video": "video/mp4",
    "document": "application/pdf",
}


class WhatsAppMessenger(Messenger):
    """Ann, on the fake platform."""

    proof = "signature"
    tricks = frozenset({"malformed", "oversized", "doubled", "late", "reordered"})
    keeps_rows = False
    labels_links = False

    def __init__(self, platform: FakeWhatsApp) -> None:
        self._platform = platform
        platform.tells_statuses = False
        self._ann = platform.person("Ann", username="ann")
        self.settings = platform.settings
        self.user = ChannelUser(self._ann.user_id, "Ann", "ann")
        self.chat_id = self._ann.user_id

    async def follow(self, link: str) -> None:
        await self._ann.open(link)

    async def start(self, payload: str = "") -> None:
        await self._ann.start(payload)

    async def write(self, text: str) -> None:
        await self._ann.write(text)

    async def send_file(
        self, media_type: MediaType, content: bytes, filename: str, text: str = ""
    ) -> None:
        await self._ann.send_file(media_type, content, MIME_TYPES[media_type], filename, text)

    async def edit_text(self, text: str) -> None:
        await self._ann.edit(text)

    async def reply(self, ref: str, text: str) -> None:
        await self._ann.reply(ref, text)

    async def press(self, ref: str, data: str) -> None:
        message = next(one for one in self._ann.messages if one.ref == ref)
        wanted = next(one.id for one in message.buttons if one.id and data_of(one.id) == data)
        await self._ann.press(wanted, ref)

    async def block(self) -> None:
        cannot("nobody is told of a block; users who opt out are in test_receiving.py")

    async def unblock(self) -> None:
        cannot("nobody is told of the end of a block")

    async def shown(self) -> Sequence[Shown]:
        return [
            Shown(
                ref=message.ref,
                text=_read(message.text),
                buttons=tuple((_button(one),) for one in message.buttons),
                media_type=message.media,  # type: ignore[arg-type] - the same words
            )
            for message in self._ann.messages
        ]

    async def notices(self) -> Sequence[str]:
        return []

    async def fail_next(self, reason: Reason, retry_after_s: float | None = None) -> None:
        status, code, title = REFUSALS[reason]
        self._platform.faults.fail_next(Refused(status, code, title, retry_after_s=retry_after_s))

    async def break_next(self, fault: Fault) -> None:
        if fault == "5xx":
            await self.fail_next(Reason.PLATFORM_UNAVAILABLE)
        else:
            done: dict[Fault, Break] = {"504": "gateway", "reset": "lost"}
            self._platform.faults.break_next(done.get(fault, fault))  # type: ignore[arg-type] - the other names are the same

    async def report(
        self, ref: str, state: Literal["accepted", "delivered", "read", "failed"]
    ) -> None:
        failure = Refused(400, 131026, "Message undeliverable") if state == "failed" else None
        status = "sent" if state == "accepted" else state
        self._platform.tell_status(self._ann, ref, status, failure)

    async def kill(self) -> None:
        await self._platform.kill()

    async def restart(self) -> None:
        await self._platform.restart()

    async def revoke(self) -> None:
        self._platform.revoked = True

    async def puzzle(self) -> None:
        self._platform.tell({"moons": [{"landed": True}]}, "moon_landed")
        self._platform.tell({"messages": [{"type": "text", "id": 7}]})

    async def misbehave(self, trick: Trick, mischief: Mischief) -> None:
        webhooks = self._platform.webhooks
        if trick in {"doubled", "late"}:
            webhooks.tell(webhooks.all[-1] if trick == "doubled" else mischief.pick(webhooks.all))
            return
        text = NOISE * (OVERSIZED // len(NOISE)) if trick == "oversized" else NOISE
        webhooks.held = []
        await self._ann.write(text)
        [body], webhooks.held = webhooks.held, None
        webhooks.tell(mischief.spoilt(body) if trick == "malformed" else body)

    async def write_reordered(self, texts: Sequence[str], mischief: Mischief) -> None:
        webhooks = self._platform.webhooks
        webhooks.held = []
        for text in texts:
            await self._ann.write(text)
        held, webhooks.held = webhooks.held, None
        for body in mischief.shuffled(held):
            webhooks.tell(body)

    def signed(self, call: WebhookCall) -> WebhookCall:
        signature = self._platform.webhooks.signature(call.body)
        return replace(call, headers={**call.headers, "x-hub-signature-256": signature})


def _read(text: str) -> str:
    """The text as it is read: joiners are invisible, and accents that stand for backticks look the same."""
    return text.replace(JOINER, "").replace(GRAVE, "`")


def _button(button: ShownButton) -> Button:
    data = None if button.id is None else data_of(button.id)
    return Button(button.about or button.label, button.url, data)


class TestWhatsApp(ChannelContract):
    """The whole contract."""

    plugin = plugin
    kind = "whatsapp"

    @pytest.fixture
    async def messenger(self, platform: FakeWhatsApp) -> Messenger:
        return WhatsAppMessenger(platform)


class TestWhatsAppPlugin(PluginContract):
    """The rules for every plugin."""

    plugin = plugin
    name = "whatsapp"
