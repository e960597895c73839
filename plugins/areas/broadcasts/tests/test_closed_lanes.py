"""Recipients who wait for a channel that makes no calls get an outcome in time."""

from typing import Any

import pytest

from msgsvc_core.channels import ChannelHealth
from msgsvc_core.channels.health.outages import ChannelOutages
from msgsvc_core.channels.outbound.gates import OutboundGates
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled
from msgsvc_devkit.fixtures import Tenant

from .conftest import AddPeople, counts, events, recipients, shown, take

pytestmark = pytest.mark.both_databases

HOUR_S = 3600


class Messenger:
    """The platform of `messenger_a`, which can be away."""

    def __init__(self, service: Service, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
        self._service, self._clock = service, clock
        self._is_away = False
        channel = service.channels["messenger_a"]
        assert isinstance(channel, RecordingChannel)
        self.channel = channel
        monkeypatch.setattr(channel, "check", self._check)

    async def _check(self) -> ChannelHealth:
        return ChannelHealth(not self._is_away, "away" if self._is_away else "")

    async def go_away(self) -> None:
        self._is_away = True
        async with self._service.db.transaction() as tx:
            await self._service.get(ChannelOutages).start(tx, self.channel, "away")
        self._service.get(OutboundGates).outage_changed(self.channel.key)

    async def come_back(self) -> None:
        self._is_away = False
        await self.wait(1)

    async def wait(self, hours: float) -> None:
        self._clock.advance(hours * HOUR_S)
        await settled(self._service)


@pytest.fixture
def messenger(service: Service, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> Messenger:
    return Messenger(service, clock, monkeypatch)


def endings(found: list[dict[str, Any]]) -> set[tuple[str, str | None]]:
    return {(each["status"], each["reason"]) for each in found}


async def test_recipients_fail_when_their_channel_has_made_no_calls_for_long(
    tenant: Tenant, people: AddPeople, messenger: Messenger, monkeypatch: pytest.MonkeyPatch
) -> None:
    # More than one group.
    monkeypatch.setattr("msgsvc_core.mailings.overdue.GROUP", 3)
    await people(8)
    await messenger.go_away()
    job_id = await take(tenant.client, metadata={"sale": 1})
    await messenger.wait(0)
    await messenger.wait(23)
    before = await shown(tenant.client, job_id)
    await messenger.wait(1.1)
    after = await shown(tenant.client, job_id)
    listed = await recipients(tenant.client, job_id)
    told = await events(tenant.client, "delivery.failed")
    await messenger.come_back()

    assert before["status"] == "running"
    assert (after["status"], counts(after)) == ("completed", (0, 8, 0, 8))
    assert endings(listed) == {("failed", "platform_unavailable")}
    assert len(told) == 8
    assert {(each["reason"], each["metadata"]["sale"]) for each in told} == {
        ("platform_unavailable", 1)
    }
    assert len(await events(tenant.client, "broadcast.completed")) == 1
    assert messenger.channel.texts == []


async def test_a_broadcast_that_expires_while_its_channel_is_closed_ends_then(
    tenant: Tenant, people: AddPeople, messenger: Messenger
) -> None:
    await people(3)
    await messenger.go_away()
    job_id = await take(tenant.client, expires_in=2 * HOUR_S)
    await messenger.wait(1)
    before = await shown(tenant.client, job_id)
    await messenger.wait(1.1)
    after = await shown(tenant.client, job_id)
    await messenger.come_back()

    assert before["status"] == "running"
    assert (after["status"], counts(after)) == ("completed", (0, 0, 3, 3))
    assert messenger.channel.texts == []


async def test_a_broadcast_that_was_resumed_waits_as_long_again(
    tenant: Tenant, people: AddPeople, messenger: Messenger
) -> None:
    await people(3)
    await messenger.go_away()
    job_id = await take(tenant.client)
    await messenger.wait(1)
    await tenant.client.post(f"/v1/broadcast/{job_id}/pause")
    await messenger.wait(30)
    await tenant.client.post(f"/v1/broadcast/{job_id}/resume")
    await messenger.wait(12)
    before = await shown(tenant.client, job_id)
    await messenger.wait(12.1)

    assert (before["status"], counts(before)) == ("running", (0, 0, 0, 3))
    assert counts(await shown(tenant.client, job_id)) == (0, 3, 0, 3)
