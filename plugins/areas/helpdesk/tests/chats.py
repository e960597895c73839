"""What an agent does in their chat: opens their link, presses buttons, answers messages."""

from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import httpx2

from msgsvc_core.channels import ButtonPressed, Channel, ChannelUser, Started
from msgsvc_core.service import Service
from msgsvc_devkit import RecordingChannel, Sent

from .conftest import Person, post

_presses = count(1)


def tells_replies(channel: Channel, tells: bool = True) -> None:
    """Whether the messenger tells which message a person answers."""
    channel.capabilities = replace(channel.capabilities, tells_replies=tells)


@dataclass(frozen=True)
class Agent(Person):
    """A person who is a member of the project."""

    member_id: str = ""

    @property
    def channel(self) -> RecordingChannel:
        found = self.service.channels[self.channel_name]
        assert isinstance(found, RecordingChannel)
        return found

    @property
    def texts(self) -> list[str]:
        return [one.message.text for one in self.messages]

    def newest(self, text: str) -> Sent:
        """The newest message that holds `text`."""
        return [one for one in self.messages if text in one.message.text][-1]

    def looks(self, sent: Sent) -> str:
        """What a message says by now."""
        edits = [one for one in self.channel.edited if one.message_ref == sent.message_ref]
        return (edits or [sent])[-1].message.text

    def labels(self, sent: Sent) -> list[str]:
        """The buttons that it has by now."""
        edits = [one for one in self.channel.edited if one.message_ref == sent.message_ref]
        rows = (edits or [sent])[-1].message.buttons
        return [button.text for row in rows for button in row]

    async def press(self, label: str, on: Sent | None = None) -> str | None:
        """Presses a button of the newest message that ever had it; returns the notice."""
        shown = [one for one in [*self.messages, *self._edited()] if on is None or _same(one, on)]
        sent, data = [
            (one, button.data or "")
            for one in shown
            for row in one.message.buttons
            for button in row
            if button.text == label
        ][-1]
        return await self.send_press(data, sent.message_ref)

    async def send_press(self, data: str, message_ref: str) -> str | None:
        ref = f"press-{next(_presses)}"
        await self.receive(
            ButtonPressed(**self._update(), data=data, message_ref=message_ref, button_ref=ref)
        )
        return dict(self.channel.answered)[ref]

    async def answer(self, sent: Sent, text: str, **more: Any) -> None:
        await self.write(text, reply_to=sent.message_ref, **more)

    def _edited(self) -> list[Sent]:
        return [one for one in self.channel.edited if one.chat_id == self.chat_id]


def _same(one: Sent, other: Sent) -> bool:
    return one.message_ref == other.message_ref


async def hire(
    service: Service,
    client: httpx2.AsyncClient,
    name: str,
    *,
    lang: str = "en",
    channel: str = "messenger_a",
    **fields: Any,
) -> Agent:
    """Adds a member, who opens their link."""
    email = f"{name.lower()}@shop.example"
    member = await post(client, "/v1/members", name=name, email=email, **fields)
    link = await post(client, f"/v1/members/{member['member_id']}/link")
    agent = Agent(
        service, ChannelUser(f"agent-{name}", name, None, lang), channel, member["member_id"]
    )
    payload = link["links"][channel].partition("?start=")[2]
    await agent.receive(Started(**agent._update(), payload=payload))
    return agent
