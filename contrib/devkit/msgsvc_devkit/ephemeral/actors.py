"""What a test does with its service: people who act, time that passes, events and webhooks to look at."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import IO, Any

import httpx2

from msgsvc_core.kernel.clock import to_datetime
from msgsvc_core.kernel.i18n import Language
from msgsvc_devkit.deadlines import patient
from msgsvc_devkit.ephemeral.inbox import SignedRequest
from msgsvc_devkit.ephemeral.thread import ServiceThread
from msgsvc_devkit.platforms.sandbox import Sandbox, SandboxPerson
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

#: Seconds that a person waits for a message. Everything runs in this process, so what comes comes soon.
TIMEOUT_S = patient(10.0)

#: Events of a page of the feed.
PAGE = 100


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in the project, as in `GET /v1/events`."""

    event_id: str
    event: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Webhook:
    """A webhook of the project, and the secret with which its requests are signed."""

    webhook_id: str
    url: str
    secret: str


class _Common:
    """What both kinds know without waiting."""

    def __init__(self, thread: ServiceThread) -> None:
        self._thread = thread
        #: The service's URL, the same for all tests.
        self.base_url = thread.base_url
        #: An API key with all scopes, and its project, the same for all tests.
        self.api_key = thread.tenancy.api_key
        self.project_id = thread.tenancy.project_id

    @property
    def channels(self) -> list[str]:
        """The names of its messengers; a person's chats are by them."""
        return list(self._thread.service.settings.channels)

    @property
    def now(self) -> datetime:
        """The service's time, in UTC."""
        return to_datetime(self._thread.service.clock.now_ms())

    # Coroutines of the service's loop.

    async def _sandbox(self) -> Sandbox:
        return Sandbox.in_process(self._thread.service)

    async def _call(self, method: str, path: str, **request: Any) -> Any:
        async with httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=self._thread.service.app),
            base_url=self.base_url,
            headers={"Authorization": f"Bearer {self.api_key}"},
        ) as client:
            answer = await client.request(method, path, **request)
        answer.raise_for_status()
        return answer.json()

    async def _events(self, event: str | None) -> list[Event]:
        await self._thread.time_travel.settle()
        query: dict[str, Any] = {"limit": PAGE, **({} if event is None else {"event": event})}
        found: list[Event] = []
        while True:
            page = await self._call("GET", "/v1/events", params=query)
            found += [Event(**each) for each in page["data"]]
            if page["next_cursor"] is None:
                return found[::-1]
            query["cursor"] = page["next_cursor"]

    async def _webhook(self, url: str | None, events: Sequence[str] | None) -> Webhook:
        body: dict[str, Any] = {"url": url or self._thread.inboxes.open()}
        if events is not None:
            body["events"] = list(events)
        made = await self._call("POST", "/v1/webhooks", json=body)
        return Webhook(made["webhook_id"], made["url"], made["secret"])

    async def _take(self, webhook: Webhook) -> list[SignedRequest]:
        await self._thread.time_travel.settle()
        return self._thread.inboxes.take(webhook.url)


