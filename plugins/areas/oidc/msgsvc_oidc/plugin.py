"""Hook implementations. Each delegates to the module that owns the behaviour."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.channels import InboundRule
from msgsvc_core.config.settings import SettingsSection
from msgsvc_core.dashboard import Pages
from msgsvc_core.db import MigrationSource, Tx
from msgsvc_core.db.personal_data import PersonalData
from msgsvc_core.events import Event
from msgsvc_core.jobs import JobSpec, LaneSpec
from msgsvc_core.plugins.context import PluginContext
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.security.sealed import SealedColumn
from msgsvc_oidc.apps.inbound import AppsCommand
from msgsvc_oidc.authorization.sign_in_pages import SOURCE
from msgsvc_oidc.backchannel_logout.service import LogoutDeliveries
from msgsvc_oidc.clients.routes import router
from msgsvc_oidc.clients.service import Clients
from msgsvc_oidc.composition.background import BackgroundJobs
from msgsvc_oidc.composition.endpoints import ClientEndpoints
from msgsvc_oidc.composition.pages import BrowserPages
from msgsvc_oidc.composition.records import Records
from msgsvc_oidc.composition.requests import Requests
from msgsvc_oidc.consents.service import Consents
from msgsvc_oidc.dashboard import pages
from msgsvc_oidc.erasure import SubscriberErasure
from msgsvc_oidc.issuers import Issuers
from msgsvc_oidc.journal.service import SignInJournal
from msgsvc_oidc.keys.service import SigningKeys
from msgsvc_oidc.personal_data import PERSONAL_DATA
from msgsvc_oidc.registration.routes import router as registration_router
from msgsvc_oidc.registration.tokens import RegistrationTokens
from msgsvc_oidc.settings import OidcSettings

HERE = Path(__file__).parent


@hookimpl
def register_settings() -> SettingsSection:
    return SettingsSection("oidc", OidcSettings)


@hookimpl
def register_migrations() -> MigrationSource:
    return MigrationSource("oidc", HERE / "migrations")


@hookimpl
def register_sealed() -> Sequence[SealedColumn]:
    return [
        SealedColumn(
            table="oidc_keys",
            column="private_sealed",
            key=("key_id",),
            bound_to=("key_id",),
            holds="{count} signing key(s) of the OpenID provider",
            if_lost="run `msgsvc oidc keys replace`",
        )
    ]


@hookimpl
def register_locale() -> Path:
    return HERE / "locale"


@hookimpl
def register_personal_data() -> Sequence[PersonalData]:
    return PERSONAL_DATA


@hookimpl
def create_plugin(context: PluginContext) -> "OidcPlugin":
    return OidcPlugin(context)


class OidcPlugin:
    """The plugin's objects, and the hooks that need them."""

    def __init__(self, context: PluginContext) -> None:
        settings = context.settings(OidcSettings)
        self._records = records = Records(context)
        requests = Requests(context, records)
        self._endpoints = ClientEndpoints(context, records, requests)
        self._pages = BrowserPages(context, records, requests)
        self._apps = AppsCommand(
            subscribers=context.subscribers,
            projects=context.projects,
            consents=records.consents,
            listed=settings.apps_in_menu,
        )
        self._erasure = SubscriberErasure(
            db=context.db,
            grants=records.grants,
            deliveries=records.logouts,
            journal=records.journal,
        )
        self._jobs = BackgroundJobs(context, records)

    @hookimpl
    def register_services(self) -> Mapping[type, Any]:
        records = self._records
        return {
            Clients: records.clients,
            Consents: records.consents,
            Issuers: records.issuers,
            LogoutDeliveries: records.logouts,
            RegistrationTokens: self._endpoints.registration_tokens,
            SignInJournal: records.journal,
            SigningKeys: records.keys,
        }

    @hookimpl
    def register_endpoints(self) -> Sequence[Endpoint]:
        return [*router.endpoints, *registration_router.endpoints]

    @hookimpl
    def register_dashboard(self) -> Sequence[Pages]:
        return [pages]

    @hookimpl
    def register_pages(self) -> Sequence[Any]:
        return [*self._endpoints.routes(), *self._pages.routes()]

    @hookimpl
    def register_jobs(self) -> Sequence[JobSpec]:
        return self._jobs.specs()

    @hookimpl
    def register_lanes(self) -> Sequence[LaneSpec]:
        return self._jobs.lanes()

    @hookimpl
    async def on_events(self, tx: Tx, events: Sequence[Event]) -> None:
        await self._erasure.on_events(tx, events)

    @hookimpl
    async def on_sign_in_denied(self, tx: Tx, project_id: str, source: str, source_id: str) -> None:
        if source == SOURCE:
            await self._pages.authorizations.note_denial(tx, project_id, source_id)

    @hookimpl
    async def erase_subscriber(self, project_id: str, subscriber_id: str) -> None:
        await self._erasure.erase(project_id, subscriber_id)

    @hookimpl
    async def on_stop(self) -> None:
        await self._jobs.close()

    @hookimpl
    def register_inbound(self) -> Sequence[InboundRule]:
        return self._apps.rules()
