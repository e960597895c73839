"""People who talk to a recording bot; every act returns when the bot has done its part."""

from dataclasses import dataclass, field
from itertools import count
from typing import Any

from msgsvc_core.channels import (
    ButtonPressed,
    ChannelUser,
    MessageReceived,
    Started,
    Update,
)
from msgsvc_core.service import Service
from msgsvc_devkit import RecordingChannel, Sent, settled
from msgsvc_devkit.fixtures import Tenant

_numbers = count(1)


@dataclass(frozen=True)
class Talker:
    """Somebody with a chat with a bot."""

    service: Service
    user: ChannelUser
    channel_key: str = "messenger_a"
    who: dict[str, Any] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.who.update(chat_id=f"chat-{self.user.user_id}", user=self.user)

    @property
    def channel(self) -> RecordingChannel:
        channel = self.service.channels[self.channel_key]
        assert isinstance(channel, RecordingChannel)
        return channel

    @property
    def shown(self) -> list[Sent]:
        """What the bot has said here, as it was edited since; the oldest first."""
        chat_id = self.who["chat_id"]
        shown = {sent.message_ref: sent for sent in self.channel.sent if sent.chat_id == chat_id}
        for edit in self.channel.edited:
            if edit.chat_id == chat_id:
                shown[edit.message_ref] = edit
        return list(shown.values())

    @property
    def text(self) -> str:
        """The last message's."""
        return self.shown[-1].message.text

    @property
    def labels(self) -> list[str]:
        """What stands on its buttons."""
        return [button.text for row in self.shown[-1].message.buttons for button in row]

    @property
    def notice(self) -> str | None:
        """What the last press was answered with."""
        return self.channel.answered[-1][1]

    async def write(self, text: str) -> str:
        """Returns what the bot says last."""
        await self.receive(MessageReceived(update_id=f"t{next(_numbers)}", text=text, **self.who))
        return self.text

    async def start(self, payload: str = "") -> str:
        await self.receive(Started(update_id=f"s{next(_numbers)}", payload=payload, **self.who))
        return self.text

    async def subscribe(self, tenant: Tenant, **link: Any) -> str:
        """Opens a link of a project."""
        answer = await tenant.client.post("/v1/subscribers/links", json=link)
        assert answer.status_code == 201, answer.text
        name = self.channel.name
        return await self.start(answer.json()["links"][name].partition("start=")[2])

    async def press(self, label: str, message: Sent | None = None) -> str:
        """Presses a button of the last message, or of one that was shown before."""
        shown = message or self.shown[-1]
        rows = shown.message.buttons
        (data,) = [button.data for row in rows for button in row if button.text == label]
        return await self.press_data(data or "", shown.message_ref)

    async def press_data(self, data: str, message_ref: str = "m1") -> str:
        number = next(_numbers)
        await self.receive(
            ButtonPressed(
                update_id=f"p{number}",
                data=data,
                message_ref=message_ref,
                button_ref=f"press-{number}",
                **self.who,
            )
        )
        return self.text

    async def receive(self, update: Update) -> None:
        await self.service.inbound.receive(self.channel_key, update)
        await settled(self.service)


async def events_of(tenant: Tenant, name: str) -> list[dict[str, Any]]:
    """The data of a project's events of one name, the oldest first."""
    found = (await tenant.client.get(f"/v1/events?event={name}&limit=100")).json()["data"]
    return [event["data"] for event in reversed(found)]


async def shown_of(tenant: Tenant) -> dict[str, Any]:
    """The project's one subscriber as the API shows them."""
    [subscriber] = (await tenant.client.get("/v1/subscribers")).json()["data"]
    found: dict[str, Any] = subscriber
    return found
