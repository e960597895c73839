"""What becomes of what is due: mistakes, projects that are disabled, and changes in the midst of it."""

from typing import Any

import httpx2
import pytest

from msgsvc_core.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_core.testing import FakeClock
from msgsvc_core.testing.fixtures import ServiceFactory, Tenant
from msgsvc_scheduling.running import Running

from .conftest import (
    IDLE,
    LATER,
    LIMITS,
    PLUGINS,
    add,
    count,
    due_of,
    get,
    pass_time,
    post,
    texts,
    told,
)


class Breaks:
    """A plugin whose charge is broken."""

    @hookimpl
    async def charge(self) -> None:
        raise ZeroDivisionError


async def test_mistake_of_ours_is_told_and_holds_up_nothing(
    make_service: ServiceFactory, make_tenant: Any, clock: FakeClock
) -> None:
    service = await make_service(extra_plugins=[*PLUGINS, ("breaks", Breaks())], limits=LIMITS)
    tenant: Tenant = await make_tenant(service)
    [ann] = await add(service, tenant, 1)
    await post(tenant.client, "/v1/scheduled", audience={"all": True}, send_at=LATER)
    await post(tenant.client, "/v1/scheduled", subscriber_id=ann, text="Next", send_at=LATER)

    await pass_time(service, clock, 3601)

    assert sorted(await told(tenant.client)) == [
        ("scheduled.failed", "internal_error"),
        ("scheduled.sent", None),
    ]
    assert texts(service) == ["Next"]
    assert await count(service, "core_mailings") == 0


class BreaksFor:
    """A plugin that fails at what is told of one person."""

    def __init__(self, subscriber_id: str) -> None:
        self.subscriber_id = subscriber_id

    @hookimpl
    async def on_events(self, events: Any) -> None:
        for event in events:
            if event.name == "scheduled.sent" and event.data["subscriber_id"] == self.subscriber_id:
                raise ZeroDivisionError


async def test_mistake_about_one_person_is_told_of_them_alone(
    make_service: ServiceFactory, make_tenant: Any, clock: FakeClock
) -> None:
    service = await make_service(
        extra_plugins=[*PLUGINS, ("breaks", BreaksFor("sub_0000002"))], limits=LIMITS
    )
    tenant: Tenant = await make_tenant(service)
    for subscriber_id in await add(service, tenant, 5):
        await post(
            tenant.client,
            "/v1/scheduled",
            subscriber_id=subscriber_id,
            text=subscriber_id[-1],
            send_at=LATER,
        )

    await pass_time(service, clock, 3601)

    assert sorted(texts(service)) == ["0", "1", "3", "4"]
    assert sorted(await told(tenant.client)) == [
        ("scheduled.failed", "internal_error"),
        *[("scheduled.sent", None)] * 4,
    ]


async def test_what_is_due_for_a_disabled_project_fails_and_recurring_ones_go_on_after_it(
    service: Service, tenant: Tenant, client: httpx2.AsyncClient, ann: str, clock: FakeClock
) -> None:
    await post(client, "/v1/scheduled", subscriber_id=ann, send_at=LATER)
    await post(client, "/v1/scheduled", audience={"all": True}, send_at=LATER)
    await post(client, "/v1/recurring", subscriber_id=ann, text="Again", cron="0 * * * *")
    await service.projects.set_active(tenant.project.project_id, False)
    await pass_time(service, clock, 3601)
    await service.projects.set_active(tenant.project.project_id, True)
    assert (texts(service), await count(service, "core_mailings")) == ([], 0)
    await pass_time(service, clock, 3600)

    assert texts(service) == ["Again"]
    assert await told(client) == [
        *[("scheduled.failed", "project_inactive")] * 3,
        ("recurring.sent", None),
    ]


class Meanwhile:
    """Does something between the making of messages and their transaction."""

    def __init__(self) -> None:
        self.work: Any = None

    async def judge(self, *given: Any, **named: Any) -> Any:
        judged = await self.judged(*given, **named)
        if self.work is not None:
            work, self.work = self.work, None
            await work()
        return judged

    def between(self, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
        self.judged = service.messages.judge
        monkeypatch.setattr(service.messages, "judge", self.judge)


CHANGES = [
    ("PATCH", {"text": "New"}, ["New"]),
    ("PATCH", {"send_at": "2026-01-15T18:00:00Z"}, []),
    ("DELETE", None, []),
]


@pytest.mark.parametrize(("method", "body", "expected"), CHANGES)
async def test_change_in_the_midst_of_a_run_holds(
    make_service: ServiceFactory,
    make_tenant: Any,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    body: dict[str, Any] | None,
    expected: list[str],
) -> None:
    service = await make_service(extra_plugins=PLUGINS, limits=LIMITS, **IDLE)
    tenant: Tenant = await make_tenant(service)
    [ann] = await add(service, tenant, 1)
    made = await post(tenant.client, "/v1/scheduled", subscriber_id=ann, send_at=LATER)
    clock.advance(3601)
    [due] = await due_of(service)
    meanwhile = Meanwhile()
    meanwhile.between(service, monkeypatch)

    async def change() -> None:
        path = f"/v1/scheduled/{made['scheduled_id']}"
        answer = await tenant.client.request(method, path, json=body)
        assert answer.is_success, answer.text

    meanwhile.work = change
    await service.get(Running).run(due)
    assert await count(service, "core_messages") == 0
    for one in await due_of(service):
        await service.get(Running).run(one)

    found = (await get(tenant.client, "/v1/messages"))["data"]
    assert [message["text"] for message in found] == expected
