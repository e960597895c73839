"""A chain of two steps as its tables hold it, somebody who is in it, and what makes its parts."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from msgsvc_core.kernel.json import from_json
from msgsvc_devkit import FakeContext
from msgsvc_devkit.fakes import PROJECT
from msgsvc_devkit.fakes.database import Reply
from msgsvc_drip.checks import DefinitionChecks
from msgsvc_drip.contents import Contents
from msgsvc_drip.definition import Delay, DripDefinition, Step, StepMessage
from msgsvc_drip.models import Drip, Enrollment

HELLO = Step(delay=Delay(minutes=0), message=StepMessage(text="Hello"))
BYE = Step(delay=Delay(hours=2), message=StepMessage(text="Bye"))
DEFINITION = DripDefinition(steps=[HELLO, BYE], timezone="UTC", stop_on=["order.paid"])

CHAIN = Drip(
    project_id=PROJECT,
    drip_id="drp_1",
    name="Welcome",
    status="active",
    reentry="never",
    trigger_on="tag",
    trigger_value="vip",
    version=1,
    created_at_ms=0,
    updated_at_ms=0,
    content=DEFINITION.to_column(),
)
ANNA_IN_IT = Enrollment(
    project_id=PROJECT,
    enrollment_id="enr_1",
    drip_id="drp_1",
    version=1,
    subscriber_id="sub_1",
    status="active",
    next_step=0,
    due_at_ms=0,
    last_message_id=None,
    reason=None,
    created_at_ms=0,
    finished_at_ms=None,
)


def with_steps(*steps: Step) -> DripDefinition:
    return DripDefinition(steps=list(steps), timezone="UTC", stop_on=[])


def chain_of(definition: DripDefinition, **fields: Any) -> Drip:
    return replace(CHAIN, content=definition.to_column(), **fields)


def tables(
    chain: Drip | None = CHAIN, *enrollments: Enrollment, count: int = 0
) -> dict[str, Reply]:
    """What the tables answer that hold a chain, and who is in it: new enrollments are all made."""
    return {
        "FROM drip_chains c JOIN drip_versions": [] if chain is None else [asdict(chain)],
        "SELECT COUNT(*) AS count FROM drip_chains": [{"count": count}],
        "UPDATE drip_chains": 0 if chain is None else 1,
        "DELETE FROM drip_stops": 1,
        "INSERT INTO drip_enrollments": make_all,
        "FROM drip_enrollments e JOIN drip_chains": [asdict(one) for one in enrollments],
        "UPDATE drip_enrollments": len(enrollments),
    }


def make_all(params: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The ids of all enrollments that are inserted."""
    return [{"enrollment_id": key[1]} for key in from_json(params["keys"])]


def checks(core: FakeContext) -> DefinitionChecks:
    return DefinitionChecks(
        permissions=core.permissions,
        templates=core.templates,
        channels=core.channels,
        messages=core.messages,
        routes=core.routes,
        settings=core.config,
    )


def contents(core: FakeContext) -> Contents:
    return Contents(
        db=core.db,
        templates=core.templates,
        permissions=core.permissions,
        channels=core.channels,
        messages=core.messages,
        preferences=core.subscribers.preferences,
        default_lang="en",
        text_length=4000,
    )
