"""The door of the plugin: what it declares, each handed on to the file that has it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgsvc_billing.admission import Admission
from msgsvc_billing.charges import Charges
from msgsvc_billing.dashboard import pages
from msgsvc_billing.jobs import RENEW_JOB
from msgsvc_billing.metrics import BillingMetrics
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
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service

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
def register_services(service: Service) -> Mapping[type, Any]:
    settings = service.section(BillingSettings)
    billing = Billing(service, settings)
    charges = Charges(service, billing)
    return {
        Billing: billing,
        Charges: charges,
        Admission: Admission(service, billing, charges),
        Statements: Statements(service),
        BillingMetrics: BillingMetrics(service, settings),
    }


@hookimpl
def register_jobs() -> Sequence[JobSpec]:
    return [RENEW_JOB]


@hookimpl
def register_endpoints() -> Sequence[Endpoint]:
    return router.endpoints


@hookimpl
def register_dashboard() -> Sequence[Pages]:
    return [pages]


@hookimpl
async def charge(service: Service, tx: Tx, charge: Charge) -> None:
    await service.get(Charges).charge(tx, charge)


@hookimpl
async def admit(service: Service, project_id: str, tx: Tx | None) -> None:
    await service.get(Admission).admit(project_id, tx)


@hookimpl
async def price(service: Service, tx: Tx, project_id: str, operation: str) -> int:
    return await service.get(Charges).price(tx, project_id, operation)


@hookimpl
async def decide_plan(service: Service, tx: Tx, account_id: str) -> Plan:
    return await service.get(Billing).plan_of(tx, account_id)


@hookimpl
async def on_events(service: Service, tx: Tx, events: Sequence[Event]) -> None:
    await service.get(Charges).delivered(tx, events)
