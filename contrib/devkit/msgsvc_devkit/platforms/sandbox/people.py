"""Users of the sandbox messenger, for tests.

async with Sandbox.in_process(service) as sandbox:   # or Sandbox.over_http("http://127.0.0.1:8000")
    anna = await sandbox.person("Anna", lang="en")
    await anna.open(link)
    await anna.press("Yes")
    await anna.wait_for(text="signed in")
"""

import asyncio
import io
import time
from collections.abc import Iterable
from types import TracebackType
from typing import IO, Protocol, TypeVar

from msgsvc_core.kernel.i18n import Language
from msgsvc_devkit.deadlines import patient
from msgsvc_devkit.platforms.sandbox.client import HttpMessenger
from msgsvc_sandbox.models import (
    Fault,
    Message,
    NewPerson,
    Opened,
    OpenedMiniApp,
    OpenLink,
    Person,
    PersonState,
    Reason,
)
from msgsvc_sandbox.service import Messenger

#: Default timeout in seconds of `press` and `wait_for`.
TIMEOUT_S = patient(60.0)


T = TypeVar("T")


class Provider(Protocol):
    """A service, which provides the objects of its plugins."""

    def get(self, kind: type[T]) -> T: ...


class MessengerCalls(Protocol):
    """The calls available both in this process and over HTTP."""

    async def add_person(self, new: NewPerson) -> Person: ...
    async def state(self, person_id: str, since: int = 0, wait_s: float = 0) -> PersonState: ...
    async def open(self, person_id: str, link: OpenLink) -> Opened: ...
    async def open_mini_app(
        self, person_id: str, channel: str, payload: str = ""
    ) -> OpenedMiniApp: ...
    async def send_text(
        self, person_id: str, channel: str, text: str, reply_to: str | None = None
    ) -> Message: ...
    async def send_file(
        self, person_id: str, channel: str, filename: str, content: IO[bytes], text: str = ""
    ) -> Message: ...
    async def edit_text(self, person_id: str, channel: str, ref: str, text: str) -> Message: ...
    async def press(
        self, person_id: str, channel: str, ref: str, row: int, column: int
    ) -> None: ...
    async def set_blocked(self, person_id: str, channel: str, blocked: bool) -> None: ...
    async def set_fault(self, channel: str, fault: Fault) -> Fault: ...


class Sandbox:
    """The sandbox messenger: creates users, and injects faults into channels."""

    def __init__(self, calls: MessengerCalls) -> None:
        self._calls = calls

    @classmethod
    def in_process(cls, service: Provider) -> "Sandbox":
        """The messenger of a service in this process."""
        return cls(service.get(Messenger))

    @classmethod
    def over_http(cls, base_url: str) -> "Sandbox":
        """The messenger of a service at a URL. Close it, or use `async with`."""
        return cls(HttpMessenger(base_url))

    async def person(
        self, name: str, *, username: str = "", lang: Language = "en"
    ) -> "SandboxPerson":
        """A new user, who has not started a bot yet."""
        new = NewPerson(name=name, username=username, lang=lang)
        return SandboxPerson(self._calls, await self._calls.add_person(new))

    async def fail(
        self, channel: str, reason: Reason, *, retry_after_s: int = 5, times: int | None = None
    ) -> None:
        """All calls of the bot fail this way, or only the next `times`."""
        fault = Fault(reason=reason, retry_after_s=retry_after_s, remaining=times)
        await self._calls.set_fault(channel, fault)

    async def slow(self, channel: str, delay_s: float, *, times: int | None = None) -> None:
        """All calls of the bot take `delay_s` seconds longer, or only the next `times`."""
        await self._calls.set_fault(channel, Fault(delay_s=delay_s, remaining=times))

    async def heal(self, channel: str) -> None:
        """Removes all faults of the channel."""
        await self._calls.set_fault(channel, Fault())

    async def close(self) -> None:
        """Closes the connections to a messenger over HTTP."""
        if isinstance(self._calls, HttpMessenger):
            await self._calls.close()

    async def __aenter__(self) -> "Sandbox":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