class Msgsvc(_Common):
    """A running service, for blocking tests. Every method returns when it is done."""

    def person(self, name: str, *, username: str = "", lang: Language = "en") -> "ActingPerson":
        """A new user of the messenger, who has not started a bot yet."""
        return ActingPerson(self._thread, self._thread.call(self._person(name, username, lang)))

    def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
    ) -> None:
        """Moves the service's clock forward, and waits for everything that becomes due."""
        self._thread.call(self._thread.time_travel.advance(_seconds(days, hours, minutes, seconds)))

    def settle(self) -> None:
        """Waits until all that was begun is done: messages are sent, webhooks are delivered."""
        self._thread.call(self._thread.time_travel.settle())

    def events(self, event: str | None = None) -> list[Event]:
        """What happened so far, oldest first, or only the events of that name. Settles first."""
        return self._thread.call(self._events(event))

    def webhook(self, url: str | None = None, *, events: Sequence[str] | None = None) -> Webhook:
        """Registers a webhook, for all events or those named. Without a URL its requests are kept for
        `take`, for programs that listen nowhere during a test."""
        return self._thread.call(self._webhook(url, events))

    def take(self, webhook: Webhook) -> list[SignedRequest]:
        """The requests that a webhook without a URL received since the last call. Settles first."""
        return self._thread.call(self._take(webhook))

    def fail(
        self, channel: str, reason: Reason, *, retry_after_s: int = 5, times: int | None = None
    ) -> None:
        """All calls of that messenger fail this way, or only the next `times`."""

        async def fail() -> None:
            sandbox = await self._sandbox()
            await sandbox.fail(channel, reason, retry_after_s=retry_after_s, times=times)

        self._thread.call(fail())

    def heal(self, channel: str) -> None:
        """Ends the faults of that messenger."""

        async def heal() -> None:
            await (await self._sandbox()).heal(channel)

        self._thread.call(heal())

    async def _person(self, name: str, username: str, lang: Language) -> SandboxPerson:
        return await (await self._sandbox()).person(name, username=username, lang=lang)


