"""The fake platform: one business phone number, and users who write to it."""

import asyncio
import base64
import re
import secrets
import time
from itertools import count
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from msgsvc_devkit.platforms.whatsapp.api import application
from msgsvc_devkit.platforms.whatsapp.calls import Call
from msgsvc_devkit.platforms.whatsapp.faults import Faults
from msgsvc_devkit.platforms.whatsapp.files import Files
from msgsvc_devkit.platforms.whatsapp.markup import read_text
from msgsvc_devkit.platforms.whatsapp.people import Person, Shown, buttons_of, number_of
from msgsvc_devkit.platforms.whatsapp.refusals import (
    Refused,
    opted_out,
    undeliverable,
    unpaid,
    window_closed,
)
from msgsvc_devkit.platforms.whatsapp.webhooks import Webhooks
from msgsvc_devkit.web_servers import stop

#: The defaults: a token, an app's secret, and a phone number with its id.
TOKEN, APP_SECRET = "EAAJB-fake-token", "0fake1app2secret3"
NUMBER, NUMBER_ID = "+1 555-078-3881", "106540352242922"


class FakeWhatsApp:
    """An HTTP server on this machine: `async with FakeWhatsApp() as platform`, then `platform.url`."""

    def __init__(self, token: str = TOKEN, app_secret: str = APP_SECRET) -> None:
        self.token = token
        self.app_secret = app_secret
        self.api_version = "v25.0"
        self.phone_number_id = NUMBER_ID
        self.display_phone_number = NUMBER
        self.verified_name = "Fake Shop"
        self.faults = Faults()
        self.files = Files()
        self.webhooks = Webhooks(app_secret)
        #: Bodies of approved templates, by name and language; `{{1}}` is the variable.
        self.templates: dict[tuple[str, str], str] = {}
        #: Templates of the category marketing, which users can opt out of.
        self.marketing: set[str] = set()
        #: Whether the call itself fails for a closed window or an unpaid bill. As a rule the platform
        #: accepts the message, and tells by a status that it was not delivered.
        self.refuses_at_once = False
        #: Whether the account's bill is unpaid: no message is delivered, and the number's health says so.
        self.unpaid = False
        #: Whether the webhook is told what became of messages.
        self.tells_statuses = True
        #: All requests of the business, in the order of arrival.
        self.calls: list[Call] = []
        self.revoked = False
        self.people: list[Person] = []
        self.read: list[str] = []
        self._passed_s = 0.0
        self._numbers = count(1)
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
        await self.webhooks.close()
        if self._runner is not None:
            await stop(self._runner)

    @property
    def url(self) -> str:
        """The channel's `base_url`."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def number(self) -> str:
        """The business phone number, digits alone."""
        return number_of(self.display_phone_number)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings in `[channels.<name>]` to use it."""
        return {
            "plugin": "whatsapp",
            "phone_number_id": self.phone_number_id,
            "phone_number": self.display_phone_number,
            "token": self.token,
            "app_secret": self.app_secret,
            "base_url": self.url,
            "api_version": self.api_version,
        }

    def now_s(self) -> float:
        """Seconds by the platform's clock."""
        return time.monotonic() + self._passed_s

    def pass_time(self, hours: float) -> None:
        """Lets time pass on the platform."""
        self._passed_s += hours * 3600

    # ---- users ----------------------------------------------------------------------------------

    def person(self, name: str = "Ann", *, username: str | None = None) -> Person:
        """A new user, who has not written to the business."""
        number = f"1650555{next(self._numbers):04d}"
        made = Person(self, name, user_id=self.new_user_id(), number=number, username=username)
        self.people.append(made)
        return made

    def new_user_id(self) -> str:
        """A business-scoped user id."""
        return f"US.{13491208655302741918 + next(self._numbers)}"

    def receive(self, person: Person, kind: str, content: Any, **fields: Any) -> str:
        """A user's message to the business; returns its id."""
        person.wrote_at_s = self.now_s()
        ref = self._message_id()
        message = {
            **self._sender(person),
            "id": ref,
            "timestamp": str(int(time.time())),
            "type": kind,
        }
        message |= {kind: content, **fields}
        self.tell({"contacts": [self._contact(person)], "messages": [message]})
        return ref

    def tell_preference(self, person: Person, value: str) -> None:
        """Tells that a user has stopped or resumed marketing messages."""
        preference = {
            "user_id": person.user_id,
            "detail": f"User requested to {value} marketing messages",
            "category": "marketing_messages",
            "value": value,
            "timestamp": int(time.time()),
        }
        if person.shows_number:
            preference["wa_id"] = person.number
        contacts = [self._contact(person)]
        self.tell({"contacts": contacts, "user_preferences": [preference]}, "user_preferences")

    def tell_change(self, person: Person, before: str) -> None:
        """Tells that a user's number and id have changed."""
        system = {
            "body": f"User {person.name} changed their number",
            "type": "user_changed_number" if person.shows_number else "user_changed_user_id",
            "user_id": person.user_id,
            "previous_user_id": before,
        }
        if person.shows_number:
            system["wa_id"] = person.number
        message = {"id": self._message_id(), "timestamp": str(int(time.time())), "type": "system"}
        self.tell({"messages": [{**message, "from_user_id": before, "system": system}]})

    def tell(
        self, value: dict[str, Any], field: str = "messages", number_id: str | None = None
    ) -> None:
        """Calls the webhook with a change."""
        metadata = {
            "display_phone_number": self.number,
            "phone_number_id": number_id or self.phone_number_id,
        }
        whole = {"messaging_product": "whatsapp", "metadata": metadata, **value}
        changes = [{"value": whole, "field": field}]
        entry = {"id": "102290129340398", "changes": changes}
        self.webhooks.tell({"object": "whatsapp_business_account", "entry": [entry]})

    # ---- the business ---------------------------------------------------------------------------

    def send(self, body: dict[str, Any]) -> tuple[Person, str]:
        """A message of the business: its recipient and id. Raises `Refused`."""
        person = self._recipient(body)
        self._check_files(body)
        shown = self._shown(body, self._message_id())
        failure = self._failure(person, shown)
        if failure is not None and failure.code in {131042, 131047} and self.refuses_at_once:
            raise failure
        if failure is None:
            person.messages.append(shown)
            self._changed()
        self._tell_status(person, shown.ref, failure)
        return person, shown.ref

    def mark_read(self, ref: str) -> None:
        self.read.append(ref)

    def calls_of(self, name: str) -> list[Call]:
        """The calls of one kind, e.g. `POST messages`."""
        return [call for call in self.calls if call.name == name]

    async def changed(self) -> None:
        """Returns after the next visible action of the business."""
        await self._change.wait()

    def _recipient(self, body: dict[str, Any]) -> Person:
        number = number_of(body.get("to", ""))
        for person in self.people:
            if body.get("recipient") == person.user_id or (number and number == person.number):
                return person
        raise undeliverable()

    def _check_files(self, body: dict[str, Any]) -> None:
        header = body.get("interactive", {}).get("header", {})
        for holder in (body, header):
            kind = holder.get("type")
            media = holder.get(kind) if kind in {"image", "video", "document"} else None
            if media is not None and "id" in media:
                self.files.use(str(kind), media["id"])

    def _shown(self, body: dict[str, Any], ref: str) -> Shown:
        kind = body["type"]
        content = body[kind]
        if kind == "template":
            return self._from_template(content, ref)
        if kind == "interactive":
            text, looks = read_text(content["body"]["text"])
            media = content.get("header", {}).get("type")
            buttons = tuple(buttons_of(content["action"]))
            return Shown(ref, content["type"], text, tuple(looks), buttons, media)
        is_text = kind == "text"
        text, looks = read_text(content["body"] if is_text else content.get("caption", ""))
        return Shown(
            ref,
            kind,
            text,
            tuple(looks),
            media=None if is_text else kind,
            filename=content.get("filename"),
            previews_url=bool(content.get("preview_url")),
        )

    def _from_template(self, template: dict[str, Any], ref: str) -> Shown:
        name, language = template["name"], template["language"]["code"]
        text = self.templates.get((name, language))
        if text is None:
            raise Refused(404, 132001, "Template name does not exist in the translation")
        given = [
            parameter["text"]
            for component in template.get("components", [])
            for parameter in component["parameters"]
        ]
        if len(set(re.findall(r"\{\{(\d+)\}\}", text))) != len(given):
            raise Refused(
                400, 132000, "Number of parameters does not match the expected number of params"
            )
        for number, value in enumerate(given, 1):
            text = text.replace(f"{{{{{number}}}}}", value)
        if len(text) > 1024:
            raise Refused(400, 132005, "Translated text too long")
        return Shown(ref, "template", text, template=name)

    def _failure(self, person: Person, shown: Shown) -> Refused | None:
        """Why an accepted message is not delivered."""
        if self.unpaid:
            return unpaid()
        if person.has_blocked:
            return undeliverable()
        if shown.template is None:
            return None if person.window_is_open else window_closed()
        return opted_out() if person.opted_out and shown.template in self.marketing else None

    def _tell_status(self, person: Person, ref: str, failure: Refused | None) -> None:
        if not self.tells_statuses:
            return
        statuses = ["sent", "delivered"] if failure is None else ["failed"]
        for status in statuses:
            self.tell_status(person, ref, status, failure)

    def tell_status(
        self, person: Person, ref: str, status: str, failure: Refused | None = None
    ) -> None:
        """Tells what became of a message: `sent`, `delivered`, `read` or `failed`."""
        fields: dict[str, Any] = {
            "id": ref,
            "status": status,
            "timestamp": str(int(time.time())),
            "recipient_user_id": person.user_id,
        }
        if person.shows_number:
            fields["recipient_id"] = person.number
        if failure is not None:
            fields["errors"] = [failure.in_status]
        self.tell({"contacts": [self._contact(person)], "statuses": [fields]})

    def _sender(self, person: Person) -> dict[str, str]:
        number = {"from": person.number} if person.shows_number else {}
        return {"from_user_id": person.user_id, **number}

    def _contact(self, person: Person) -> dict[str, Any]:
        profile = {"name": person.name}
        if person.username is not None:
            profile["username"] = person.username
        number = {"wa_id": person.number} if person.shows_number else {}
        return {"profile": profile, "user_id": person.user_id, **number}

    def _message_id(self) -> str:
        number = next(self._numbers).to_bytes(4) + secrets.token_bytes(24)
        return "wamid." + base64.b64encode(number).decode()

    def _changed(self) -> None:
        self._change.set()
        self._change = asyncio.Event()
