"""Hook implementations: what the plugin declares, and its objects."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgsvc_core.config.settings import SettingsSection
from msgsvc_core.dashboard import Pages
from msgsvc_core.db import MigrationSource, Tx
from msgsvc_core.db.retention import RetentionRule
from msgsvc_core.events import Event
from msgsvc_core.jobs.retention import Retention
from msgsvc_core.kernel.i18n import Title
from msgsvc_core.members import Role
from msgsvc_core.parts import Built
from msgsvc_core.plugins.accounts import AccountSource, FirstAccount
from msgsvc_core.plugins.audit import AuditRecord
from msgsvc_core.plugins.composed import ComposedPlugin
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


@hookimpl
def create_plugin(context: PluginContext) -> "DashboardPlugin":
    return DashboardPlugin(
        context,
        [
            _accounts,
            _sign_in,
            _frame,
            _page_tools,
            _sign_in_pages,
            _overview,
            _team,
            _projects,
            _retention,
        ],
    )


class DashboardPlugin(ComposedPlugin):
    """The objects of the plugin, and its hooks."""

    @hookimpl
    def register_accounts(self) -> AccountSource:
        return self.get(PublishedAccounts)

    @hookimpl
    async def on_events(self, tx: Tx, events: Sequence[Event]) -> None:
        await self.get(Counts).count(tx, events)

    @hookimpl
    async def on_audited(self, tx: Tx, record: AuditRecord) -> None:
        await self.get(Audit).record(tx, record)

    @hookimpl
    async def check_role_change(
        self, tx: Tx, project_id: str, member_id: str, role: Role | None
    ) -> None:
        await self.get(Team).check_by_key(tx, project_id, member_id, role)

    @hookimpl
    async def check_identity_change(self, tx: Tx, project_id: str, member_id: str) -> None:
        await self.get(Team).check_owner_by_key(tx, project_id, member_id)

    @hookimpl
    def register_dashboard(self) -> Sequence[Pages]:
        shown = [gallery.pages] if self.get(AccountSettings).gallery else []
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
            *self.get(InstallationBrand).routes(),
            *look_routes(self.get(PluginContext).channels.kinds.looks),
            *self.get(SignInPages).routes(),
            *self.get(Site).routes(),
        ]


def _accounts(*, context: PluginContext, settings: AccountSettings) -> Built:
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
    messenger_sign_in = MessengerSignIn(
        clock=context.clock, settings=settings, channels=context.channels
    )
    accounts.on_disabled += [account_links.end_of_account, messenger_sign_in.end_waiting]
    published = PublishedAccounts(accounts=accounts)
    team = Team(members=context.members, accounts=accounts, account_links=account_links)
    questions = Questions(
        clock=context.clock,
        secrets=context.secrets,
        base_url=context.config.base_url,
        channels=context.channels,
        accounts=accounts,
        audit=audit,
    )
    return Built(
        provides=[accounts, account_links, audit, messenger_sign_in, published, team, questions],
        inbound=lambda: questions.rules() if messenger_sign_in.is_on else (),
    )


def _sign_in(
    *,
    context: PluginContext,
    settings: AccountSettings,
    accounts: Accounts,
    account_links: AccountLinks,
    messenger_sign_in: MessengerSignIn,
    audit: Audit,
) -> Built:
    """Passwords and second factors."""
    credentials = CredentialStore()
    passwords = Passwords(settings)
    throttle = Throttle(secrets=context.secrets, settings=settings, limiter=context.limiter)
    second_factor = SecondFactor(
        clock=context.clock, secrets=context.secrets, credentials=credentials
    )
    sign_in = SignIn(
        db=context.db,
        accounts=accounts,
        credentials=credentials,
        passwords=passwords,
        second_factor=second_factor,
        tickets=CodeTickets(clock=context.clock, secrets=context.secrets),
        throttle=throttle,
        audit=audit,
    )
    password_changes = PasswordChanges(
        clock=context.clock,
        credentials=credentials,
        passwords=passwords,
        accounts=accounts,
        account_links=account_links,
        messenger_sign_in=messenger_sign_in,
    )
    owner_checks = OwnerChecks(
        db=context.db,
        credentials=credentials,
        passwords=passwords,
        second_factor=second_factor,
        throttle=throttle,
    )
    return Built(provides=[throttle, second_factor, sign_in, password_changes, owner_checks])


def _frame(
    *, context: PluginContext, settings: AccountSettings, accounts: Accounts, audit: Audit
) -> Built:
    """What surrounds every page."""
    gate = Gate(
        clock=context.clock,
        db=context.db,
        secrets=context.secrets,
        texts=context.texts,
        accounts=accounts,
        places=Places(billing=context.billing, projects=context.projects, members=context.members),
        settings=context.config,
        timezone=settings.timezone,
    )
    brand = InstallationBrand(settings, is_quarantined=context.config.quarantine)
    saved_views = SavedViews(clock=context.clock)
    site = Site(
        db=context.db,
        secrets=context.secrets,
        accounts=accounts,
        audit=audit,
        gate=gate,
        find_areas=context.peers.areas,
        brand=brand,
        views=saved_views,
    )
    return Built(provides=[gate, brand, saved_views, site])


def _page_tools(
    *,
    context: PluginContext,
    settings: AccountSettings,
    accounts: Accounts,
    gate: Gate,
    brand: InstallationBrand,
) -> Built:
    cookies = Cookies(base_url=context.config.base_url, session_days=settings.session_days)
    forms = Forms(secrets=context.secrets, cookies=cookies)
    rendering = Rendering(
        texts=context.texts,
        cookies=cookies,
        forms=forms,
        default_lang=context.config.default_lang,
        brand=brand,
    )
    entering = Entering(accounts=accounts, cookies=cookies)
    tools = PageTools(
        gate=gate, cookies=cookies, forms=forms, rendering=rendering, entering=entering
    )
    return Built(provides=[tools])


def _sign_in_pages(
    *,
    context: PluginContext,
    accounts: Accounts,
    account_links: AccountLinks,
    audit: Audit,
    messenger_sign_in: MessengerSignIn,
    password_changes: PasswordChanges,
    sign_in: SignIn,
    team: Team,
    throttle: Throttle,
    tools: PageTools,
) -> Built:
    messengers = MessengerPages(
        db=context.db,
        accounts=accounts,
        sign_in=sign_in,
        messenger_sign_in=messenger_sign_in,
        throttle=throttle,
        tools=tools,
    )
    links = LinkPages(
        db=context.db,
        accounts=accounts,
        account_links=account_links,
        sign_in=sign_in,
        passwords=password_changes,
        invitations=InvitationPages(
            db=context.db,
            projects=context.projects,
            accounts=accounts,
            audit=audit,
            sign_in=sign_in,
            passwords=password_changes,
            team=team,
            tools=tools,
        ),
        tools=tools,
    )
    pages = SignInPages(
        db=context.db,
        channels=context.channels,
        accounts=accounts,
        sign_in=sign_in,
        messenger_sign_in=messenger_sign_in,
        tools=tools,
        messengers=messengers,
        links=links,
    )
    return Built(provides=[pages])


def _overview(*, context: PluginContext, site: Site) -> Built:
    counts = Counts(clock=context.clock, shown=lambda: site.areas)
    fold_job = FoldJob(db=context.db, counts=counts, subscribers=context.subscribers)
    return Built(provides=[counts], jobs=lambda: [fold_job.spec])


def _team(
    *, context: PluginContext, accounts: Accounts, owner_checks: OwnerChecks, site: Site
) -> Built:
    """Re-authentication, and what the audit log shows."""
    reauthentication = Reauthentication(
        clock=context.clock, db=context.db, accounts=accounts, owner_checks=owner_checks
    )
    action_titles = ActionTitles(
        pages=lambda: site.pages,
        endpoints=context.peers.endpoints,
        recorded=context.peers.audited,
    )
    audit_subjects = AuditSubjects(
        pages=lambda: site.pages,
        endpoints=context.peers.endpoints,
        recorded=context.peers.audited,
    )
    return Built(provides=[reauthentication, action_titles, audit_subjects])


def _projects(*, context: PluginContext) -> Built:
    """What the pages of people and of developers ask for."""
    compose_form = ComposeForm(
        templates=context.templates,
        messages=context.messages,
        permissions=context.permissions,
        subscribers=context.subscribers,
        default_lang=context.config.default_lang,
    )
    return Built(provides=[compose_form, KeyAreas(endpoints=context.peers.endpoints)])


def _retention(*, context: PluginContext, settings: AccountSettings) -> Built:
    retention = Retention(
        name="dashboard.purge",
        clock=context.clock,
        rules=[
            RetentionRule("dashboard_audit", "at_ms", settings.audit_days * DAY_MS),
            RetentionRule("dashboard_account_links", "expires_at_ms"),
            RetentionRule("dashboard_account_sessions", "expires_at_ms"),
            RetentionRule("dashboard_account_requests", "expires_at_ms"),
        ],
    )
    return Built(jobs=lambda: [retention.spec])
