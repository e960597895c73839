"""The core's parts, what they declare together, and how parts of one layer are connected."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

from pluggy import HookRelay, PluginManager

from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.billing import BillingGate, Plan
from msgsvc_core.bulk_actions.part import PART as BULK_ACTIONS
from msgsvc_core.channels import Channels
from msgsvc_core.channels.part import PART as CHANNELS
from msgsvc_core.config.sections import Section, limit_titles, raised_limits
from msgsvc_core.config.settings import Settings
from msgsvc_core.dashboard.part import PART as DASHBOARD
from msgsvc_core.db import Database, Row, Tx
from msgsvc_core.db.retention import RetentionRule
from msgsvc_core.events import Events, EventSpec
from msgsvc_core.events.part import PART as EVENTS
from msgsvc_core.files.part import PART as FILES
from msgsvc_core.http.part import PART as HTTP
from msgsvc_core.jobs import JobContext, JobQueue, JobSpec, LaneSpec
from msgsvc_core.jobs.partitioning import Partitioning
from msgsvc_core.jobs.resealing import Resealing
from msgsvc_core.jobs.retention import Retention
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import CORE_ERRORS, ErrorCatalogue
from msgsvc_core.kernel.hooks import await_in_order, flatten, in_order
from msgsvc_core.kernel.i18n import CORE, Texts
from msgsvc_core.kernel.providers import Providers
from msgsvc_core.limits import Limiter
from msgsvc_core.limits.stored import RETENTION as LIMIT_HITS
from msgsvc_core.mailings.part import PART as MAILINGS
from msgsvc_core.members.part import PART as MEMBERS
from msgsvc_core.members.quota import MemberQuota
from msgsvc_core.messages.part import PART as MESSAGES
from msgsvc_core.messages.retention import MessagePurge
from msgsvc_core.parts import Built, Declarations, Part
from msgsvc_core.plugins.accounts import AccountDirectory
from msgsvc_core.plugins.loading import package, unloaded_events
from msgsvc_core.plugins.part import PART as PLUGINS
from msgsvc_core.projects import Projects
from msgsvc_core.projects.overview import ProjectOverview
from msgsvc_core.projects.part import PART as PROJECTS
from msgsvc_core.routing.part import PART as ROUTING
from msgsvc_core.security import SecretBox, key_canary
from msgsvc_core.subscribers.part import PART as SUBSCRIBERS
from msgsvc_core.telemetry import Metrics
from msgsvc_core.telemetry.database_metrics import DatabaseMetrics

CORE_LOCALE = Path(__file__).parent / "locale"


def new_metrics(
    *,
    settings: Settings,
    clock: Clock,
    db: Database,
    jobs: JobQueue,
    limiter: Limiter,
    job_specs: Callable[[], Sequence[JobSpec]],
    lane_specs: Callable[[], Sequence[LaneSpec]],
) -> Metrics:
    """The metrics of a process, which builders of parts ask for."""

    async def count_jobs(tx: Tx, now_ms: int) -> list[Row]:
        return await jobs.count_by_lane(tx, now_ms, [spec.name for spec in job_specs()])

    return Metrics(
        channels=settings.channels,
        database=DatabaseMetrics(
            db=db,
            clock=clock,
            count_jobs=count_jobs,
            count_runners=jobs.count_runners,
            lane_prefixes=lambda: [spec.prefix for spec in lane_specs()],
            check_redis=limiter.check,
        ),
        dialect=db.dialect,
        is_quarantined=settings.quarantine,
    )


def _texts(*, settings: Settings, hook: HookRelay) -> Built:
    of_plugins = [
        (package(each.plugin), cast("Path", each.function()))
        for each in hook.register_locale.get_hookimpls()
    ]
    texts = Texts(
        [(CORE, CORE_LOCALE), *of_plugins],
        settings.default_lang,
        settings.languages,
        settings.locale_dir,
    )
    errors = ErrorCatalogue([*CORE_ERRORS, *flatten(hook.register_errors())])
    return Built(provides=[texts, errors])


def _events(*, clock: Clock, metrics: Metrics, hook: HookRelay, plugins: PluginManager) -> Built:
    events = Events(
        clock=clock,
        specs=[*CORE_EVENTS, *flatten(hook.register_events())],
        observe=in_order(hook.on_events),
        count=metrics.count_events,
        find_unloaded=lambda: unloaded_events([name for name, _ in plugins.list_name_plugin()]),
    )
    return Built(provides=[events])


def _partitioning(*, clock: Clock, db: Database, settings: Settings, metrics: Metrics) -> Built:
    partitioning = Partitioning(
        clock=clock,
        db=db,
        min_mib=settings.database_partition_mib,
        metrics=metrics.partitions,
    )
    return Built(provides=[partitioning])


def _billing(*, db: Database, hook: HookRelay, projects: Projects) -> Built:
    async def quote(tx: Tx, project_id: str, operation: str) -> int:
        pricing = hook.quote(tx=tx, project_id=project_id, operation=operation)
        return 0 if pricing is None else int(await pricing)

    async def decide_plan(tx: Tx, account_id: str) -> Plan | None:
        deciding = hook.decide_plan(tx=tx, account_id=account_id)
        return None if deciding is None else await deciding

    billing = BillingGate(
        db=db,
        charge=in_order(hook.charge),
        check=in_order(hook.check_operation),
        quote=quote,
        owner_of=projects.owner_of,
        decide_plan=decide_plan,
    )
    return Built(provides=[billing])


def _quota(*, projects: Projects, billing: BillingGate, accounts: AccountDirectory) -> Built:
    async def email_of(tx: Tx, account_id: str) -> str | None:
        account = (await accounts.find_many(tx, [account_id])).get(account_id)
        return None if account is None else account.email

    quota = MemberQuota(
        owner_of=projects.owner_of, plan_of=billing.plan_of_account, email_of=email_of
    )
    return Built(provides=[quota])


def _overview(
    *,
    settings: Settings,
    sections: dict[str, Section],
    projects: Projects,
    billing: BillingGate,
    channels: Channels,
) -> Built:
    overview = ProjectOverview(
        projects=projects,
        limits=settings.limits,
        limits_of_plugins=raised_limits(sections),
        limit_titles=limit_titles(sections),
        plan_of=billing.plan_of,
        channels_of=channels.list_for_project,
    )
    return Built(provides=[overview])


def _housekeeping(
    *,
    clock: Clock,
    secrets: SecretBox,
    settings: Settings,
    jobs: JobQueue,
    partitioning: Partitioning,
    declared: Declarations,
    messages: MessagePurge,
) -> Built:
    retention = Retention(
        name="core.purge",
        clock=clock,
        rules=retention_rules(settings),
        partitioning=partitioning,
        # Last: what is deleted before it has become free.
        purges=[messages.purge, lambda ctx: ctx.shrink_file()],
    )
    resealing = Resealing(
        secrets=secrets, columns=declared.sealed, runners_without_key=jobs.runners_without_key
    )
    return Built(provides=[retention, resealing], jobs=lambda: [retention.spec, resealing.spec])


#: What connects parts that don't import each other, and tables of the layers below the parts.
CONNECTIONS = Part(
    build=[_texts, _events, _partitioning, _billing, _quota, _overview, _housekeeping],
    sealed=[key_canary.SEALED],
    retention=lambda _limits: [LIMIT_HITS],
)

#: In the order of the API's documentation.
CORE_PARTS = (
    PROJECTS,
    CHANNELS,
    SUBSCRIBERS,
    MESSAGES,
    MAILINGS,
    ROUTING,
    FILES,
    EVENTS,
    MEMBERS,
    BULK_ACTIONS,
    DASHBOARD,
    HTTP,
    PLUGINS,
    CONNECTIONS,
)

CORE_ENDPOINTS: Sequence[Endpoint] = [each for part in CORE_PARTS for each in part.endpoints]
CORE_EVENTS: Sequence[EventSpec] = [each for part in CORE_PARTS for each in part.events]
CORE_SEALED = [each for part in CORE_PARTS for each in part.sealed]

#: Columns that a copy of the database leaves out, with the reason.
CORE_NOT_COPIED = {name: why for part in CORE_PARTS for name, why in part.not_copied.items()}


def retention_rules(settings: Settings) -> list[RetentionRule]:
    """How long rows of the core's tables are kept."""
    return [rule for part in CORE_PARTS for rule in part.retention(settings.limits)]


def declarations(hook: HookRelay, providers: Providers) -> Declarations:
    """What the core and the loaded plugins declare."""

    async def erase_in_plugins(ctx: JobContext, project_id: str, subscriber_id: str) -> None:
        erasing = hook.erase_subscriber(project_id=project_id, subscriber_id=subscriber_id)
        await await_in_order(erasing)

    given = ("ctx", "project_id", "subscriber_id")
    erasers = [providers.bind(erase, given) for part in CORE_PARTS for erase in part.erasers]
    personal_data = [each for part in CORE_PARTS for each in part.personal_data]
    return Declarations(
        sealed=[*CORE_SEALED, *flatten(hook.register_sealed())],
        personal_data=[*personal_data, *flatten(hook.register_personal_data())],
        erasers=[*erasers, erase_in_plugins],
        on_merged=[each for part in CORE_PARTS for each in part.on_merged],
    )
