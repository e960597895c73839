"""The hourly purge of conversations: what is old goes in steps, whatever the end it came to."""

from itertools import cycle
from typing import Any, get_args

from msgsvc_core.channels import ChannelUser
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock
from msgsvc_devkit.fixtures import Tenant
from msgsvc_devkit.purging import Purged, purged
from msgsvc_forms import dialogue_store as store

#: As many as a purge of a test finds old.
ENDED = [status for status in get_args(store.DialogueStatus) if status != "active"]


async def test_ended_conversations_go_a_step_at_a_time(
    service: Service, tenant: Tenant, clock: FakeClock
) -> None:
    project_id, statuses = tenant.project.project_id, cycle(ENDED)
    async with service.db.transaction() as tx:
        ann = ChannelUser("1", "Ann", "ann", "en")
        person = await service.subscribers.ensure(
            tx, project_id, "messenger_a", ann, "c", source="auth"
        )

    def dialogue(at_ms: int) -> dict[str, Any]:
        return {
            "project_id": project_id,
            "channel": "messenger_a",
            "chat_id": "c",
            "subscriber_id": person.subscriber_id,
            "form_id": "frm_1",
            "version": 1,
            "status": next(statuses),
            "state": "{}",
            "revision": 1,
            "created_at_ms": at_ms,
            "updated_at_ms": at_ms,
        }

    found = await purged(
        service, clock, (store, "purge"), "forms_dialogues", "dialogue_id", dialogue
    )

    assert len(ENDED) == 5
    assert found == Purged(left=["x5"], steps=[2, 2, 1])
