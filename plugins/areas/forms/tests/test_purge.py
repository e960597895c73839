"""The hourly purge of conversations: what is old goes in steps, whatever the end it came to."""

from typing import get_args

import pytest

from msgsvc_core.channels import ChannelUser
from msgsvc_core.service import Service
from msgsvc_core.testing import FakeClock, settled, steps_of_two
from msgsvc_core.testing.fixtures import Tenant
from msgsvc_forms import dialogue_store as store
from msgsvc_forms.jobs import DAY_MS

#: Six: each but the first is of a conversation that ended.
STATUSES = get_args(store.DialogueStatus)


async def test_ended_conversations_go_a_step_at_a_time(
    service: Service, tenant: Tenant, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await settled(service)
    taken = steps_of_two(monkeypatch, store)
    async with service.db.transaction() as tx:
        person = await service.subscribers.ensure(
            tx,
            tenant.project.project_id,
            "messenger_a",
            ChannelUser("1", "Ann", "ann", "en"),
            "c",
            source="auth",
        )
        for number in range(6):
            at_ms = clock.now_ms() - (0 if number == 5 else 1000 * DAY_MS)
            await tx.insert(
                "forms_dialogues",
                {
                    "project_id": tenant.project.project_id,
                    "dialogue_id": f"x{number}",
                    "channel": "messenger_a",
                    "chat_id": "c",
                    "subscriber_id": person.subscriber_id,
                    "form_id": "frm_1",
                    "version": 1,
                    "status": STATUSES[1 + number % 5],
                    "state": "{}",
                    "revision": 1,
                    "created_at_ms": at_ms,
                    "updated_at_ms": at_ms,
                },
            )
    clock.advance(3600)
    await settled(service)

    async with service.db.read() as tx:
        left = await tx.fetch_all("SELECT dialogue_id FROM forms_dialogues")
    assert [row["dialogue_id"] for row in left] == ["x5"]
    assert taken == [2, 2, 1]
