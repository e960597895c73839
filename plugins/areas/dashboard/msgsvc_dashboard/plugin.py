"""Hook implementations: what the plugin declares, and its objects."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgsvc_core.channels import InboundRule
from msgsvc_core.config.settings import SettingsSection
from msgsvc_core.dashboard import Pages
from msgsvc_core.db import MigrationSource, Tx
from msgsvc_core.db.retention import RetentionRule
from msgsvc_core.events import Event
from msgsvc_core.jobs import JobSpec
from msgsvc_core.jobs.retention import Retention
from msgsvc_core.kernel.i18n import Title
from msgsvc_core.members import Role
from msgsvc_core.plugins.accounts import AccountSource, FirstAccount
from msgsvc_core.plugins.audit import AuditRecord
from msgsvc_core.plugins.context import PluginContext
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.security.sealed import SealedColumn
from msgsvc_dashboard import developers, gallery, overview, searching
from msgsvc_dashboard.accounts import (
    AccountLinks,
    Accounts,
    Audit,
    CredentialStore,
    MessengerSignIn,
    PasswordChanges,
    SecondFactor,
    SignIn,
    Team,
)
from msgsvc_dashboard.accounts.directory import PublishedAccounts
from msgsvc_dashboard.accounts.first import FIRST_ACCOUNT
from msgsvc_dashboard.accounts.owner_checks import OwnerChecks
from msgsvc_dashboard.accounts.passwords import Passwords
from msgsvc_dashboard.accounts.questions import Questions
from msgsvc_dashboard.accounts.throttle import Throttle
from msgsvc_dashboard.accounts.tickets import CodeTickets
from msgsvc_dashboard.developers.scopes import KeyAreas
from msgsvc_dashboard.frame import Site
from msgsvc_dashboard.frame.branding import InstallationBrand
from msgsvc_dashboard.frame.chat_looks import look_routes
from msgsvc_dashboard.frame.gate import Gate, Places
from msgsvc_dashboard.overview import Counts, FoldJob
from msgsvc_dashboard.people import areas as people
from msgsvc_dashboard.people.composing import ComposeForm
from msgsvc_dashboard.settings import AccountSettings
from msgsvc_dashboard.sign_in import SignInPages
from msgsvc_dashboard.sign_in.cookies import Cookies
from msgsvc_dashboard.sign_in.entering import Entering
from msgsvc_dashboard.sign_in.forms import Forms
from msgsvc_dashboard.sign_in.invitations import InvitationPages
from msgsvc_dashboard.sign_in.links import LinkPages
from msgsvc_dashboard.sign_in.messengers import MessengerPages
from msgsvc_dashboard.sign_in.rendering import Rendering
from msgsvc_dashboard.sign_in.tools import PageTools
from msgsvc_dashboard.team import areas as team
from msgsvc_dashboard.team.actions import RECORDED, ActionTitles
from msgsvc_dashboard.team.reauthentication import Reauthentication
from msgsvc_dashboard.team.subjects import AuditSubjects
from msgsvc_dashboard.views import SavedViews
from msgsvc_dashboard.views import pages as views

HERE = Path(__file__).parent

DAY_MS = 24 * 3600 * 1000


@hookimpl
def register_settings() -> SettingsSection:
    return SettingsSection("dashboard", AccountSettings)


@hookimpl
def register_migrations() -> MigrationSource:
    return MigrationSource("dashboard", HERE / "migrations")


@hookimpl
def register_sealed() -> Sequence[SealedColumn]:
    return [
        SealedColumn(
            table="dashboard_accounts",
            column="totp_secret",
            key=("account_id",),
            bound_to=("account_id",),
            holds="second factors of {count} account(s)",
            if_lost="run `msgsvc account link EMAIL --forget-codes` for each, who then sets up a new one",
        )
    ]


@hookimpl
def register_locale() -> Path:
    return HERE / "locale"


@hookimpl
def register_first_account() -> FirstAccount:
    return FIRST_ACCOUNT


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountParts:
    """The objects that manage accounts; handlers receive each by its type."""

    accounts: Accounts
    account_links: AccountLinks
    audit: Audit
    second_factor: SecondFactor
    messenger_sign_in: MessengerSignIn
    sign_in: SignIn
    password_changes: PasswordChanges
    owner_checks: OwnerChecks
    throttle: Throttle
    team: Team

    def by_type(self) -> dict[type, Any]:
        return {
            Accounts: self.accounts,
            AccountLinks: self.account_links,
            Audit: self.audit,
            SecondFactor: self.second_factor,
            MessengerSignIn: self.messenger_sign_in,
            SignIn: self.sign_in,
            PasswordChanges: self.password_changes,
            Team: self.team,
        }


class DashboardPlugin:
    """The objects of the plugin, and its hooks."""

    def __init__(self, context: PluginContext) -> None:
        settings = context.settings(AccountSettings)
        self.has_gallery = settings.gallery
        self.accounts = _account_parts(context, settings)
        self.published_accounts = PublishedAccounts(accounts=self.accounts.accounts)
        self.questions = Questions(
            clock=context.clock,
            secrets=context.secrets,
            base_url=context.config.base_url,
            channels=context.channels,
            accounts=self.accounts.accounts,
            audit=self.accounts.audit,
        )
        self.retention = Retention(
            name="dashboard.purge",
            clock=context.clock,
            rules=[
                RetentionRule("dashboard_audit", "at_ms", settings.audit_days * DAY_MS),
                RetentionRule("dashboard_account_links", "expires_at_ms"),
                RetentionRule("dashboard_account_sessions", "expires_at_ms"),
                RetentionRule("dashboard_account_requests", "expires_at_ms"),
            ],
        )
        gate = Gate(
            clock=context.clock,
            db=context.db,
            secrets=context.secrets,
            texts=context.texts,
            accounts=self.accounts.accounts,
            places=Places(
                billing=context.billing, projects=context.projects, members=context.members
            ),
            settings=context.config,
            timezone=settings.timezone,
        )
        self.brand = InstallationBrand(settings, is_quarantined=context.config.quarantine)
        self.views = SavedViews(clock=context.clock)
        self.site = Site(
            db=context.db,
            secrets=context.secrets,
            accounts=self.accounts.accounts,
            audit=self.accounts.audit,
            gate=gate,
            find_areas=context.peers.areas,
            brand=self.brand,
            views=self.views,
        )
        self.sign_in_pages = _sign_in_pages(context, settings, self.accounts, gate, self.brand)
        self.counts = Counts(clock=context.clock, shown=lambda: self.site.areas)
        self.fold_job = FoldJob(db=context.db, counts=self.counts, subscribers=context.subscribers)
        self.reauthentication = Reauthentication(
            clock=context.clock,
            db=context.db,
            accounts=self.accounts.accounts,
            owner_checks=self.accounts.owner_checks,
        )
        self.compose_form = ComposeForm(
            templates=context.templates,
            messages=context.messages,
            permissions=context.permissions,
            subscribers=context.subscribers,
            default_lang=context.config.default_lang,
        )
        self.looks = context.channels.kinds.looks
        self.key_areas = KeyAreas(endpoints=context.peers.endpoints)
        self.action_titles = ActionTitles(
            pages=lambda: self.site.pages,
            endpoints=context.peers.endpoints,
            recorded=context.peers.audited,
        )
        self.audit_subjects = AuditSubjects(
            pages=lambda: self.site.pages,
            endpoints=context.peers.endpoints,
            recorded=context.peers.audited,
        )

    @hookimpl
    def register_services(self) -> Mapping[type, Any]:
        return {
            Site: self.site,
            SavedViews: self.views,
            Counts: self.counts,
            Reauthentication: self.reauthentication,
            ComposeForm: self.compose_form,
            KeyAreas: self.key_areas,
            ActionTitles: self.action_titles,
            AuditSubjects: self.audit_subjects,
            **self.accounts.by_type(),
        }

    @hookimpl
    def register_accounts(self) -> AccountSource:
        return self.published_accounts

    @hookimpl
    def register_jobs(self) -> Sequence[JobSpec]:
        return [self.fold_job.spec, self.retention.spec]

    @hookimpl
    def register_inbound(self) -> Sequence[InboundRule]:
        return self.questions.rules() if self.accounts.messenger_sign_in.is_on else []

    @hookimpl
    async def on_events(self, tx: Tx, events: Sequence[Event]) -> None:
        await self.counts.count(tx, events)

    @hookimpl
    async def on_audited(self, tx: Tx, record: AuditRecord) -> None:
        await self.accounts.audit.record(tx, record)

    @hookimpl
    async def check_role_change(
        self, tx: Tx, project_id: str, member_id: str, role: Role | None
    ) -> None:
        await self.accounts.team.check_by_key(tx, project_id, member_id, role)

    @hookimpl
    async def check_identity_change(self, tx: Tx, project_id: str, member_id: str) -> None:
        await self.accounts.team.check_owner_by_key(tx, project_id, member_id)

    @hookimpl
    def register_dashboard(self) -> Sequence[Pages]:
        shown = [gallery.pages] if self.has_gallery else []
        return [
            overview.pages,
            searching.pages,
            developers.pages,
            *people,
            *team,
            views.pages,
            *shown,
        ]

    @hookimpl
    def register_audited(self) -> Mapping[str, Title]:
        return RECORDED

    @hookimpl
    def register_pages(self) -> Sequence[Any]:
        return [
            *self.brand.routes(),
            *look_routes(self.looks),
            *self.sign_in_pages.routes(),
            *self.site.routes(),
        ]


@hookimpl
def create_plugin(context: PluginContext) -> DashboardPlugin:
    return DashboardPlugin(context)


def _account_parts(context: PluginContext, settings: AccountSettings) -> AccountParts:
    accounts = Accounts(
        clock=context.clock,
        db=context.db,
        session_days=settings.session_days,
        projects=context.projects,
        members=context.members,
        billing=context.billing,
    )
    account_links = AccountLinks(
        clock=context.clock, base_url=context.config.base_url, accounts=accounts
    )
    audit = Audit(clock=context.clock)
    credentials = CredentialStore()
    passwords = Passwords(settings)
    throttle = Throttle(secrets=context.secrets, settings=settings, limiter=context.limiter)
    second_factor = SecondFactor(
        clock=context.clock, secrets=context.secrets, credentials=credentials
    )
    messenger_sign_in = MessengerSignIn(
        clock=context.clock, settings=settings, channels=context.channels
    )
    accounts.on_disabled += [account_links.end_of_account, messenger_sign_in.end_waiting]
    return AccountParts(
        accounts=accounts,
        account_links=account_links,
        audit=audit,
        second_factor=second_factor,
        messenger_sign_in=messenger_sign_in,
        sign_in=SignIn(
            db=context.db,
            accounts=accounts,
            credentials=credentials,
            passwords=passwords,
            second_factor=second_factor,
            tickets=CodeTickets(clock=context.clock, secrets=context.secrets),
            throttle=throttle,
            audit=audit,
        ),
        password_changes=PasswordChanges(
            clock=context.clock,
            credentials=credentials,
            passwords=passwords,
            accounts=accounts,
            account_links=account_links,
            messenger_sign_in=messenger_sign_in,
        ),
        owner_checks=OwnerChecks(
            db=context.db,
            credentials=credentials,
            passwords=passwords,
            second_factor=second_factor,
            throttle=throttle,
        ),
        throttle=throttle,
        team=Team(members=context.members, accounts=accounts, account_links=account_links),
    )


def _sign_in_pages(
    context: PluginContext,
    settings: AccountSettings,
    parts: AccountParts,
    gate: Gate,
    brand: InstallationBrand,
) -> SignInPages:
    cookies = Cookies(base_url=context.config.base_url, session_days=settings.session_days)
    forms = Forms(secrets=context.secrets, cookies=cookies)
    rendering = Rendering(
        texts=context.texts,
        cookies=cookies,
        forms=forms,
        default_lang=context.config.default_lang,
        brand=brand,
    )
    entering = Entering(accounts=parts.accounts, cookies=cookies)
    tools = PageTools(
        gate=gate, cookies=cookies, forms=forms, rendering=rendering, entering=entering
    )
    messengers = MessengerPages(
        db=context.db,
        accounts=parts.accounts,
        sign_in=parts.sign_in,
        messenger_sign_in=parts.messenger_sign_in,
        throttle=parts.throttle,
        tools=tools,
    )
    links = LinkPages(
        db=context.db,
        accounts=parts.accounts,
        account_links=parts.account_links,
        sign_in=parts.sign_in,
        passwords=parts.password_changes,
        invitations=InvitationPages(
            db=context.db,
            projects=context.projects,
            accounts=parts.accounts,
            audit=parts.audit,
            sign_in=parts.sign_in,
            passwords=parts.password_changes,
            team=parts.team,
            tools=tools,
        ),
        tools=tools,
    )
    return SignInPages(
        db=context.db,
        channels=context.channels,
        accounts=parts.accounts,
        sign_in=parts.sign_in,
        messenger_sign_in=parts.messenger_sign_in,
        tools=tools,
        messengers=messengers,
        links=links,
    )
