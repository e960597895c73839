"""The channels keep the core's contract."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Literal
from urllib.parse import unquote

import pytest

from msgsvc_core.channels import Channel, ChannelUser, Reason, Update, WebhookCall
from msgsvc_core.db import Database
from msgsvc_core.service import Service
from msgsvc_devkit import (
    ChannelContract,
    Fault,
    Messenger,
    PluginContract,
    ReceivingContract,
    Shown,
    cannot,
)
from msgsvc_devkit.conformance.buttons import Buttons
from msgsvc_devkit.conformance.door import Door
from msgsvc_devkit.conformance.doubt import Doubt
from msgsvc_devkit.conformance.editing import Changing
from msgsvc_devkit.conformance.failures import Failures
from msgsvc_devkit.conformance.inbox import Inbox
from msgsvc_devkit.conformance.life import Life
from msgsvc_devkit.conformance.reports import Reports
from msgsvc_devkit.conformance.sending import Sending
from msgsvc_devkit.conformance.stage import new_service
from msgsvc_devkit.platforms.sms import FakeSmsCentre, FakeSmsProvider, Person, wire
from msgsvc_devkit.platforms.sms.centre import SENDER
from msgsvc_devkit.platforms.sms.centre import Break as CentreBreak
from msgsvc_sms import plugin

from .conftest import UNLIMITED

#: The refusals in the centre's statuses.
STATUSES = {
    Reason.USER_BLOCKED_BOT: wire.OPTED_OUT,
    Reason.CHAT_NOT_FOUND: wire.BAD_DESTINATION,
    Reason.BOT_BANNED: wire.BAD_PASSWORD,
    Reason.INVALID_MESSAGE: wire.BAD_LENGTH,
    Reason.RATE_LIMITED: wire.THROTTLED,
    Reason.PLATFORM_UNAVAILABLE: wire.SYSTEM_ERROR,
    Reason.UNKNOWN: wire.SUBMIT_FAILED,
}

#: The same in the provider's words.
ANSWERS = {
    Reason.USER_BLOCKED_BOT: (400, "opted_out"),
    Reason.CHAT_NOT_FOUND: (400, "no_such_number"),
    Reason.BOT_BANNED: (401, "no_such_key"),
    Reason.INVALID_MESSAGE: (400, "wrong_fields"),
    Reason.RATE_LIMITED: (429, "too_many"),
    Reason.PLATFORM_UNAVAILABLE: (503, "maintenance"),
    Reason.UNKNOWN: (409, "other"),
}


class Migrated:
    """The kit's fixtures, with the tables that limits and the inbox need."""

    plugin = plugin
    kind: str

    @pytest.fixture
    async def service(
        self, messenger: Messenger, tmp_path: Path, new_database: Callable[[], Database]
    ) -> AsyncIterator[Service]:
        service = new_service(plugin, self.kind, messenger.settings, tmp_path, new_database())
        await service.db.connect()
        yield service
        await service.channels.close()
        await service.db.disconnect()
        if "media" in vars(service):
            await service.media.close()


class SmsMessenger(Messenger):
    """Ann, with a telephone."""

    labels_links = False

    def __init__(self, person: Person) -> None:
        self._ann = person
        self.user = ChannelUser(person.number, "")
        self.chat_id = person.number

    async def follow(self, link: str) -> None:
        number, _, body = link.removeprefix("sms:").partition("?body=")
        if not link.startswith("sms:") or number != SENDER:
            raise ValueError(link)
        await self.write(unquote(body))

    async def start(self, payload: str = "") -> None:
        await self.write(f"/start {payload}".strip())

    async def press(self, ref: str, data: str) -> None:
        cannot("buttons are numbered replies")

    async def block(self) -> None:
        self._ann.opted_out = True
        await self.write("Stop")

    async def unblock(self) -> None:
        self._ann.opted_out = False
        await self.write("START")

    async def leave(self) -> None:
        self._ann.gone = True

    async def shown(self) -> Sequence[Shown]:
        return [Shown(ref=each.ref, text=each.text) for each in self._ann.messages]

    async def notices(self) -> Sequence[str]:
        return []


