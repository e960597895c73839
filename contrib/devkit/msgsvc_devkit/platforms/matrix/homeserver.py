"""The fake homeserver: one bot, its users, and their rooms."""

import asyncio
import secrets
from collections.abc import Mapping
from itertools import count
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from msgsvc_devkit.platforms.matrix.api import application
from msgsvc_devkit.platforms.matrix.calls import Call
from msgsvc_devkit.platforms.matrix.faults import Faults
from msgsvc_devkit.platforms.matrix.people import Person
from msgsvc_devkit.platforms.matrix.rooms import Event, MatrixRoom, Receipt, now_ms
from msgsvc_devkit.web_servers import stop

#: The bot's token.
TOKEN = "syt_fake_access_token"

SERVER = "fake.example"


class FakeMatrix:
    """An HTTP server on this machine: `async with FakeMatrix() as homeserver`, then `homeserver.url`."""

    def __init__(self, token: str = TOKEN, localpart: str = "shop_bot") -> None:
        self.tokens = {token}
        self.bot_id = f"@{localpart}:{SERVER}"
        self.bot_name = "Shop"
        self.faults = Faults()
        #: Whether the homeserver accepts invitations for the bot, as Synapse does with `auto_accept_invites`.
        self.accepts_invites = True
        self.revoked = False
        self.rooms: dict[str, MatrixRoom] = {}
        #: Content, type and name of files by their URI.
        self.files: dict[str, tuple[bytes, str, str]] = {}
        #: Where downloads are redirected to; none are if it is empty.
        self.redirects_to = ""
        #: All requests of the bot, in the order of arrival.
        self.calls: list[Call] = []
        #: Events by the path of the transaction that made them.
        self.transactions: dict[str, str] = {}
        self.position = 0
        self._token = token
        self._numbers = count(1)
        self._people: dict[str, Person] = {}
        self._news = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self._port = 0

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    async def start(self, port: int = 0) -> None:
        """Listens on 127.0.0.1; 0 selects a free port."""
        self._runner = web.AppRunner(application(self), access_log=None, shutdown_timeout=0.01)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        assert site.port
        self._port = site.port

    async def kill(self) -> None:
        """Crashes the server, with calls in flight; its state is kept for `restart`."""
        if self._runner is not None:
            await stop(self._runner)

    async def restart(self) -> None:
        """Listens on the same port again."""
        await self.start(self._port)

    async def stop(self) -> None:
        await self.kill()

    @property
    def url(self) -> str:
        """The channel's `homeserver_url`."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def settings(self) -> dict[str, Any]:
        """The settings in `[channels.<name>]` to use it."""
        return {"plugin": "matrix", "homeserver_url": self.url, "token": self._token}

    # ---- users ----------------------------------------------------------------------------------

    def person(self, name: str = "Ann", *, server: str = SERVER) -> Person:
        """A new user, who has no chat with the bot."""
        user_id = f"@{name.lower()}{next(self._numbers)}:{server}"
        person = self._people[user_id] = Person(self, user_id, name)
        return person

    def name_of(self, user_id: str) -> str | None:
        if user_id == self.bot_id:
            return self.bot_name
        person = self._people.get(user_id)
        return person.name if person else None

    def new_room(
        self, person: Person, *, direct: bool, predecessor: Mapping[str, str] | None = None
    ) -> MatrixRoom:
        """A room that a user makes; `predecessor` names the one that it replaces."""
        room = MatrixRoom(f"!{secrets.token_urlsafe(12)}:{SERVER}", direct)
        self.rooms[room.room_id] = room
        create: dict[str, Any] = {"room_version": "11"}
        if predecessor is not None:
            create["predecessor"] = dict(predecessor)
        self.add(room, "m.room.create", person.user_id, create, state_key="")
        self.member(room, person.user_id, "join", person.user_id)
        return room

    def upgrade(self, room: MatrixRoom, person: Person, *, closed: bool) -> MatrixRoom:
        """Replaces a room, as `POST /rooms/{roomId}/upgrade` does. No member is taken along.

        With `closed` only administrators may still write in the old one: the server does so if it can.
        """
        # The room comes first: the tombstone names it. Its predecessor names the event before the end.
        before = {"room_id": room.room_id, "event_id": room.events[-1].event_id}
        new = self.new_room(person, direct=False, predecessor=before)
        for kind in ("m.room.encryption", "m.room.power_levels"):
            if state := room.state_event(kind):
                self.add(new, kind, person.user_id, state.content, state_key="")
        body = {"body": "This room has been replaced", "replacement_room": new.room_id}
        self.add(room, "m.room.tombstone", person.user_id, body, state_key="")
        if closed:
            levels = {"users": {person.user_id: 100}, "users_default": 0, "events_default": 50}
            self.add(room, "m.room.power_levels", person.user_id, levels, state_key="")
        return new

    def invite(self, room: MatrixRoom, sender: str) -> None:
        """Invites the bot."""
        self.member(room, self.bot_id, "invite", sender)

    def auto_join(self, room: MatrixRoom) -> None:
        """Accepts an invitation for the bot, if the homeserver does so."""
        if self.accepts_invites and room.direct:
            self.member(room, self.bot_id, "join", self.bot_id)

    def member(self, room: MatrixRoom, user_id: str, membership: str, sender: str) -> Event:
        """Changes a membership."""
        content: dict[str, Any] = {"membership": membership, "displayname": self.name_of(user_id)}
        if membership == "invite" and room.direct:
            content["is_direct"] = True
        return self.add(room, "m.room.member", sender, content, state_key=user_id)

    def add(
        self,
        room: MatrixRoom,
        kind: str,
        sender: str,
        content: dict[str, Any],
        *,
        state_key: str | None = None,
        redacts: str | None = None,
    ) -> Event:
        """Adds an event to a room."""
        self.position += 1
        previous = None
        if kind == "m.room.member" and state_key is not None:
            before = room.member_event(state_key)
            previous = None if before is None else before.content
        event = Event(
            self.position, room.room_id, kind, sender, content, state_key, previous, redacts
        )
        room.events.append(event)
        self._news.set()
        self._news = asyncio.Event()
        return event

    def receipt(
        self, room: MatrixRoom, kind: str, user_id: str, event_id: str, thread_id: str | None
    ) -> None:
        """Records up to where a user has read. A receipt for an earlier event than the last is dropped."""
        event = room.event(event_id)
        assert event is not None, "only events of the room are read"
        key = (kind, user_id, thread_id)
        known = room.receipts.get(key)
        before = room.event(known.event_id) if known else None
        if before is not None and before.position >= event.position:
            return
        self.position += 1
        room.receipts[key] = Receipt(
            self.position, kind, user_id, event_id, thread_id, max(now_ms(), event.at_ms)
        )
        self._news.set()
        self._news = asyncio.Event()

    def redact(self, room: MatrixRoom, event_id: str, sender: str) -> Event:
        """Takes an event's content away."""
        # MatrixRoom version 11 has it in the content; the homeserver gives it to clients in both places.
        redaction = self.add(
            room, "m.room.redaction", sender, {"redacts": event_id}, redacts=event_id
        )
        event = room.event(event_id)
        assert event is not None, "only events of the room are redacted"
        event.content, event.redacted_by = {}, redaction.event_id
        return redaction

    def keep_file(self, content: bytes, mime_type: str, filename: str) -> str:
        """Keeps a file; its URI."""
        uri = f"mxc://{SERVER}/{secrets.token_hex(12)}"
        self.files[uri] = (content, mime_type, filename)
        return uri

    def calls_of(self, name: str) -> list[Call]:
        """The calls of one kind, e.g. `send`."""
        return [call for call in self.calls if call.name == name]

    async def changed(self) -> None:
        """Returns after the next event."""
        await self._news.wait()
