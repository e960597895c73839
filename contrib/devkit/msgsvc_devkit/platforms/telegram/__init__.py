"""A fake Bot API for tests: a server that behaves like Telegram's, and validates requests strictly."""

from msgsvc_devkit.platforms.telegram.bots import FakeBot
from msgsvc_devkit.platforms.telegram.calls import STRICT, Call, Refusal
from msgsvc_devkit.platforms.telegram.chats import Group, ShownFile, ShownMessage
from msgsvc_devkit.platforms.telegram.faults import Faults
from msgsvc_devkit.platforms.telegram.limits import Limits
from msgsvc_devkit.platforms.telegram.people import Person, Press
from msgsvc_devkit.platforms.telegram.server import FakeTelegram

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
