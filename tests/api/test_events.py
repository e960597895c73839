"""Events: the feed, what plugins do in the same transaction, and listeners after the commit."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import DeliveryError, Reason
from msgsvc_core.db import Tx
from msgsvc_core.events import Event
from msgsvc_core.kernel.errors import Conflict
from msgsvc_core.kernel.hooks import PluginError
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_devkit import RecordingChannel, settled, until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.conftest import CheckError, Subscribe
from tests.expectations import failing

SUCCESS = {"message_id": "msg_1", "metadata": None}


async def emit(
    service: Service, tenant: Tenant, name: str = "delivery.success", **fields: Any
) -> Event:
    async with service.db.transaction() as tx:
        return await service.events.emit(tx, tenant.project.project_id, name, {**SUCCESS, **fields})


async def test_the_feed_shows_events_as_webhooks_carry_them(
    service: Service, tenant: Tenant, client: httpx2.AsyncClient
) -> None:
    event = await emit(service, tenant)

    answer = await client.get("/v1/events")

    assert answer.json() == {
        "data": [
            {
                "event_id": event.event_id,
                "event": "delivery.success",
                "data": {"occurred_at": "2026-01-15T12:00:00.000Z", **SUCCESS},
            }
        ],
        "next_cursor": None,
    }


@pytest.mark.both_databases
async def test_the_feed_is_read_on_by_cursor(
    service: Service, tenant: Tenant, client: httpx2.AsyncClient
) -> None:
    ids = [(await emit(service, tenant)).event_id for _ in range(5)]

    seen: list[str] = []
    cursor: str | None = None
    for _ in range(3):
        params = {"limit": "2", **({"cursor": cursor} if cursor else {})}
        page = (await client.get("/v1/events", params=params)).json()
        seen += [event["event_id"] for event in page["data"]]
        cursor = page["next_cursor"]

    assert seen == ids[::-1]
    assert cursor is None


async def test_the_feed_is_followed_from_an_event_on_oldest_first(
    service: Service, tenant: Tenant, client: httpx2.AsyncClient
) -> None:
    ids = [(await emit(service, tenant)).event_id for _ in range(5)]

    async def later(**params: str) -> tuple[list[str], str | None]:
        page = (await client.get("/v1/events", params=params)).json()
        return [event["event_id"] for event in page["data"]], page["next_cursor"]

    assert await later(after_event_id=ids[1]) == (ids[2:], None)
    assert await later(after_event_id="", event="delivery.success") == (ids, None)
    assert await later(after_event_id="", event="delivery.failed") == ([], None)
    assert await later(after_event_id=ids[4]) == ([], None)
    first, cursor = await later(after_event_id=ids[0], limit="3")
    assert first == ids[1:4]
    assert await later(after_event_id=ids[0], limit="3", cursor=str(cursor)) == (ids[4:], None)
    refused = await client.get("/v1/events", params={"after_event_id": "evt_\0"})
    assert (refused.status_code, refused.json()["code"]) == (400, "validation_failed")


async def test_the_feed_can_be_read_by_name(
    service: Service, client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    subscriber_id = await subscribe()
    await client.post("/v1/send", json={"subscriber_id": subscriber_id, "text": "Hi"})
    await settled(service)

    data = (await client.get("/v1/events?event=delivery.success")).json()["data"]

    assert [event["event"] for event in data] == ["delivery.success"]


async def test_a_listener_is_told_after_the_commit(
    service: Service, tenant: Tenant, client: httpx2.AsyncClient
) -> None:
    found: list[int] = []

    @service.on("delivery.success")
    async def look(event: Event) -> None:
        async with service.db.read() as tx:
            found.append(
                await tx.fetch_val(
                    "SELECT COUNT(*) FROM core_events WHERE event_id = :id", {"id": event.event_id}
                )
            )

    await emit(service, tenant)
    await service.stop()
    await service.start()

    assert found == [1]


async def test_a_listener_is_not_told_of_what_was_rolled_back(
    service: Service, tenant: Tenant
) -> None:
    told: list[Event] = []

    @service.on("delivery.success")
    async def listen(event: Event) -> None:
        told.append(event)

    async with failing(ZeroDivisionError), service.db.transaction() as tx:
        await service.events.emit(tx, tenant.project.project_id, "delivery.success", SUCCESS)
        raise ZeroDivisionError
    kept = await emit(service, tenant)
    await service.events.stop()

    assert told == [kept]


async def test_a_listener_is_not_told_of_what_an_inner_step_took_back(
    service: Service, tenant: Tenant
) -> None:
    told: list[Event] = []

    @service.on("delivery.success")
    async def listen(event: Event) -> None:
        told.append(event)

    async with service.db.transaction() as tx, failing(Conflict), tx.savepoint():
        await service.events.emit(tx, tenant.project.project_id, "delivery.success", SUCCESS)
        raise Conflict
    await service.events.stop()

    assert told == []


async def test_a_listener_that_fails_stops_neither_the_others_nor_the_next_event(
    service: Service, tenant: Tenant
) -> None:
    told: list[str] = []

    @service.on("delivery.success")
    async def fail(_event: Event) -> None:
        raise ZeroDivisionError

    @service.on("delivery.success")
    async def listen(event: Event) -> None:
        told.append(event.event_id)

    events = [await emit(service, tenant) for _ in range(2)]
    await service.events.stop()

    assert told == [event.event_id for event in events]


async def test_a_slow_listener_holds_up_no_request(
    service: Service, tenant: Tenant, client: httpx2.AsyncClient
) -> None:
    entered, may_end = asyncio.Event(), asyncio.Event()

    @service.on("delivery.success")
    async def dawdle(_event: Event) -> None:
        entered.set()
        await may_end.wait()

    await emit(service, tenant)
    await entered.wait()
    answer = await client.get("/v1/events")
    may_end.set()

    assert answer.status_code == 200


async def test_listeners_hear_only_the_event_they_named(service: Service, tenant: Tenant) -> None:
    told: list[Event] = []

    @service.on("subscription.created")
    async def listen(event: Event) -> None:
        told.append(event)

    await emit(service, tenant)
    await service.events.stop()

    assert told == []


def test_listening_to_an_unknown_event_is_refused(service: Service) -> None:
    with pytest.raises(ValueError, match=r"no event is named 'delivery\.succes'"):
        service.on("delivery.succes")(emit)  # type: ignore[arg-type] # never called


async def test_an_undeclared_event_can_not_be_emitted(service: Service, tenant: Tenant) -> None:
    with pytest.raises(KeyError, match=r"nothing\.happened"):
        await emit(service, tenant, "nothing.happened")


async def test_a_field_that_is_not_declared_can_not_be_emitted(
    service: Service, tenant: Tenant
) -> None:
    with pytest.raises(ValueError, match="surprise"):
        await emit(service, tenant, surprise=1)


class Witness:
    """A plugin that notes events in a table of the core, and may object to one."""

    def __init__(self) -> None:
        self.objects = False
        self.seen: list[str] = []

    @hookimpl
    async def on_events(self, tx: Tx, events: Sequence[Event]) -> None:
        self.seen += [event.name for event in events]
        await tx.insert(
            "core_tags",
            {
                "project_id": events[0].project_id,
                "tag_id": "witness",
                "name": "witness",
                "created_at_ms": 0,
            },
        )
        if self.objects:
            raise ZeroDivisionError


async def test_a_plugin_sees_an_event_in_the_transaction_of_its_cause(
    make_service: ServiceFactory, make_tenant: Callable[..., Awaitable[Tenant]]
) -> None:
    witness = Witness()
    service = await make_service(extra_plugins=[("witness", witness)])
    tenant = await make_tenant(service)
    async with failing(KeyboardInterrupt), service.db.transaction() as tx:
        await service.events.emit(tx, tenant.project.project_id, "delivery.success", SUCCESS)
        raise KeyboardInterrupt

    assert witness.seen == ["delivery.success"]
    async with service.db.read() as tx:
        assert await tx.fetch_val("SELECT COUNT(*) FROM core_tags") == 0


async def test_a_plugin_that_fails_undoes_the_cause(
    make_service: ServiceFactory, make_tenant: Callable[..., Awaitable[Tenant]]
) -> None:
    witness = Witness()
    witness.objects = True
    service = await make_service(extra_plugins=[("witness", witness), ("second", Witness())])
    tenant = await make_tenant(service)
    with pytest.raises(ZeroDivisionError):
        await emit(service, tenant)

    async with service.db.read() as tx:
        assert await tx.fetch_val("SELECT COUNT(*) FROM core_events") == 0


async def test_two_owners_of_one_event_are_refused(make_service: ServiceFactory) -> None:
    class Copy:
        @hookimpl
        def register_events(self) -> Any:
            return [spec for spec in CORE if spec.name == "delivery.failed"]

    from msgsvc_core.core_parts import CORE_EVENTS as CORE  # noqa: PLC0415 - shown where it is used

    with pytest.raises(PluginError, match=r"event 'delivery\.failed'"):
        await make_service(extra_plugins=[("copy", Copy())])


async def test_delivery_failures_come_before_what_they_cause(
    service: Service, client: httpx2.AsyncClient, subscribe: Subscribe, channel: RecordingChannel
) -> None:
    subscriber_id = await subscribe()
    channel.failures = [DeliveryError(Reason.CHAT_NOT_FOUND, "gone")]
    await client.post("/v1/send", json={"subscriber_id": subscriber_id, "text": "Hi"})
    await settled(service)

    data = (await client.get("/v1/events?limit=2")).json()["data"]

    assert [event["event"] for event in data] == ["subscription.deleted", "delivery.failed"]


async def test_events_of_a_committed_cause_are_told_even_if_the_caller_is_cancelled(
    service: Service, tenant: Tenant
) -> None:
    told: list[Event] = []

    @service.on("delivery.success")
    async def listen(event: Event) -> None:
        told.append(event)

    async def committed() -> int:
        async with service.db.read() as tx:
            return int(await tx.fetch_val("SELECT COUNT(*) FROM core_events"))

    # Somewhere among these the cancellation meets the commit itself.
    for pause in range(30):
        task = asyncio.create_task(emit(service, tenant))
        for _ in range(pause):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    async def all_told() -> bool:
        return len(told) == await committed()

    await until(all_told)
    assert {event.name for event in told} <= {"delivery.success"}


async def test_an_unknown_name_in_the_query_is_validation_failed(
    client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    answer = await client.get("/v1/events?name=delivery.success")

    check_error(answer, 400, "validation_failed")
