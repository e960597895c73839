"""Chains, and people who are in them."""

from typing import Any

from msgsvc_core.db import Tx
from msgsvc_devkit import MemoryCore
from msgsvc_devkit.core import PROJECT
from msgsvc_drip.definition import Delay, Step, StepMessage
from msgsvc_drip.models import CreateDripBody, Drip, EnrollInDripBody, Enrollment, EnrollmentQuery
from msgsvc_drip.service import Drips

HELLO = Step(delay=Delay(minutes=0), message=StepMessage(text="Hello"))
BYE = Step(delay=Delay(hours=2), message=StepMessage(text="Bye"))


def new_chain(*steps: Step, **fields: Any) -> CreateDripBody:
    """A chain of these steps, or of two, that begins with the tag `vip`."""
    return CreateDripBody.model_validate(
        {
            "name": "Welcome",
            "trigger": {"on": "tag", "value": "vip"},
            "steps": list(steps) or [HELLO, BYE],
            "stop_on": ["order.paid"],
            **fields,
        }
    )


async def create_chain(core: MemoryCore, tx: Tx, *steps: Step, **fields: Any) -> Drip:
    return await core.get(Drips).create(tx, PROJECT, new_chain(*steps, **fields))


async def enroll(
    core: MemoryCore, tx: Tx, chain: Drip, subscriber_id: str = "sub_1", **columns: Any
) -> Enrollment:
    """Enrolls a new subscriber."""
    await core.person(tx, subscriber_id, **columns)
    body = EnrollInDripBody(subscriber_id=subscriber_id)
    return await core.get(Drips).enroll(tx, PROJECT, chain.drip_id, body)


async def enrollments(core: MemoryCore, tx: Tx, chain: Drip) -> list[Enrollment]:
    """Those of a chain, oldest first."""
    query = EnrollmentQuery(limit=100)
    found = await core.get(Drips).enrollments(tx, PROJECT, chain.drip_id, query)
    return list(reversed(found))
