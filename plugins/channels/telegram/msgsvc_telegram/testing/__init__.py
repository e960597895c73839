"""A Bot API to test against: a server that behaves as Telegram's, strict about what it is sent."""

from msgsvc_telegram.testing.bots import FakeBot
from msgsvc_telegram.testing.calls import STRICT, Call, Refusal
from msgsvc_telegram.testing.chats import Group, ShownFile, ShownMessage
from msgsvc_telegram.testing.faults import Faults
from msgsvc_telegram.testing.limits import Limits
from msgsvc_telegram.testing.people import Person, Press
from msgsvc_telegram.testing.server import FakeTelegram

__all__ = [
    "STRICT",
    "Call",
    "FakeBot",
    "FakeTelegram",
    "Faults",
    "Group",
    "Limits",
    "Person",
    "Press",
    "Refusal",
    "ShownFile",
    "ShownMessage",
]
