"""The parts of a service that embedders and commands use most."""

from collections.abc import Callable
from typing import Any

from msgsvc_core.billing import BillingGate
from msgsvc_core.channels import Channels, Inbound
from msgsvc_core.channels.system_messages.outbox import BotOutbox
from msgsvc_core.events import Events
from msgsvc_core.files import Files
from msgsvc_core.files.media import MediaFiles
from msgsvc_core.kernel.errors import ErrorCatalogue
from msgsvc_core.kernel.i18n import Texts
from msgsvc_core.mailings import Mailings
from msgsvc_core.members import Members
from msgsvc_core.messages import Messages
from msgsvc_core.plugins.accounts import AccountDirectory
from msgsvc_core.plugins.audit import AuditLog
from msgsvc_core.projects import Projects
from msgsvc_core.subscribers import Subscribers
from msgsvc_core.subscribers.contacts import VerifiedContacts


class NamedParts:
    """These have a name; `Service.get` finds all others by their class."""

    def _name_parts(self, get: Callable[[type], Any]) -> None:
        self.errors: ErrorCatalogue = get(ErrorCatalogue)
        self.texts: Texts = get(Texts)
        self.events: Events = get(Events)
        self.projects: Projects = get(Projects)
        self.billing: BillingGate = get(BillingGate)
        self.accounts: AccountDirectory = get(AccountDirectory)
        self.audit: AuditLog = get(AuditLog)
        self.channels: Channels = get(Channels)
        self.inbound: Inbound = get(Inbound)
        self.outbox: BotOutbox = get(BotOutbox)
        self.files: Files = get(Files)
        self.media: MediaFiles = get(MediaFiles)
        self.subscribers: Subscribers = get(Subscribers)
        self.contacts: VerifiedContacts = get(VerifiedContacts)
        self.members: Members = get(Members)
        self.messages: Messages = get(Messages)
        self.mailings: Mailings = get(Mailings)
