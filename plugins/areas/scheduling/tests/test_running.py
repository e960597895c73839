"""What becomes of what is due: mistakes, projects that are disabled, and changes in the midst of it."""

import asyncio
from typing import Any

import httpx2
import pytest
import structlog

from msgsvc_core.db import DatabaseUnavailable, LockTimeout, Tx
from msgsvc_core.mailings import Mailing, NewMailing
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled
from msgsvc_devkit.contexts import JobInTest
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_scheduling.jobs import ScheduleJobs
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

    async def prepare(self, *given: Any, **named: Any) -> Any:
        prepared = await self.prepared(*given, **named)
        if self.work is not None:
            work, self.work = self.work, None
            await work()
        return prepared

    def between(self, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
        self.prepared = service.messages.prepare
        monkeypatch.setattr(service.messages, "prepare", self.prepare)


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


class TooLarge:
    """Has one audience take longer than a statement may, each time that its mailing is to be started."""

    def __init__(self, service: Service, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
        self.text, self.tries = text, 0
        self._start = service.mailings.start
        monkeypatch.setattr(service.mailings, "start", self.start)

    async def start(self, tx: Tx, project_id: str, new: NewMailing) -> Mailing:
        if new.message.text == self.text:
            self.tries += 1
            raise DatabaseUnavailable("no answer in time")
        return await self._start(tx, project_id, new)


@pytest.mark.parametrize("batch", [1, 200])
async def test_mailing_that_takes_too_long_holds_up_no_others_and_is_tried_again(
    make_service: ServiceFactory,
    make_tenant: Any,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
    batch: int,
) -> None:
    service = await make_service(extra_plugins=PLUGINS, limits=LIMITS, scheduling={"batch": batch})
    large: Tenant = await make_tenant(service)
    small: Tenant = await make_tenant(service)
    await add(service, large, 1)
    [ann] = await add(service, small, 1)
    slow = TooLarge(service, monkeypatch, "Slow")
    for tenant, text in ((large, "Slow"), (small, "One"), (small, "Two")):
        await post(tenant.client, "/v1/scheduled", audience={"all": True}, text=text, send_at=LATER)
        clock.advance(1)
    await post(small.client, "/v1/scheduled", subscriber_id=ann, text="Ann", send_at=LATER)

    with structlog.testing.capture_logs() as logs:
        clock.advance(3601)
        # The look at what is due may have begun before.
        for _ in range(3):
            await settled(service)
            clock.advance(1)
    others = sorted(texts(service))
    monkeypatch.undo()
    clock.advance(60)
    await settled(service)

    assert others == ["Ann", "One", "Two"]
    assert slow.tries > 0
    assert {"scheduled_mailing_put_off", "job_failed"} <= {one["event"] for one in logs}
    assert sorted(texts(service)) == ["Ann", "One", "Slow", "Two"]


@pytest.mark.database_file
@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
async def test_locks_of_others_hold_up_nothing_but_what_needs_them(
    make_service: ServiceFactory, make_tenant: Any, clock: FakeClock
) -> None:
    """SQLite has one writer, who waits for nobody."""
    service = await make_service(extra_plugins=PLUGINS, limits=LIMITS, **IDLE)
    locked: Tenant = await make_tenant(service)
    free: Tenant = await make_tenant(service)
    [ann, bob] = await add(service, locked, 2)
    await add(service, free, 1)
    await locked.client.put(f"/v1/subscribers/{ann}/tags/vip")
    audience = {"tags_any": ["vip"]}
    await post(locked.client, "/v1/scheduled", audience=audience, text="Vip", send_at=LATER)
    for subscriber_id, text in ((ann, "Ann"), (bob, "Bob")):
        body = {"subscriber_id": subscriber_id, "text": text, "send_at": LATER}
        await post(locked.client, "/v1/scheduled", **body)
    await post(free.client, "/v1/scheduled", audience={"all": True}, text="All", send_at=LATER)
    clock.advance(3601)
    context = JobInTest(service.db)

    async with service.db.transaction() as tx:
        await tx.execute("SELECT 1 FROM core_tags FOR UPDATE")
        await tx.execute(
            "SELECT 1 FROM core_subscribers WHERE subscriber_id = :ann FOR UPDATE", {"ann": ann}
        )
        with pytest.raises(LockTimeout):
            await asyncio.wait_for(service.get(ScheduleJobs).run_due(context, []), timeout=30)
        waiting = await due_of(service)
    await service.get(ScheduleJobs).run_due(context, [])

    assert [one.subscriber_id for one in waiting] == [None, ann]
    assert await due_of(service) == []


async def test_without_a_database_it_gives_up_at_the_first_mailing(
    make_service: ServiceFactory,
    make_tenant: Any,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Or it would wait for the bound of each one."""
    service = await make_service(extra_plugins=PLUGINS, limits=LIMITS, **IDLE)
    tenant: Tenant = await make_tenant(service)
    await add(service, tenant, 1)
    for _ in range(3):
        await post(tenant.client, "/v1/scheduled", audience={"all": True}, send_at=LATER)
    clock.advance(3601)
    context = JobInTest(service.db)
    tried = 0

    def away(*_: Any) -> Any:
        raise DatabaseUnavailable("it has gone")

    async def lose(*_: Any) -> Mailing:
        nonlocal tried
        tried += 1
        monkeypatch.setattr(context, "reading", away)
        raise DatabaseUnavailable("no answer in time")

    monkeypatch.setattr(service.mailings, "start", lose)
    with pytest.raises(DatabaseUnavailable):
        await service.get(ScheduleJobs).run_due(context, [])

    assert tried == 1
