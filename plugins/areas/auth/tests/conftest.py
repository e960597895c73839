"""A service with the plugin, and people who open links and press buttons."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

import httpx2
import pytest

from msgsvc_auth import plugin
from msgsvc_core.channels import Button, ButtonPressed, ChannelUser, Started
from msgsvc_core.kernel.hooks import in_order
from msgsvc_core.plugins.sign_ins import SignIns
from msgsvc_core.service import Service
from msgsvc_devkit import RecordingChannel, Sent, settled

CALLBACK = "https://shop.example/back?from=bot"

_update_ids = count(1)


def sign_ins_of(service: Service) -> SignIns:
    """What other plugins have people signed in by."""
    hook = service.plugins.hook
    return SignIns(source=hook.register_sign_ins, on_denied=in_order(hook.on_sign_in_denied))


@dataclass(frozen=True)
class Person:
    """Somebody with a messenger. Every action returns when the bot has done its part."""

    service: Service
    channel_name: str
    user: ChannelUser

    @property
    def chat_id(self) -> str:
        return f"chat-{self.user.user_id}"

    @property
    def channel(self) -> RecordingChannel:
        channel = self.service.channels[self.channel_name]
        assert isinstance(channel, RecordingChannel)
        return channel

    @property
    def shown(self) -> Sent:
        """What the person sees last: a message, or what it was edited to."""
        sent = [message for message in self.channel.sent if message.chat_id == self.chat_id][-1]
        edits = [edit for edit in self.channel.edited if edit.message_ref == sent.message_ref]
        return edits[-1] if edits else sent

    @property
    def notice(self) -> str | None:
        """The notice that the last pressed button of this channel was answered with."""
        return self.channel.answered[-1][1]

    @staticmethod
    def button(message: Sent, text: str) -> Button:
        return next(found for row in message.message.buttons for found in row if found.text == text)

    async def open(self, link: str) -> Sent:
        """Opens a link to the bot and presses Start; returns what the bot says."""
        payload = link.partition("?start=")[2]
        await self.receive(
            Started(update_id=_next(), chat_id=self.chat_id, user=self.user, payload=payload)
        )
        return self.shown

    async def press(self, message: Sent, text: str) -> None:
        """Presses the button of `message` that says `text`."""
        await self.press_data(self.button(message, text).data or "", message.message_ref)

    async def press_data(self, data: str, message_ref: str = "m1") -> None:
        await self.receive(self.pressing(data, message_ref))

    def pressing(self, data: str, message_ref: str) -> ButtonPressed:
        number = _next()
        return ButtonPressed(
            update_id=number,
            chat_id=self.chat_id,
            user=self.user,
            data=data,
            message_ref=message_ref,
            button_ref=f"press-{number}",
        )

    async def receive(self, update: Any) -> None:
        await self.service.inbound.receive(self.channel_name, update)
        await settled(self.service)


def _next() -> str:
    return str(next(_update_ids))


@pytest.fixture
async def service(make_service: Callable[..., Awaitable[Service]]) -> Service:
    return await make_service(extra_plugins=[("auth", plugin)])


@pytest.fixture
def ann(service: Service) -> Person:
    return Person(service, "messenger_a", ChannelUser("1001", "Ann", "ann_k", "en"))


@pytest.fixture
def bob(service: Service) -> Person:
    """On the same messenger as Ann; his language is Russian."""
    return Person(service, "messenger_a", ChannelUser("1002", "Bob", None, "ru-RU"))


@pytest.fixture
async def link(client: httpx2.AsyncClient) -> dict[str, Any]:
    """A static link, by which `CALLBACK` is registered."""
    response = await client.post(
        "/v1/auth/links", json={"slug": "shop", "name": "Shop", "callback_url": CALLBACK}
    )
    assert response.status_code == 201, response.text
    answer: dict[str, Any] = response.json()
    return answer


SignInAs = Callable[[Person], Awaitable[dict[str, Any]]]


@pytest.fixture
def sign_in(client: httpx2.AsyncClient) -> SignInAs:
    """Opens a session, has the person say Yes, and returns the session's status with its code."""

    async def sign_in(person: Person) -> dict[str, Any]:
        session = (await client.post("/v1/auth/session", json={"state": "xyz"})).json()
        await person.press(await person.open(session["links"][person.channel_name]), "Yes")
        answer = await client.get(f"/v1/auth/session/{session['session_id']}/status")
        status: dict[str, Any] = answer.json()
        return status

    return sign_in