class SandboxPerson:
    """A user of the messenger. An optional channel defaults to the last opened one."""

    def __init__(self, calls: MessengerCalls, profile: Person) -> None:
        self._calls = calls
        self._channel: str | None = None
        self.profile = profile

    @property
    def person_id(self) -> str:
        """The user's id, which is also the id of their chats."""
        return self.profile.person_id

    async def open(self, link: str) -> str:
        """Opens a start link and presses Start; returns its channel."""
        return await self._open(OpenLink(link=link))

    async def start(self, channel: str, payload: str = "") -> str:
        """Presses Start in the chat with a bot, without a link."""
        return await self._open(OpenLink(channel=channel, payload=payload))

    async def open_mini_app(self, channel: str, payload: str = "") -> str:
        """Opens a bot's mini app; returns the `init_data` that its page gets."""
        opened = await self._calls.open_mini_app(self.person_id, channel, payload)
        return opened.init_data

    async def say(
        self, text: str, *, channel: str | None = None, reply_to: str | None = None
    ) -> Message:
        """Writes to a bot, optionally as a reply to its message `reply_to`."""
        chosen = self._chosen(channel)
        return await self._calls.send_text(self.person_id, chosen, text, reply_to)

    async def send_file(
        self, filename: str, content: bytes, text: str = "", *, channel: str | None = None
    ) -> Message:
        """Sends a bot a file, with or without a text."""
        chosen, file = self._chosen(channel), io.BytesIO(content)
        return await self._calls.send_file(self.person_id, chosen, filename, file, text)

    async def edit(self, message: Message, text: str) -> Message:
        """Edits a message returned by `say` or `send_file`."""
        return await self._calls.edit_text(self.person_id, message.channel, message.ref, text)

    async def press(
        self,
        button: str,
        *,
        text: str = "",
        channel: str | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> Message:
        """Presses a button by its label, in the latest message that has it and contains `text`; waits for
        one."""
        message = await self.wait_for(
            text=text, button=button, channel=channel, timeout_s=timeout_s
        )
        row, column = _place(message, button) or (0, 0)
        await self._calls.press(self.person_id, message.channel, message.ref, row, column)
        return message

    async def messages(self, channel: str | None = None) -> list[Message]:
        """Messages of bots, oldest first; the last 50 of each chat."""
        state = await self._calls.state(self.person_id)
        return _from_bots(state.messages, channel)

    async def wait_for(
        self,
        *,
        text: str = "",
        button: str | None = None,
        channel: str | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> Message:
        """Waits for a bot's message that contains `text` and has `button`; returns the latest.

        Raises `TimeoutError` with the messages found instead.
        """
        until = time.monotonic() + timeout_s
        known: dict[str, Message] = {}
        revision = 0
        while True:
            left = until - time.monotonic()
            state = await self._calls.state(self.person_id, revision, max(0.0, left))
            revision = state.revision
            known |= {message.ref: message for message in state.messages}
            found = [
                message
                for message in _from_bots(known.values(), channel)
                if text in message.text and (button is None or _place(message, button))
            ]
            if found:
                return found[-1]
            if left <= 0:
                seen = [message.text for message in _from_bots(known.values(), channel)]
                raise TimeoutError(f"no message with {text!r}, button {button!r}; there is {seen}")
            # Over HTTP waits below a second are zero, which would make this a busy loop.
            await asyncio.sleep(0.01)

    async def block(self, channel: str | None = None) -> None:
        """Blocks a bot: it gets an update, and can't write any more."""
        await self._calls.set_blocked(self.person_id, self._chosen(channel), True)

    async def unblock(self, channel: str | None = None) -> None:
        """Unblocks a bot."""
        await self._calls.set_blocked(self.person_id, self._chosen(channel), False)

    async def _open(self, link: OpenLink) -> str:
        self._channel = (await self._calls.open(self.person_id, link)).channel
        return self._channel

    def _chosen(self, channel: str | None) -> str:
        chosen = channel or self._channel
        if chosen is None:
            raise ValueError("this person has opened no chat yet: name the channel")
        return chosen


def _from_bots(messages: Iterable[Message], channel: str | None) -> list[Message]:
    found = [
        message
        for message in messages
        if message.author == "bot" and not message.deleted and channel in (None, message.channel)
    ]
    return sorted(found, key=lambda message: int(message.ref))


def _place(message: Message, label: str) -> tuple[int, int] | None:
    """Row and column of the button with that label."""
    for row, buttons in enumerate(message.buttons):
        for column, button in enumerate(buttons):
            if button.text == label:
                return row, column
    return None
