"""Fakes of the core's ports: objects in memory that behave like the real ones, without a database.

Each replaces the class that it is named after: `FakeOutbox` replaces `BotOutbox`. `plugin_context()` creates
and connects them all. `tests/contracts/fakes` runs the same assertions against the fakes and the real parts.
"""

from msgsvc_devkit.fakes.accounts import FakeAccounts
from msgsvc_devkit.fakes.billing import FakeBilling
from msgsvc_devkit.fakes.channels import FakeChannels, fake_settings
from msgsvc_devkit.fakes.contacts import FakeContacts
from msgsvc_devkit.fakes.context import FakeContext, FakePeers, channel_context, plugin_context
from msgsvc_devkit.fakes.database import FakeDatabase, FakeTx, NoTables
from msgsvc_devkit.fakes.events import FakeEvents
from msgsvc_devkit.fakes.files import FakeFiles
from msgsvc_devkit.fakes.jobs import FakeJobQueue, FakeOutbox, QueuedMessage
from msgsvc_devkit.fakes.mailings import FakeMailings
from msgsvc_devkit.fakes.media import FakeMedia
from msgsvc_devkit.fakes.members import FakeMembers
from msgsvc_devkit.fakes.messages import FakeMessages, FakeTemplates
from msgsvc_devkit.fakes.projects import PROJECT, FakeProjects
from msgsvc_devkit.fakes.routing import FakeRouteChooser, FakeRoutes
from msgsvc_devkit.fakes.secrets import fake_secrets, fake_texts
from msgsvc_devkit.fakes.sign_ins import FakeSignIns
from msgsvc_devkit.fakes.subscribers import FakePermissions, FakeSubscribers, FakeTags
from msgsvc_devkit.fakes.telemetry import fake_metrics
from msgsvc_devkit.fakes.tickets import FakeTicketDesk
from msgsvc_devkit.fakes.work import (
    FakeInboundContext,
    FakeJobContext,
    claimed,
    inbound_context,
)

__all__ = [
    "PROJECT",
    "FakeAccounts",
    "FakeBilling",
    "FakeChannels",
    "FakeContacts",
    "FakeContext",
    "FakeDatabase",
    "FakeEvents",
    "FakeFiles",
    "FakeInboundContext",
    "FakeJobContext",
    "FakeJobQueue",
    "FakeMailings",
    "FakeMedia",
    "FakeMembers",
    "FakeMessages",
    "FakeOutbox",
    "FakePeers",
    "FakePermissions",
    "FakeProjects",
    "FakeRouteChooser",
    "FakeRoutes",
    "FakeSignIns",
    "FakeSubscribers",
    "FakeTags",
    "FakeTemplates",
    "FakeTicketDesk",
    "FakeTx",
    "NoTables",
    "QueuedMessage",
    "channel_context",
    "claimed",
    "fake_metrics",
    "fake_secrets",
    "fake_settings",
    "fake_texts",
    "inbound_context",
    "plugin_context",
]
