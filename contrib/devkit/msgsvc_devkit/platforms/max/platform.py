"""The fake platform: one bot, its users, and their dialogs."""

import asyncio
import hashlib
import hmac
import json
import secrets
from itertools import count
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

from aiohttp import web

from msgsvc_devkit.platforms.max.api import application
from msgsvc_devkit.platforms.max.calls import Call
from msgsvc_devkit.platforms.max.dialogs import Dialog, Message, Profile, now_ms
from msgsvc_devkit.platforms.max.faults import Faults
from msgsvc_devkit.platforms.max.files import Files
from msgsvc_devkit.platforms.max.markup import read_text
from msgsvc_devkit.platforms.max.people import Person
from msgsvc_devkit.platforms.max.refusals import (
    Refused,
    chat_not_found,
    dialog_not_found,
    malformed,
    suspended,
)
from msgsvc_devkit.platforms.max.updates import Updates
from msgsvc_devkit.web_servers import stop

#: The bot's default token.
TOKEN = "f9LHodD0cOI-fake-token"


class FakeMax:
    """An HTTP server on this machine: `async with FakeMax() as platform`, then `platform.url`."""

    def __init__(self, token: str = TOKEN, username: str = "fake_bot") -> None:
        self.token = token
        self.bot = Profile(200, "Fake Bot", username, is_bot=True)
        self.faults = Faults()
        self.files = Files()
        self.updates = Updates()
        #: The bot's menu: descriptions by name.
        self.menu: dict[str, str] = {}
        #: All requests of the bot, in the order of arrival.
        self.calls: list[Call] = []
        self.revoked = False
        self._dialogs: dict[int, Dialog] = {}
        self._callbacks: dict[str, Dialog] = {}
        self._numbers = count(1)
        self._last_ms = 0
        self._change = asyncio.Event()
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
        await self.updates.close()
        if self._runner is not None:
            await stop(self._runner)

    @property
    def url(self) -> str:
        """The channel's `base_url`."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def settings(self) -> dict[str, Any]:
        """The settings in `[channels.<name>]` to use it."""
        return {"plugin": "max", "token": self.token, "base_url": self.url}

    # ---- users ----------------------------------------------------------------------------------

    def person(
        self, name: str = "Ann", *, username: str | None = None, locale: str = "en"
    ) -> Person:
        """A new user, who has not started the bot."""
        dialog = Dialog(Profile(1000 + next(self._numbers), name, username), locale)
        self._dialogs[dialog.chat_id] = dialog
        return Person(self, dialog)

    def tell(self, kind: str, dialog: Dialog, **fields: Any) -> None:
        """Sends the bot an update about a dialog."""
        update = {
            "chat_id": dialog.chat_id,
            "user": dialog.person.to_wire(),
            "timestamp": self._time_ms(),
            "user_locale": dialog.locale,
            "update_type": kind,
            **fields,
        }
        self.updates.tell(update)

    def receive(
        self,
        dialog: Dialog,
        text: str,
        attachments: list[dict[str, Any]],
        answered: Message | None = None,
    ) -> None:
        """A user's message to the bot."""
        message = Message(self._mid(), dialog, dialog.person, text, attachments=attachments)
        dialog.messages.append(message)
        link = {}
        if answered is not None:
            above = {"sender": answered.sender.to_wire(), "message": answered.to_wire()["body"]}
            link = {"link": {"type": "reply", **above}}
        self.updates.tell(
            {
                "message": self._wire(message) | link,
                "timestamp": self._time_ms(),
                "user_locale": dialog.locale,
                "update_type": "message_created",
            }
        )

    def change(self, message: Message, text: str) -> None:
        """Edits the text of a user's message; the schema's update for it has no language."""
        message.shown, message.edited = text, True
        self.updates.tell(
            {
                "message": self._wire(message),
                "timestamp": self._time_ms(),
                "update_type": "message_edited",
            }
        )

    def _wire(self, message: Message) -> dict[str, Any]:
        wire = message.to_wire()
        wire["recipient"]["user_id"] = self.bot.user_id
        return wire

    def press(self, dialog: Dialog, message: Message, payload: str) -> str:
        """A press of a button; returns its id."""
        callback_id = secrets.token_urlsafe(24)
        self._callbacks[callback_id] = dialog
        at_ms = self._time_ms()
        self.updates.tell(
            {
                "callback": {
                    "timestamp": at_ms,
                    "callback_id": callback_id,
                    "user": dialog.person.to_wire(),
                    "payload": payload,
                },
                "message": message.to_wire(),
                "timestamp": at_ms,
                "user_locale": dialog.locale,
                "update_type": "message_callback",
            }
        )
        return callback_id

    def forget_presses(self) -> None:
        """Answers to earlier button presses are no longer accepted."""
        self._callbacks.clear()

    def init_data(self, person: Person, payload: str = "", *, token: str | None = None) -> str:
        """The data that the page of the bot's mini app gets when the user opens it."""
        user = {"id": person.user_id, "first_name": person.profile.first_name, "last_name": ""}
        user |= {"username": person.profile.username, "language_code": "en", "photo_url": None}
        fields = {
            "auth_date": str(now_ms()),
            "query_id": secrets.token_hex(8),
            "user": json.dumps(user, ensure_ascii=False),
        }
        if payload:
            fields["start_param"] = payload
        lines = "\n".join(f"{name}={fields[name]}" for name in sorted(fields))
        key = hmac.digest(b"WebAppData", (token or self.token).encode(), hashlib.sha256)
        signature = hmac.digest(key, lines.encode(), hashlib.sha256).hex()
        return urlencode({**fields, "hash": signature})

    # ---- the bot --------------------------------------------------------------------------------

    async def send(self, dialog: Dialog, body: dict[str, Any]) -> Message:
        """A message of the bot. Raises `Refused`."""
        if dialog.suspended:
            raise suspended()
        self.faults.of_chat(dialog.chat_id, asyncio.get_running_loop().time())
        shown, markup = read_text(body.get("text") or "", body.get("format"))
        attachments = await self._attached(body.get("attachments") or [])
        if not shown.strip() and not attachments:
            raise malformed("text: shows nothing")
        message = Message(self._mid(), dialog, self.bot, shown, markup, attachments)
        message.silent = body.get("notify") is False
        dialog.messages.append(message)
        self._changed()
        return message

    async def edit(self, mid: str, body: dict[str, Any]) -> None:
        """Replaces the given parts of a message. Raises `Refused`."""
        message = self.message(mid)
        if message is None or not message.sender.is_bot:
            raise Refused(404, "message.not.found", f"Message {mid} not found")
        if message.dialog.suspended:
            raise suspended()
        if body.get("text") is not None:
            message.shown, message.markup = read_text(body["text"], body.get("format"))
        if body.get("attachments") is not None:
            message.attachments = await self._attached(body["attachments"])
        message.edited = True
        self._changed()

    def delete(self, mid: str) -> None:
        """Raises `Refused`."""
        message = self.message(mid)
        if message is None:
            raise Refused(404, "message.not.found", f"Message {mid} not found")
        message.dialog.messages.remove(message)
        self._changed()

    def answer(self, callback_id: str, notification: str | None) -> None:
        """Answers a button press. Raises `Refused`."""
        dialog = self._callbacks.pop(callback_id, None)
        if dialog is None:
            raise Refused(404, "callback.not.found", "Callback not found or expired")
        dialog.notices.append(notification or "")
        self._changed()

    def message(self, mid: str) -> Message | None:
        """The message with that id, if it was not deleted."""
        every = (one for dialog in self._dialogs.values() for one in dialog.messages)
        return next((one for one in every if one.mid == mid), None)

    def dialog_of_chat(self, chat_id: int) -> Dialog:
        """Raises `Refused`."""
        dialog = self._dialogs.get(chat_id)
        if dialog is None or not dialog.started:
            raise chat_not_found(chat_id)
        return dialog

    def dialog_of_user(self, user_id: int) -> Dialog:
        """Raises `Refused`."""
        for dialog in self._dialogs.values():
            if dialog.person.user_id == user_id and dialog.started:
                return dialog
        raise dialog_not_found()

    def calls_of(self, name: str) -> list[Call]:
        """The calls of one kind, e.g. `POST /messages`."""
        return [call for call in self.calls if call.name == name]

    async def changed(self) -> None:
        """Returns after the next visible action of the bot."""
        await self._change.wait()

    async def _attached(self, attachments: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [
            one if one["type"] == "inline_keyboard" else await self.files.use(one)
            for one in attachments
        ]

    def _changed(self) -> None:
        self._change.set()
        self._change = asyncio.Event()

    def _time_ms(self) -> int:
        """A unique time for each update, in milliseconds."""
        self._last_ms = max(now_ms(), self._last_ms + 1)
        return self._last_ms

    def _mid(self) -> str:
        return f"mid.{next(self._numbers):016x}{now_ms():016x}"