class ActingPerson:
    """A user of the messenger. An optional channel defaults to the last opened one."""

    def __init__(self, thread: ServiceThread, person: SandboxPerson) -> None:
        self._thread = thread
        self._person = person

    @property
    def person_id(self) -> str:
        """The user's id, which is also the id of their chats."""
        return self._person.person_id

    def open(self, link: str) -> str:
        """Opens a start link and presses Start; returns its channel."""
        return self._thread.call(self._person.open(link))

    def start(self, channel: str, payload: str = "") -> str:
        """Presses Start in the chat with a bot, without a link."""
        return self._thread.call(self._person.start(channel, payload))

    def press(
        self,
        button: str,
        *,
        text: str = "",
        channel: str | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> Message:
        """Presses a button by its label, in the latest message that has it and contains `text`; waits for
        one. Raises `TimeoutError`."""
        return self._thread.call(
            self._person.press(button, text=text, channel=channel, timeout_s=timeout_s)
        )

    def say(self, text: str, *, channel: str | None = None, reply_to: str | None = None) -> Message:
        """Writes to a bot, optionally as a reply to its message `reply_to`."""
        return self._thread.call(self._person.say(text, channel=channel, reply_to=reply_to))

    def send_file(
        self, filename: str, content: bytes, text: str = "", *, channel: str | None = None
    ) -> Message:
        """Sends a bot a file, with or without a text."""
        return self._thread.call(self._person.send_file(filename, content, text, channel=channel))

    def edit(self, message: Message, text: str) -> Message:
        """Edits a message returned by `say` or `send_file`."""
        return self._thread.call(self._person.edit(message, text))

    def messages(self, channel: str | None = None) -> list[Message]:
        """Messages of bots, oldest first; the last 50 of each chat."""
        return self._thread.call(self._person.messages(channel))

    def wait_for(
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
        return self._thread.call(
            self._person.wait_for(text=text, button=button, channel=channel, timeout_s=timeout_s)
        )

    def open_mini_app(self, channel: str, payload: str = "") -> str:
        """Opens a bot's mini app; returns the `init_data` that its page gets."""
        return self._thread.call(self._person.open_mini_app(channel, payload))

    def block(self, channel: str | None = None) -> None:
        """Blocks a bot: it gets an update, and can't write any more."""
        self._thread.call(self._person.block(channel))

    def unblock(self, channel: str | None = None) -> None:
        """Unblocks a bot."""
        self._thread.call(self._person.unblock(channel))


class AsyncMsgsvc(_Common):
    """A running service, for tests that are coroutines: as `Msgsvc`, awaited."""

    async def person(
        self, name: str, *, username: str = "", lang: Language = "en"
    ) -> SandboxPerson:
        """A new user of the messenger, who has not started a bot yet."""
        sandbox = Sandbox(MessengerInThread(self._thread))
        return await sandbox.person(name, username=username, lang=lang)

    async def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
    ) -> None:
        """Moves the service's clock forward, and waits for everything that becomes due."""
        moving = self._thread.time_travel.advance(_seconds(days, hours, minutes, seconds))
        await self._thread.hop(moving)

    async def settle(self) -> None:
        """Waits until all that was begun is done: messages are sent, webhooks are delivered."""
        await self._thread.hop(self._thread.time_travel.settle())

    async def events(self, event: str | None = None) -> list[Event]:
        """What happened so far, oldest first, or only the events of that name. Settles first."""
        return await self._thread.hop(self._events(event))

    async def webhook(
        self, url: str | None = None, *, events: Sequence[str] | None = None
    ) -> Webhook:
        """Registers a webhook, for all events or those named. Without a URL its requests are kept for
        `take`, for programs that listen nowhere during a test."""
        return await self._thread.hop(self._webhook(url, events))

    async def take(self, webhook: Webhook) -> list[SignedRequest]:
        """The requests that a webhook without a URL received since the last call. Settles first."""
        return await self._thread.hop(self._take(webhook))

    async def fail(
        self, channel: str, reason: Reason, *, retry_after_s: int = 5, times: int | None = None
    ) -> None:
        """All calls of that messenger fail this way, or only the next `times`."""
        sandbox = Sandbox(MessengerInThread(self._thread))
        await sandbox.fail(channel, reason, retry_after_s=retry_after_s, times=times)

    async def heal(self, channel: str) -> None:
        """Ends the faults of that messenger."""
        await Sandbox(MessengerInThread(self._thread)).heal(channel)


class MessengerInThread:
    """The calls of `Messenger`, made in the service's thread from another loop."""

    def __init__(self, thread: ServiceThread) -> None:
        self._thread = thread
        self._messenger = thread.service.get(Messenger)

    async def add_person(self, new: NewPerson) -> Person:
        return await self._thread.hop(self._messenger.add_person(new))

    async def state(self, person_id: str, since: int = 0, wait_s: float = 0) -> PersonState:
        return await self._thread.hop(self._messenger.state(person_id, since, wait_s))

    async def open(self, person_id: str, link: OpenLink) -> Opened:
        return await self._thread.hop(self._messenger.open(person_id, link))

    async def open_mini_app(self, person_id: str, channel: str, payload: str = "") -> OpenedMiniApp:
        return await self._thread.hop(self._messenger.open_mini_app(person_id, channel, payload))

    async def send_text(
        self, person_id: str, channel: str, text: str, reply_to: str | None = None
    ) -> Message:
        sending = self._messenger.send_text(person_id, channel, text, reply_to)
        return await self._thread.hop(sending)

    async def send_file(
        self, person_id: str, channel: str, filename: str, content: IO[bytes], text: str = ""
    ) -> Message:
        sending = self._messenger.send_file(person_id, channel, filename, content, text=text)
        return await self._thread.hop(sending)

    async def edit_text(self, person_id: str, channel: str, ref: str, text: str) -> Message:
        return await self._thread.hop(self._messenger.edit_text(person_id, channel, ref, text))

    async def press(self, person_id: str, channel: str, ref: str, row: int, column: int) -> None:
        await self._thread.hop(self._messenger.press(person_id, channel, ref, row, column))

    async def set_blocked(self, person_id: str, channel: str, blocked: bool) -> None:
        await self._thread.hop(self._messenger.set_blocked(person_id, channel, blocked))

    async def set_fault(self, channel: str, fault: Fault) -> Fault:
        return await self._thread.hop(self._messenger.set_fault(channel, fault))


def _seconds(days: float, hours: float, minutes: float, seconds: float) -> float:
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    if total <= 0:
        raise ValueError("the clock moves forward: name days, hours, minutes or seconds")
    return total
