"""Every extension point of the system, in one file.

`register_*` hooks are called once for each `Service`, before it starts, and return declarations. `on_*` hooks
observe. A hook is plain (a synchronous function) or async (its coroutine is awaited, plugin by plugin, in the
order of the setting `plugins`); the docstring says which. An implementation may omit arguments that it does
not need. An empty result means "nothing to add".
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from msgsvc_core.api.endpoint import Endpoint
    from msgsvc_core.billing import Charge, Plan
    from msgsvc_core.channels.contract import Channel
    from msgsvc_core.channels.inbound import InboundRule
    from msgsvc_core.channels.kinds import ChannelKind
    from msgsvc_core.config.settings import Settings, SettingsSection
    from msgsvc_core.dashboard import Pages
    from msgsvc_core.db import MigrationSource, Tx
    from msgsvc_core.db.personal_data import PersonalData
    from msgsvc_core.events.contract import Event, EventSpec
    from msgsvc_core.files import StoredFile
    from msgsvc_core.jobs.contract import JobSpec, LaneSpec
    from msgsvc_core.kernel.errors import ApiError
    from msgsvc_core.kernel.i18n import Title
    from msgsvc_core.mailings.models import Mailing
    from msgsvc_core.members.models import Member, Role
    from msgsvc_core.plugins.accounts import AccountSource, FirstAccount
    from msgsvc_core.plugins.advice import Finding
    from msgsvc_core.plugins.audit import AuditRecord
    from msgsvc_core.plugins.context import PluginContext
    from msgsvc_core.plugins.planned import PlannedMessages
    from msgsvc_core.plugins.sign_ins import SignInSource
    from msgsvc_core.plugins.tickets import TicketRequest
    from msgsvc_core.security.sealed import SealedColumn
    from msgsvc_core.telemetry.explanations import Explainer

PROJECT = "msgsvc"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


class HookSpecs:
    """The hooks: first declarations, then observers.

    Only implementations are called, never these specifications, so none has a body; mypy is configured
    accordingly (`empty-body`).
    """

    # ---- declarations ---------------------------------------------------------------------------

    @hookspec
    def register_settings(self) -> "SettingsSection":
        """A section of the configuration, e.g. `[auth]`, as a name and a pydantic model. Plain."""

    @hookspec
    def register_errors(self) -> "Sequence[type[ApiError]]":
        """Error codes of the plugin's endpoints, in addition to the core's. Plain."""

    @hookspec
    def register_events(self) -> "Sequence[EventSpec]":
        """Events that the plugin emits. Emitting one that is not declared is an error. Plain."""

    @hookspec
    def register_migrations(self) -> "MigrationSource":
        """The owner's name, which prefixes its tables, and the folder of its Alembic scripts. Plain."""

    @hookspec
    def register_sealed(self) -> "Sequence[SealedColumn]":
        """Columns of the plugin's tables with values of `SecretBox.encrypt`. Plain.

        After a rotation of `secret_keys` the core re-encrypts them, within an hour or by `msgsvc secrets
        rotate`; `msgsvc doctor` counts values under an older key, which must be kept until then, and says
        what is lost with a key.
        """

    @hookspec
    def register_personal_data(self) -> "Sequence[PersonalData]":
        """What the plugin's tables store about a subscriber, for `GET /v1/people/export`. Plain.

        Declare every table with a subscriber's id: a `PersonalTable` with the columns that the person gets to
        see, never codes, secrets and their hashes; or `NotExported` with the reason. What is encrypted can't
        be declared. An empty answer means that the plugin stores nothing about people.
        """

    @hookspec
    def register_locale(self) -> Path:
        """The folder with `<language>/LC_MESSAGES/messages.po` of the plugin's texts. Plain.

        Each package has its own translation domain: `service.texts.into(lang, __name__)`, `page._`, `ctx._`
        and templates look a text up in their own package, then in the core, and in no other plugin.
        """

    @hookspec(firstresult=True)
    def register_first_account(self) -> "FirstAccount":
        """How `msgsvc init` creates the operator's account. Plain.

        For the plugin that provides accounts. Implement it as a function of the plugin's module: it is called
        before there is a `Service`.
        """

    @hookspec
    def review_settings(self, settings: "Settings") -> "Sequence[Finding]":
        """Findings about the settings, which `msgsvc doctor` and `msgsvc serve` report. Plain.

        Implement it as a function of the plugin's module: it is called before there is a `Service`. The
        plugin's section is in `settings.model_extra` as written in the file, and may be invalid.
        """

    @hookspec
    def register_channel_kinds(self) -> "Sequence[ChannelKind]":
        """Kinds of messenger that `[channels.<name>] plugin = "<kind>"` can name. Plain."""

    @hookspec
    def create_plugin(self, context: "PluginContext") -> object:
        """The plugin's object, built from parts of the core. Plain.

        Called when the core's parts exist but are not started. The object's methods that are marked
        `@hookimpl` implement the hooks below. They take no `service`: the object has the parts it uses.
        """

    @hookspec
    def register_services(self) -> Mapping[type, Any]:
        """Objects that handlers of endpoints and pages receive by their type. Plain.

        Called when the core's parts exist but are not started.
        """

    @hookspec(firstresult=True)
    def register_accounts(self) -> "AccountSource":
        """The accounts that own projects, for the core and other plugins (`service.accounts`). Plain.

        Only one plugin with this hook is used. Without one there are no accounts.
        """

    @hookspec(firstresult=True)
    def register_sign_ins(self) -> "SignInSource":
        """Sign-ins that other plugins start, on a hosted page or by a question in the messenger. Plain.

        Only one plugin with this hook is used. Without one no plugin can have people signed in.
        """

    @hookspec
    async def on_sign_in_denied(
        self, tx: "Tx", project_id: str, source: str, source_id: str
    ) -> None:
        """The person pressed Cancel, or a wrong number, in their messenger. Async; in the transaction that
        ends the sign-in.

        `source` and `source_id` are those of `PageSignIn` or `DirectSignIn`. The plugin with the hook
        `register_sign_ins` calls it, more than once if somebody starts again on the same page.
        """

    @hookspec
    def register_lanes(self) -> "Sequence[LaneSpec]":
        """Prefixes of job lanes, with their concurrency. Plain."""

    @hookspec
    def register_jobs(self) -> "Sequence[JobSpec]":
        """Kinds of jobs and their handlers. Plain; called after `register_services`."""

    @hookspec
    def register_endpoints(self) -> "Sequence[Endpoint]":
        """Endpoints of the JSON API, typed and documented. Plain; after `register_services`."""

    @hookspec
    def register_pages(self) -> Sequence[Any]:
        """Starlette routes outside the JSON API: pages, images, static files. Plain.

        `/` redirects to the first route whose `name` is `home`, or to `/docs` if there is none.
        """

    @hookspec
    def register_dashboard(self) -> "Sequence[Pages]":
        """Pages of the dashboard, and parts of its overview. Plain; after `register_services`.

        Called only if a dashboard plugin is loaded.
        """

    @hookspec
    def register_audited(self) -> "Mapping[str, Title]":
        """Titles of the changes that the plugin records by `service.audit`, e.g. in a command, by action.
        Pages and endpoints declare theirs. Plain; after `register_services`."""

    @hookspec
    def register_explainers(self) -> "Sequence[Explainer]":
        """What `msgsvc explain` can explain, by the prefix of its ids. Plain; after `register_services`."""

    @hookspec
    def register_planned_messages(self) -> "Sequence[PlannedMessages]":
        """What is sent at times in the plugin's own tables, for `msgsvc outbox`. Plain; after
        `register_services`."""

    @hookspec
    def register_inbound(self) -> "Sequence[InboundRule]":
        """Handlers of inbound updates: start payloads, buttons, commands, texts. Plain.

        If a handler raises, its transaction is rolled back, and the update goes to the channel's shelf. From
        there an operator can have it processed again, up to `limits.shelf_days` later, so calls that a
        handler makes outside its transaction may happen twice.
        """

    # ---- observers ------------------------------------------------------------------------------

    @hookspec
    async def on_start(self) -> None:
        """The service is about to accept requests; the database is migrated. Async."""

    @hookspec
    def on_stopping(self) -> None:
        """The server is shutting down and waits for open requests. End long polls now, with the current
        state as the response. Plain; may be called twice."""

    @hookspec
    async def on_stop(self) -> None:
        """The service no longer accepts requests or runs jobs. Async."""

    @hookspec
    async def on_events(self, tx: "Tx", events: "Sequence[Event]") -> None:
        """Events were emitted, in the transaction of their cause. Async.

        A batch of deliveries emits hundreds of events, of several projects: query and write for all of them
        together. Write rows and enqueue jobs in `tx`. An exception rolls back the cause, so avoid raising.
        """

    @hookspec
    async def on_mailing_ended(self, tx: "Tx", mailing: "Mailing") -> None:
        """A mailing was completed or cancelled. Async; called once, in the transaction that records it.

        `mailing.source` identifies the plugin that started it. Its counts are final.
        """

    @hookspec
    async def on_mailing_tested(self, tx: "Tx", mailing: "Mailing") -> None:
        """All recipients of the variants of a mailing have an outcome, and the rest waits for the winner.
        Async; called once, in the transaction that records it.

        The plugin that started it, `mailing.source`, calls `Mailings.choose` now or later.
        """

    @hookspec
    async def on_tags_added(
        self,
        tx: "Tx",
        project_id: str,
        subscriber_id: str,
        tags: Sequence[str],
    ) -> None:
        """A subscriber got new tags. Async; in the same transaction.

        Added by the API or by a link; renaming a tag is not an addition. There is no event for it, because
        events do not report a project's own actions.
        """

    @hookspec
    async def on_member_changed(self, tx: "Tx", before: "Member", after: "Member | None") -> None:
        """A member of a project was changed. Async; in the same transaction.

        Name, email, role, messenger accounts, or removal: then `after.status` says so, and `after` is None
        for an erased member. The member is locked until the transaction ends.
        """

    @hookspec
    async def check_role_change(
        self, tx: "Tx", project_id: str, member_id: str, role: "Role | None"
    ) -> None:
        """An API key is about to give a member a role, or to remove them (None). Async.

        Raise `Conflict` to refuse it: admins create keys, and could use one to make themselves owners.
        """

    @hookspec
    async def check_identity_change(self, tx: "Tx", project_id: str, member_id: str) -> None:
        """An API key is about to change a member's name or email, or to link a messenger. Async.

        Raise `Conflict` to refuse it.
        """

    @hookspec
    async def on_audited(self, tx: "Tx", record: "AuditRecord") -> None:
        """A change that belongs in an audit log was made by the API or the command line. Async.

        Called in the transaction of the change. Requests are recorded if their endpoint is declared
        `audited`.
        """

    @hookspec
    async def charge(self, tx: "Tx", charge: "Charge") -> None:
        """A paid operation takes place. Async; in its transaction.

        Store one row per (operation, resource), so that nothing is charged twice. Raise `BillingBlocked` to
        refuse it, unless `charge.refusable` is False, e.g. when a user presses Yes in a bot.

        A broadcast is charged as `broadcast.message`, with all its recipients as `quantity`, when it is
        accepted. When it has ended, `broadcast.settlement` has the difference to the delivered number, if
        any.
        """

    @hookspec
    async def check_operation(self, project_id: str, operation: str, tx: "Tx | None") -> None:
        """Whether a project may use a paid operation that is charged later, or not at all. Async.

        `message.sent` is checked many thousand times a second, without a `tx`: respond from memory. With a
        `tx`, query in it: a transaction must not wait for another connection. Raise `BillingBlocked` to
        refuse the operation.
        """

    @hookspec(firstresult=True)
    async def quote(self, tx: "Tx", project_id: str, operation: str) -> int:
        """The current price of one unit of a paid operation for a project, in credits. Async.

        Only one plugin with this hook is used. Without one, all operations are free.
        """

    @hookspec(firstresult=True)
    async def decide_plan(self, tx: "Tx", account_id: str) -> "Plan":
        """The limits of an account's plan. Async.

        Only one plugin with this hook is used. Without one, accounts have no limits.
        """

    @hookspec(firstresult=True)
    async def open_ticket(self, tx: "Tx", request: "TicketRequest") -> str:
        """Opens a ticket in the caller's transaction, and returns its id. Async.

        Only one plugin with this hook is used. Raises `ApiError` if the project can't have a ticket now, e.g.
        because its plan does not include it.
        """

    @hookspec
    async def forget_source(self, tx: "Tx", project_id: str, source: str, source_id: str) -> None:
        """The source of a ticket was deleted: delete the data that the ticket copied from it. Async.

        `source` and `source_id` are those of `TicketRequest`, e.g. `form` and the id of a submission. Called
        in a transaction, possibly more than once.
        """

    @hookspec
    async def on_file_fetched(self, tx: "Tx", file: "StoredFile") -> None:
        """A file that a user sent was fetched, or can't be. Async; in the transaction that records it.

        `file.status` is `ready`, or `failed` with `file.reason`. Called once for each file that
        `service.files.receive` recorded as pending. Keep the file (`service.files.retain`) if you refer to
        it.
        """

    @hookspec
    async def erase_subscriber(self, project_id: str, subscriber_id: str) -> None:
        """Erase all data of a subscriber, including answers and copies of events. Async.

        Called by a job, outside a transaction, after the subscriber was deleted from the core's tables.
        Called again if any plugin fails, so it must be idempotent.
        """

    @hookspec
    async def on_channel_stopped(
        self, tx: "Tx", channel: "Channel", reason: str, detail: str
    ) -> None:
        """A bot was banned or its token revoked; it makes no more calls. Async; in the same transaction.

        `reason` is for programs, e.g. `bot_banned`; `detail` is the platform's text. Notify the person in
        charge from a job: for a shared channel that is the operator, and there is no event.
        """

    @hookspec
    async def on_channel_recovered(self, tx: "Tx", channel: "Channel") -> None:
        """A stopped bot works again, or its platform is available again. Async; in the transaction that
        records it."""

    @hookspec
    async def on_channel_unavailable(self, tx: "Tx", channel: "Channel", detail: str) -> None:
        """The platform of a channel is unavailable. Async; in the same transaction.

        Queued messages wait, the platform is probed, and `on_channel_recovered` reports the recovery.
        `detail` is the error of the last call.
        """
