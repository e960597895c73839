"""Every extension point of the system, in one file.

`register_*` hooks are called once for each `Service`, before it starts, and return declarations. `on_*`
hooks observe. A hook is plain (called and done) or async (its coroutine is awaited, plugin by plugin, in
the order of the setting `plugins`); the docstring says which. An implementation may omit arguments that it
does not need, and an empty result means "nothing to add".
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
    from msgsvc_core.events.contract import Event, EventSpec
    from msgsvc_core.files import StoredFile
    from msgsvc_core.jobs.contract import JobSpec, LaneSpec
    from msgsvc_core.kernel.errors import ApiError
    from msgsvc_core.mailings.models import Mailing
    from msgsvc_core.members.models import Member, Role
    from msgsvc_core.plugins.accounts import AccountSource, FirstAccount
    from msgsvc_core.plugins.advice import Finding
    from msgsvc_core.plugins.audit import AuditRecord
    from msgsvc_core.plugins.context import PluginContext
    from msgsvc_core.plugins.tickets import TicketRequest
    from msgsvc_core.security.sealed import SealedColumn

PROJECT = "msgsvc"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


class HookSpecs:
    """The hooks: first declarations, then observers.

    Specifications are never called, only their implementations; so none has a body, and mypy is configured
    accordingly (`empty-body`).
    """

    # ---- what a plugin declares -----------------------------------------------------------------

    @hookspec
    def register_settings(self) -> "SettingsSection":
        """A section of the configuration, e.g. `[auth]`, as a name and a pydantic model. Plain."""

    @hookspec
    def register_errors(self) -> "Sequence[type[ApiError]]":
        """Error codes that the plugin's endpoints answer with, beside the core's. Plain."""

    @hookspec
    def register_events(self) -> "Sequence[EventSpec]":
        """Events that the plugin emits. Emitting one that is not declared is an error. Plain."""

    @hookspec
    def register_migrations(self) -> "MigrationSource":
        """The owner's name, which prefixes its tables, and the folder of its Alembic scripts. Plain."""

    @hookspec
    def register_sealed(self) -> "Sequence[SealedColumn]":
        """Columns of the plugin's tables with long-lived values of `SecretBox.encrypt`. Plain.

        The plugin re-encrypts them after a key rotation, see `SecretBox.renewed`; `msgsvc doctor`
        counts values under an older key, which must be kept until then.
        """

    @hookspec
    def register_locale(self) -> Path:
        """The folder with `<language>/LC_MESSAGES/messages.po` of the plugin's texts. Plain.

        They are a domain of their own: `service.texts.into(lang, __name__)`, `page._`, `ctx._` and templates
        look up the texts of the package that speaks, then the core's, and no other plugin's.
        """

    @hookspec(firstresult=True)
    def register_first_account(self) -> "FirstAccount":
        """How `msgsvc init` makes the account of whoever runs the installation. Plain.

        For the plugin that keeps accounts, and of its module: it is asked before there is a `Service`.
        """

    @hookspec
    def review_settings(self, settings: "Settings") -> "Sequence[Finding]":
        """What an operator should know of the settings: `msgsvc doctor` and `msgsvc serve` say it. Plain.

        A function of the plugin's module: it is asked before there is a `Service`. The plugin's section is
        in `settings.model_extra` as it is written, and may be invalid.
        """

    @hookspec
    def register_channel_kinds(self) -> "Sequence[ChannelKind]":
        """Kinds of messenger that `[channels.<name>] plugin = "<kind>"` can name. Plain."""

    @hookspec
    def create_plugin(self, context: "PluginContext") -> object:
        """The plugin's one object, built from parts of the core. Plain.

        Called when the core's parts exist but are not started. The object's own methods that are marked
        `@hookimpl` implement the hooks below: they need no `service`, as they have what they use.
        """

    @hookspec
    def register_services(self) -> Mapping[type, Any]:
        """Objects by their type, which handlers of endpoints and pages ask for by it. Plain.

        Called when the core's parts exist but are not started.
        """

    @hookspec(firstresult=True)
    def register_accounts(self) -> "AccountSource":
        """The accounts that own projects, for the core and other plugins (`service.accounts`). Plain.

        One plugin that has this hook is asked, and no other; without one there are no accounts.
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
        """Starlette routes outside the JSON API: pages, pictures, static files. Plain.

        `/` leads to the first route whose `name` is `home`, and to `/docs` where there is none.
        """

    @hookspec
    def register_dashboard(self) -> "Sequence[Pages]":
        """Pages of the dashboard, and parts of its overview. Plain; after `register_services`.

        Asked for when the dashboard is there to show them.
        """

    @hookspec
    def register_inbound(self) -> "Sequence[InboundRule]":
        """What the plugin does with updates: start payloads, buttons, commands, texts. Plain."""

    # ---- what a plugin observes -----------------------------------------------------------------

    @hookspec
    async def on_start(self) -> None:
        """The service is about to take requests; the database is migrated. Async."""

    @hookspec
    def on_stopping(self) -> None:
        """The server is shutting down and waits for open requests: end those that wait for something to
        happen, with the current state as the response. Plain; may be called twice."""

    @hookspec
    async def on_stop(self) -> None:
        """The service takes no more requests and runs no more jobs. Async."""

    @hookspec
    async def on_events(self, tx: "Tx", events: "Sequence[Event]") -> None:
        """Events were emitted, in the transaction of their cause. Async.

        A batch of deliveries brings hundreds of events, of several projects: query and write for all of
        them together. Write rows and enqueue jobs in `tx`; an exception undoes the cause, so avoid raising.
        """

    @hookspec
    async def on_mailing_ended(self, tx: "Tx", mailing: "Mailing") -> None:
        """A mailing was completed or cancelled, in the transaction that says so, once. Async.

        `mailing.source` says whose it is; its counts are final.
        """

    @hookspec
    async def on_tags_added(
        self,
        tx: "Tx",
        project_id: str,
        subscriber_id: str,
        tags: Sequence[str],
    ) -> None:
        """A subscriber got new tags, in that transaction. Async.

        By the API or by a link; renaming a tag is not an addition. It is not an event, because events do
        not report a project's own actions.
        """

    @hookspec
    async def on_member_changed(self, tx: "Tx", before: "Member", after: "Member | None") -> None:
        """A member of a project was changed, in that transaction. Async.

        Name, email, role, messenger accounts, or removal: then `after.status` says so, and `after` is None
        for an erased member. The member is locked until the transaction ends.
        """

    @hookspec
    async def check_role_change(
        self, tx: "Tx", project_id: str, member_id: str, role: "Role | None"
    ) -> None:
        """An API key is about to give a member a role, or to remove them (None). Async.

        Raise `Conflict` to refuse it: admins make keys, and could make themselves owners by one.
        """

    @hookspec
    async def check_identity_change(self, tx: "Tx", project_id: str, member_id: str) -> None:
        """An API key is about to change a member's name or email, or to link a messenger. Async.

        Raise `Conflict` to refuse it.
        """

    @hookspec
    async def on_audited(self, tx: "Tx", record: "AuditRecord") -> None:
        """Something was changed by the API or the command line that belongs in an audit log. Async.

        In the transaction of the change. Requests are recorded whose endpoint is declared `audited`.
        """

    @hookspec
    async def charge(self, tx: "Tx", charge: "Charge") -> None:
        """A paid operation takes place, in its transaction. Async.

        Keep one row per (operation, resource), so that nothing is charged twice. Raise `BillingBlocked` to
        refuse it; not where `charge.refusable` is False, e.g. for a person's Yes in a bot.

        A broadcast is `broadcast.message` with all its recipients as `quantity` when it is accepted, and
        when it has ended `broadcast.settlement` with the difference to the delivered number, if any.
        """

    @hookspec
    async def check_operation(self, project_id: str, operation: str, tx: "Tx | None") -> None:
        """A paid operation is about to be taken that is charged later, or not at all. Async.

        `message.sent` comes many thousand times a second and without a `tx`: answer from what you
        remember. With `tx`, ask there: a transaction must not wait for another connection. Raise
        `BillingBlocked` to refuse it.
        """

    @hookspec(firstresult=True)
    async def quote(self, tx: "Tx", project_id: str, operation: str) -> int:
        """What one of a paid operation costs a project now, in credits. Async.

        One plugin that has this hook is asked, and no other; without one nothing costs anything.
        """

    @hookspec(firstresult=True)
    async def decide_plan(self, tx: "Tx", account_id: str) -> "Plan":
        """What an account may do by what it pays for. Async.

        One plugin that has this hook is asked, and no other; without one everybody may do everything.
        """

    @hookspec(firstresult=True)
    async def open_ticket(self, tx: "Tx", request: "TicketRequest") -> str:
        """Opens a ticket in the transaction of what asks for it, and returns its id. Async.

        One plugin that has this hook is asked, and no other. Raises `ApiError` where the project
        can't have one now, e.g. because it is not paid for.
        """

    @hookspec
    async def forget_source(self, tx: "Tx", project_id: str, source: str, source_id: str) -> None:
        """What a ticket was opened for was deleted: take out what you copied of it. Async.

        `source` and `source_id` are those of `TicketRequest`, e.g. `form` and the id of a submission.
        In a transaction; it may be asked for again.
        """

    @hookspec
    async def on_file_fetched(self, tx: "Tx", file: "StoredFile") -> None:
        """A file that a person sent is here, or will not come, in the transaction that says so. Async.

        `file.status` is `ready`, or `failed` with `file.reason`; called once for each file that
        `service.files.receive` noted as pending. Keep it (`service.files.retain`) if you refer to it.
        """

    @hookspec
    async def erase_subscriber(self, project_id: str, subscriber_id: str) -> None:
        """Erase what you keep of a person, including answers and copies of events. Async.

        Called by a job, outside a transaction, after the person was deleted from the core's tables; called
        again if any plugin fails, so it must be idempotent.
        """

    @hookspec
    async def on_channel_stopped(
        self, tx: "Tx", channel: "Channel", reason: str, detail: str
    ) -> None:
        """A bot was banned or revoked, and makes no more calls. Async; in that transaction.

        `reason` is for programs, e.g. `bot_banned`, `detail` is the platform's text. Notify the person in
        charge by a job: for a shared channel that is the operator, and there is no event.
        """

    @hookspec
    async def on_channel_recovered(self, tx: "Tx", channel: "Channel") -> None:
        """A bot that was stopped works again, or its platform answers again. Async; in the transaction that
        says so."""

    @hookspec
    async def on_channel_unavailable(self, tx: "Tx", channel: "Channel", detail: str) -> None:
        """The platform of a channel is down. Async; in that transaction.

        Queued messages wait, the platform is probed, and `on_channel_recovered` reports the recovery.
        `detail` is the error of the last call.
        """
