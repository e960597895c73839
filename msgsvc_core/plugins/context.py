"""The core's services for plugins, from which a plugin builds its own objects."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.billing import BillingGate
from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.system_messages.outbox import BotOutbox
from msgsvc_core.config.sections import Section
from msgsvc_core.config.settings import Settings
from msgsvc_core.dashboard import Pages
from msgsvc_core.db import Database
from msgsvc_core.events import Events
from msgsvc_core.files.media import MediaFiles
from msgsvc_core.files.service import Files
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.i18n import Texts, Title
from msgsvc_core.limits import Limiter
from msgsvc_core.mailings.service import Mailings
from msgsvc_core.members.service import Members
from msgsvc_core.messages.service import Messages
from msgsvc_core.messages.templates.service import Templates
from msgsvc_core.plugins.accounts import AccountDirectory
from msgsvc_core.plugins.sign_ins import SignIns
from msgsvc_core.plugins.tickets import TicketDesk
from msgsvc_core.projects.service import Projects
from msgsvc_core.routing import Routes
from msgsvc_core.security import SecretBox
from msgsvc_core.subscribers.contacts.service import VerifiedContacts
from msgsvc_core.subscribers.permissions.service import Permissions
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_core.subscribers.tags.service import Tags
from msgsvc_core.telemetry import Metrics

S = TypeVar("S", bound=Section)


@dataclass(frozen=True, slots=True, kw_only=True)
class Peers:
    """How plugins use each other's declarations: they do not import one another."""

    tickets: TicketDesk
    accounts: AccountDirectory
    sign_ins: SignIns
    #: Calls all plugins' hook `register_dashboard`; returns their dashboard pages, bound to their services.
    areas: Callable[[], Sequence[Pages]]
    #: All endpoints of the API, available once every plugin has registered its own.
    endpoints: Callable[[], Sequence[Endpoint]]
    #: Titles of the changes that the core and all plugins record themselves, by action.
    audited: Callable[[], Sequence[Mapping[str, Title]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginContext:
    """Passed to a plugin's `create_plugin`, which gives each of its objects the parts that it uses. Only
    `plugin.py`, and a large plugin's `composition`, import this: a class that takes the whole context could
    only be tested with the core."""

    clock: Clock
    db: Database
    #: The core's settings; a plugin's own are `context.settings(OtpSettings)`.
    config: Settings
    secrets: SecretBox
    limiter: Limiter
    texts: Texts
    metrics: Metrics
    jobs: JobQueue
    events: Events
    billing: BillingGate
    projects: Projects
    channels: Channels
    outbox: BotOutbox
    files: Files
    subscribers: Subscribers
    contacts: VerifiedContacts
    tags: Tags
    permissions: Permissions
    members: Members
    messages: Messages
    templates: Templates
    routes: Routes
    mailings: Mailings
    #: Returns the client that fetches files by URL.
    media: Callable[[], MediaFiles]
    sections: Mapping[str, Section]
    peers: Peers

    def settings(self, model: type[S]) -> S:
        """A plugin's section of the configuration, by its type. Raises `LookupError`."""
        for section in self.sections.values():
            if isinstance(section, model):
                return section
        raise LookupError(f"no loaded plugin has settings of type {model.__qualname__}")
