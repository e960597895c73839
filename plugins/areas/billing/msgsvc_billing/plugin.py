"""Hook implementations. Each delegates to the module that owns the behaviour."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgsvc_billing.admission import Admission
from msgsvc_billing.charges import Charges
from msgsvc_billing.dashboard import pages
from msgsvc_billing.jobs import Renewal
from msgsvc_billing.metrics import BillingMetrics
from msgsvc_billing.payers import Payers
from msgsvc_billing.routes import router
from msgsvc_billing.service import Billing
from msgsvc_billing.settings import BillingSettings
from msgsvc_billing.statements import Statements
from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.billing import Charge, Plan
from msgsvc_core.config.settings import SettingsSection
from msgsvc_core.dashboard import Pages
from msgsvc_core.db import MigrationSource, Tx
from msgsvc_core.events import Event
from msgsvc_core.jobs import JobSpec
from msgsvc_core.plugins.context import PluginContext
from msgsvc_core.plugins.hookspecs import hookimpl

HERE = Path(__file__).parent


@hookimpl
def register_settings() -> SettingsSection:
    return SettingsSection("billing", BillingSettings)


@hookimpl
def register_migrations() -> MigrationSource:
    return MigrationSource("billing", HERE / "migrations")


@hookimpl
def register_locale() -> Path:
    return HERE / "locale"


@hookimpl
def create_plugin(context: PluginContext) -> "BillingPlugin":
    return BillingPlugin(context)


class BillingPlugin:
    """The plugin's objects, and the hooks that need them."""

    def __init__(self, context: PluginContext) -> None:
        settings = context.settings(BillingSettings)
        payers = Payers(projects=context.projects, accounts=context.peers.accounts)
        self._billing = Billing(
            clock=context.clock,
            settings=settings,
            accounts=context.peers.accounts,
            payers=payers,
        )
        self._charges = Charges(clock=context.clock, billing=self._billing, payers=payers)
        self._admission = Admission(
            clock=context.clock,
            db=context.db,
            billing=self._billing,
            charges=self._charges,
            payers=payers,
        )
        self._billing.on_change.append(self._admission.clear)
        self._statements = Statements(clock=context.clock, db=context.db, payers=payers)
        self._renewal = Renewal(clock=context.clock, billing=self._billing)
        self._metrics = BillingMetrics(
            clock=context.clock, metrics=context.metrics, settings=settings
        )

    @hookimpl
    def register_services(self) -> Mapping[type, Any]:
        return {Billing: self._billing, Statements: self._statements}

    @hookimpl
    def register_endpoints(self) -> Sequence[Endpoint]:
        return router.endpoints

    @hookimpl
    def register_dashboard(self) -> Sequence[Pages]:
        return [pages]

    @hookimpl
    def register_jobs(self) -> Sequence[JobSpec]:
        return [self._renewal.spec]

    @hookimpl
    async def charge(self, tx: Tx, charge: Charge) -> None:
        await self._charges.charge(tx, charge)

    @hookimpl
    async def check_operation(self, project_id: str, tx: Tx | None) -> None:
        await self._admission.check(project_id, tx)

    @hookimpl
    async def quote(self, tx: Tx, project_id: str, operation: str) -> int:
        return await self._charges.quote(tx, project_id, operation)

    @hookimpl
    async def decide_plan(self, tx: Tx, account_id: str) -> Plan:
        return await self._billing.plan_of(tx, account_id)

    @hookimpl
    async def on_events(self, tx: Tx, events: Sequence[Event]) -> None:
        await self._charges.delivered(tx, events)
