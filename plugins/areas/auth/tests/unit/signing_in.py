"""Sign-ins that wait, the person who answers them, and a browser's requests."""

from typing import Any

from starlette.requests import Request

from msgsvc_auth.confirming import Confirmed
from msgsvc_auth.links import StaticLinks
from msgsvc_auth.models import (
    CreateSessionBody,
    CreateStaticLinkBody,
    NewSession,
    Session,
    StaticLink,
)
from msgsvc_auth.service import SignIn
from msgsvc_core.billing import Charge
from msgsvc_core.channels import ButtonPressed, ChannelUser, OutgoingMessage, Started
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import BillingBlocked
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_devkit import BotCall, MemoryCore
from msgsvc_devkit.contexts import InboundInTest
from msgsvc_devkit.core import PROJECT

TOKEN = "t" * 22
CALLBACK = "https://shop.example/back"
ANNA = ChannelUser("7", "Anna")


async def add_link(core: MemoryCore, tx: Tx, slug: str = "shop") -> StaticLink:
    """A static link that leads to `CALLBACK`."""
    body = CreateStaticLinkBody(slug=slug, name="Shop", callback_url=CALLBACK)
    return await core.get(StaticLinks).create(tx, PROJECT, body)


async def begin(core: MemoryCore, tx: Tx, **body: Any) -> NewSession:
    """A sign-in that waits for its Yes."""
    return await core.get(SignIn).open(tx, PROJECT, CreateSessionBody(**body))


async def say_yes(
    core: MemoryCore, tx: Tx, session: Session, by: ChannelUser = ANNA, **number: int
) -> Confirmed | None:
    """By `messenger_a`."""
    return await core.get(SignIn).confirm(tx, session, "messenger_a", by, "c1", **number)


async def confirm(core: MemoryCore, tx: Tx, **body: Any) -> Confirmed:
    """A sign-in whose code can be exchanged."""
    new = await begin(core, tx, **body)
    confirmed = await say_yes(core, tx, new.session)
    assert confirmed is not None
    return confirmed


async def find_person(core: MemoryCore, tx: Tx, user_id: str = ANNA.user_id) -> Subscriber | None:
    """The subscriber whom that user of `messenger_a` is."""
    return await core.subscribers.find_by_user(tx, PROJECT, "messenger_a", user_id)


def counted(core: MemoryCore, outcome: str, channel: str = "") -> float | None:
    """How many sign-ins came so far, by the metrics."""
    labels = {"outcome": outcome, "channel": channel}
    return core.metrics.registry.get_sample_value("msgsvc_auth_sign_ins_total", labels)


class Unpaid:
    """Billing of a project without credits. `charged` contains what it was charged all the same."""

    def __init__(self) -> None:
        self.charged: list[Charge] = []

    @hookimpl
    async def charge(self, charge: Charge) -> None:
        if charge.refusable:
            raise BillingBlocked
        self.charged.append(charge)


class Chat:
    """A person's chat with the bot of `messenger_a`."""

    def __init__(self, core: MemoryCore, tx: Tx, user_id: str = "7") -> None:
        self._core = core
        self._tx = tx
        self._user = ChannelUser(user_id, "Anna")
        self._chat_id = f"chat {user_id}"
        [[self._started, self._pressed]] = core.service.plugins.hook.register_inbound()

    async def start(self, payload: str) -> bool | None:
        """Opens a link to the bot; whether the plugin has handled it."""
        update = Started(update_id="1", chat_id=self._chat_id, user=self._user, payload=payload)
        return await self._started.handler(self._context(update))

    async def press(self, text: str, by: str | None = None) -> InboundInTest | None:
        """Presses a button of the last question in the chat; None if that is not handled."""
        [*_, question] = [call for call in await self._core.calls(self._tx) if self._is_mine(call)]
        assert question.message is not None
        buttons = [each for row in question.message.buttons for each in row]
        [data] = [each.data for each in buttons if each.text == text]
        update = ButtonPressed(
            update_id="2",
            chat_id=self._chat_id,
            user=self._user if by is None else ChannelUser(by, "Bob"),
            data=data or "",
            message_ref="m1",
            button_ref="b1",
        )
        context = self._context(update)
        return context if await self._pressed.handler(context) else None

    async def questions(self) -> list[OutgoingMessage]:
        """The messages that the bot is to send, in all chats."""
        return await self._messages("send")

    async def answers(self) -> list[OutgoingMessage]:
        """The messages that take the place of questions."""
        return await self._messages("edit")

    async def notices(self) -> list[str | None]:
        """What the bot says to presses."""
        calls = await self._core.calls(self._tx)
        return [call.payload["text"] for call in calls if call.call == "answer_button"]

    async def _messages(self, kind: str) -> list[OutgoingMessage]:
        calls = [call for call in await self._core.calls(self._tx) if call.call == kind]
        return [call.message for call in calls if call.message is not None]

    def _is_mine(self, call: BotCall) -> bool:
        return (call.call, call.chat_id) == ("send", self._chat_id)

    def _context(self, update: Started | ButtonPressed) -> InboundInTest:
        return self._core.inbound(self._tx, update, project_id=None)


def request(
    path: str = "/login/shop",
    *,
    cookies: dict[str, str] | None = None,
    query: str = "",
) -> Request:
    """As a browser sends it."""
    given = {
        "host": "msgsvc.test",
        "cookie": "; ".join(f"{name}={value}" for name, value in (cookies or {}).items()),
    }
    return Request(
        {
            "type": "http",
            "method": "GET",
            "scheme": "http",
            "server": ("msgsvc.test", 80),
            "client": ("203.0.113.7", 50000),
            "path": path,
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in given.items()],
            "path_params": {"slug": "shop"},
            "state": {},
        }
    )