class CentreMessenger(SmsMessenger):
    """Ann, on the fake centre."""

    def __init__(self, centre: FakeSmsCentre) -> None:
        super().__init__(centre.person("Ann"))
        self._centre = centre
        # The kit tells what is delivered itself.
        centre.tells_receipts = False
        self.settings = {
            **centre.settings,
            **UNLIMITED,
            "trusts_senders": True,
            "gone_errors": "034",
        }

    async def write(self, text: str) -> None:
        self._centre.write(self._ann, text)

    async def fail_next(self, reason: Reason, retry_after_s: float | None = None) -> None:
        if retry_after_s is not None:
            cannot("a centre does not say how long to wait")
        self._centre.statuses.append(STATUSES[reason])

    async def break_next(self, fault: Fault) -> None:
        if fault == "5xx":
            await self.fail_next(Reason.PLATFORM_UNAVAILABLE)
            return
        breaks: dict[Fault, CentreBreak] = {"garbage": "garbage", "hang": "hang"}
        self._centre.breaks.append(breaks.get(fault, "lost"))

    async def report(
        self, ref: str, state: Literal["accepted", "delivered", "read", "failed"]
    ) -> None:
        states = {"accepted": "ENROUTE", "delivered": "DELIVRD", "failed": "UNDELIV"}
        self._centre.receipt(ref, self._ann.number, states[state])

    async def kill(self) -> None:
        await self._centre.kill()

    async def restart(self) -> None:
        await self._centre.restart()

    async def revoke(self) -> None:
        self._centre.revoke()

    async def puzzle(self) -> None:
        # A receipt of nothing, a header that is cut off, and no short message at all.
        for body in (
            wire.deliver_body(self._ann.number, SENDER, b"what?", esm_class=0x04),
            wire.deliver_body(self._ann.number, SENDER, b"\x0a\x00", esm_class=0x40),
            wire.deliver_body("00", SENDER, b"from nobody"),
        ):
            self._centre.deliver(body)


class TestSmpp(Migrated, ChannelContract):
    """The whole contract, by SMPP."""

    kind = "sms"

    @pytest.fixture
    async def messenger(self, centre: FakeSmsCentre) -> Messenger:
        return CentreMessenger(centre)


class ProviderMessenger(SmsMessenger):
    """Ann, at the fake provider."""

    proof = "signature"

    def __init__(self, provider: FakeSmsProvider) -> None:
        super().__init__(provider.person("Ann"))
        self._provider = provider
        self.settings = {**provider.settings, **UNLIMITED}

    async def write(self, text: str) -> None:
        await self._provider.write(self._ann, text)

    async def told(self) -> Sequence[Update]:
        cannot("without a secret for webhooks the channel receives nothing")

    async def fail_next(self, reason: Reason, retry_after_s: float | None = None) -> None:
        self._provider.refusals.append((*ANSWERS[reason], retry_after_s))

    async def break_next(self, fault: Fault) -> None:
        if fault == "5xx":
            await self.fail_next(Reason.PLATFORM_UNAVAILABLE)
        else:
            self._provider.breaks.append(fault)

    async def report(
        self, ref: str, state: Literal["accepted", "delivered", "read", "failed"]
    ) -> None:
        await self._provider.receipt(ref, "no_such_number" if state == "failed" else state)

    async def kill(self) -> None:
        await self._provider.kill()

    async def restart(self) -> None:
        await self._provider.restart()

    async def revoke(self) -> None:
        self._provider.revoked = True

    async def puzzle(self) -> None:
        await self._provider.tell({"moons": [{"landed": True}]})
        await self._provider.tell(["from", "text"])

    def signed(self, call: WebhookCall) -> WebhookCall:
        signature = self._provider.signature(call.body)
        return replace(call, headers={**call.headers, "x-signature": signature})


class TestHttp(Migrated, Sending, Buttons, Changing, Failures, Doubt, Life):
    """What is sent, by HTTP."""

    kind = "sms_http"

    @pytest.fixture
    async def messenger(self, provider: FakeSmsProvider) -> Messenger:
        return ProviderMessenger(provider)


class InboundMessenger(ProviderMessenger):
    """Ann, whose texts the provider tells by webhook."""

    def __init__(self, provider: FakeSmsProvider) -> None:
        super().__init__(provider)
        self.settings = {
            **provider.inbound_settings,
            **UNLIMITED,
            "gone_statuses": "no_such_number",
        }


class TestHttpInbound(Migrated, Reports, ReceivingContract):
    """What is received, by HTTP."""

    kind = "sms_http"

    @pytest.fixture
    async def messenger(self, provider: FakeSmsProvider) -> Messenger:
        return InboundMessenger(provider)

    @pytest.fixture
    async def inbox(
        self, channel: Channel, messenger: Messenger, door: Door, provider: FakeSmsProvider
    ) -> Inbox:
        # The operator enters the address at the provider.
        provider.webhook = door.webhook_url
        inbox = Inbox(channel, messenger, door)
        await inbox.open()
        return inbox


class TestSmsPlugin(PluginContract):
    """The rules for every plugin."""

    plugin = plugin
    name = "sms"
    tables_without_project: ClassVar[frozenset[str]] = frozenset(
        {"sms_inbox", "sms_parts", "sms_numbers", "sms_counters", "sms_blocks"}
    )
