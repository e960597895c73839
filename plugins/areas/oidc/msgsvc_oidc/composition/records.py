"""What the rest of the provider is built on."""

from msgsvc_core.plugins.context import PluginContext
from msgsvc_oidc.backchannel_logout.service import LogoutDeliveries
from msgsvc_oidc.clients.remote_keys import RemoteKeys
from msgsvc_oidc.clients.service import Clients
from msgsvc_oidc.consents.service import Consents
from msgsvc_oidc.grants.references import References
from msgsvc_oidc.grants.service import Grants
from msgsvc_oidc.issuers import Issuers
from msgsvc_oidc.journal.service import SignInJournal
from msgsvc_oidc.keys.service import SigningKeys
from msgsvc_oidc.people import People
from msgsvc_oidc.sessions.service import Sessions
from msgsvc_oidc.settings import OidcSettings


class Records:
    """Issuers, keys and clients, and what people allowed those."""

    def __init__(self, context: PluginContext) -> None:
        settings = context.settings(OidcSettings)
        self.references = References(context.secrets)
        self.issuers = Issuers(
            clock=context.clock,
            db=context.db,
            projects=context.projects,
            base_url=context.config.base_url,
        )
        self.keys = SigningKeys(
            clock=context.clock, db=context.db, secrets=context.secrets, settings=settings
        )
        self.clients = Clients(
            clock=context.clock,
            db=context.db,
            settings=settings,
            remote_keys=RemoteKeys(clock=context.clock, jobs=context.jobs),
        )
        self.journal = SignInJournal(clock=context.clock)
        self.sessions = Sessions(clock=context.clock, settings=settings, references=self.references)
        self.people = People(
            db=context.db, subscribers=context.subscribers, contacts=context.contacts
        )
        self.grants = Grants(
            clock=context.clock,
            db=context.db,
            settings=settings,
            references=self.references,
            keys=self.keys,
            people=self.people,
        )
        self.logouts = LogoutDeliveries(clock=context.clock, jobs=context.jobs)
        self.consents = Consents(
            clock=context.clock,
            grants=self.grants,
            logouts=self.logouts,
            subscribers=context.subscribers,
            permissions=context.permissions,
            texts=context.texts,
        )
