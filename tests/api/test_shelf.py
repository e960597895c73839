"""What a channel can't read is kept, within bounds, until somebody has decided about it; so are updates
whose handler failed."""

from dataclasses import replace
from typing import Any

import pytest
from httpx2 import ASGITransport, AsyncClient

from msgsvc_core.channels import (
    Blocked,
    ChannelUser,
    DeliveryError,
    InboundContext,
    InboundRule,
    MessageReceived,
    Reason,
    Unreadable,
    UnreadableReason,
    chats,
)
from msgsvc_core.channels.shelf import ItemTaker, Shelf, ShelvedItem
from msgsvc_core.kernel.errors import Conflict, NotFound, PlatformBusy
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled
from msgsvc_devkit.fixtures import ServiceFactory, Tenant

RAW = b'{"text": null, "secret": "Zephyrine"}'
ITEM = Unreadable(
    update_id="u1", raw=RAW, reason=UnreadableReason.MALFORMED, detail="text: is no text"
)
ANN = ChannelUser("ann-7777", "Ann")

pytestmark = pytest.mark.both_databases


async def shelved(service: Service, channel: str = "messenger_a") -> list[ShelvedItem]:
    async with service.db.read() as tx:
        return await service.get(Shelf).page(tx, channel, None, 100)


async def counted(service: Service, name: str, **labels: str) -> float:
    return service.metrics.registry.get_sample_value(name, labels) or 0.0


def written(update_id: str = "u1", text: str = "hello") -> MessageReceived:
    return MessageReceived(update_id=update_id, chat_id="room", user=ANN, text=text)


async def handled(service: Service) -> float:
    return await counted(
        service, "msgsvc_channel_updates_total", channel="messenger_a", outcome="handled"
    )


async def test_what_cannot_be_read_is_kept_encrypted_with_its_reason(
    service: Service, clock: FakeClock
) -> None:
    await service.inbound.receive("messenger_a", ITEM)
    [item] = await shelved(service)
    async with service.db.read() as tx:
        _, raw = await service.get(Shelf).read(tx, "messenger_a", item.item_id)
        sealed = await tx.fetch_val("SELECT sealed FROM core_shelf")

    assert (item.reason, item.detail, item.kind) == ("malformed", "text: is no text", "update")
    assert (item.size, item.is_whole, item.received_at_ms) == (len(RAW), True, clock.now_ms())
    assert raw == RAW
    assert "Zephyrine" not in sealed
    assert "Zephyrine" not in repr(ITEM)
    assert (
        await counted(
            service, "msgsvc_updates_shelved_total", channel="messenger_a", reason="malformed"
        )
        == 1
    )


async def test_an_item_that_comes_twice_is_on_the_shelf_once(service: Service) -> None:
    for _ in range(2):
        await service.inbound.receive("messenger_a", ITEM)
    await service.inbound.receive("messenger_b", ITEM)

    assert len(await shelved(service)) == 1
    assert len(await shelved(service, "messenger_b")) == 1


async def test_texts_that_a_database_refuses_are_kept_without_what_it_refuses(
    service: Service,
) -> None:
    odd = replace(
        ITEM, update_id="\0" * 300, detail="\0a\ud800b\nc" * 100, user=ChannelUser("\0x", "")
    )
    await service.inbound.receive("messenger_a", odd)
    [item] = await shelved(service)

    assert item.update_id.startswith("raw-")
    assert item.detail.startswith("a b c a")
    assert len(item.detail) <= 300


async def test_a_large_item_is_kept_in_part_and_cannot_be_taken(
    make_service: ServiceFactory,
) -> None:
    service = await make_service(limits={"shelf_item_bytes": 1024})
    await service.inbound.receive("messenger_a", replace(ITEM, raw=b"x" * 5000))
    [item] = await shelved(service)
    async with service.db.read() as tx:
        _, raw = await service.get(Shelf).read(tx, "messenger_a", item.item_id)

    assert (raw, item.size, item.kept) == (b"x" * 1024, 5000, 1024)
    with pytest.raises(Conflict, match="only the first 1024 of its 5000 bytes"):
        await service.get(ItemTaker).take("messenger_a", item.item_id)


@pytest.mark.parametrize(
    ("limits", "left"),
    [({"shelf_items": 2}, ["u3", "u4"]), ({"shelf_bytes": 1024}, ["u4"])],
)
async def test_a_full_shelf_loses_its_oldest_items_and_they_are_counted(
    make_service: ServiceFactory, limits: dict[str, int], left: list[str]
) -> None:
    service = await make_service(limits=limits)
    for number in range(5):
        raw = RAW if "shelf_items" in limits else b"x" * 600
        await service.inbound.receive("messenger_a", replace(ITEM, update_id=f"u{number}", raw=raw))
    await service.inbound.receive("messenger_b", ITEM)
    found = await shelved(service)

    assert sorted(item.update_id for item in found) == left
    assert len(await shelved(service, "messenger_b")) == 1
    assert await counted(service, "msgsvc_shelf_dropped_total", channel="messenger_a") == 5 - len(
        left
    )


async def test_an_item_that_alone_is_more_than_the_shelf_holds_stays_until_the_next(
    make_service: ServiceFactory,
) -> None:
    service = await make_service(limits={"shelf_bytes": 1024})
    await service.inbound.receive("messenger_a", replace(ITEM, raw=b"x" * 5000))

    assert len(await shelved(service)) == 1


async def test_what_is_taken_anyway_is_processed_as_any_update_and_leaves_the_shelf(
    service: Service, channel: RecordingChannel
) -> None:
    await service.inbound.receive("messenger_a", ITEM)
    [item] = await shelved(service)
    # With the id that the update would have had.
    channel.readable[RAW] = [written("u1")]
    before = await handled(service)
    left = await service.get(ItemTaker).take("messenger_a", item.item_id)

    assert left is None
    assert await handled(service) == before + 1
    assert await shelved(service) == []
    with pytest.raises(NotFound):
        await service.get(ItemTaker).take("messenger_a", item.item_id)


async def test_what_has_come_meanwhile_is_not_processed_twice(
    service: Service, channel: RecordingChannel
) -> None:
    await service.inbound.receive("messenger_a", ITEM)
    [item] = await shelved(service)
    await service.inbound.receive("messenger_a", written("u1"))
    channel.readable[RAW] = [written("u1")]
    before = await handled(service)

    assert await service.get(ItemTaker).take("messenger_a", item.item_id) is None
    assert await handled(service) == before


async def test_what_still_cannot_be_read_stays_with_its_new_reason(
    service: Service, channel: RecordingChannel, clock: FakeClock
) -> None:
    await service.inbound.receive("messenger_a", ITEM)
    [item] = await shelved(service)
    clock.advance(60)
    left = await service.get(ItemTaker).take("messenger_a", item.item_id)
    channel.readable[RAW] = []
    then = await service.get(ItemTaker).take("messenger_a", item.item_id)

    assert left is not None
    assert (left.detail, left.tried_at_ms) == ("it still has no form", clock.now_ms())
    assert then is not None
    assert then.reason == UnreadableReason.NOTHING_IN_IT
    assert await shelved(service) == [then]


class Failing:
    """A plugin whose handler of texts fails the first time, or the first `times`."""

    def __init__(self, times: int = 1) -> None:
        self.times = times
        self.texts: list[str] = []

    @hookimpl
    def register_inbound(self) -> Any:
        async def handle(ctx: InboundContext) -> None:
            assert isinstance(ctx.update, MessageReceived)
            self.texts.append(ctx.update.text)
            if len(self.texts) <= self.times:
                raise RuntimeError("not now")

        return [InboundRule("message", handle, priority=1)]


async def test_an_item_whose_handler_fails_stays_and_can_be_taken_again(
    make_service: ServiceFactory,
) -> None:
    failing = Failing()
    service = await make_service(extra_plugins=[("failing", failing)])
    channel = service.channels["messenger_a"]
    assert isinstance(channel, RecordingChannel)
    channel.readable[RAW] = [written()]
    await service.inbound.receive("messenger_a", ITEM)
    [item] = await shelved(service)
    left = await service.get(ItemTaker).take("messenger_a", item.item_id)

    assert left is not None
    assert left.reason == UnreadableReason.FAULT
    assert await service.get(ItemTaker).take("messenger_a", item.item_id) is None
    assert failing.texts == ["hello", "hello"]


async def test_an_item_stays_while_the_platform_is_away(
    service: Service, channel: RecordingChannel
) -> None:
    await service.inbound.receive("messenger_a", ITEM)
    [item] = await shelved(service)
    channel.refusals.append(DeliveryError(Reason.PLATFORM_UNAVAILABLE, "no answer"))
    with pytest.raises(PlatformBusy):
        await service.get(ItemTaker).take("messenger_a", item.item_id)

    assert await shelved(service) == [item]


async def test_an_item_is_found_on_its_own_channel_only(service: Service) -> None:
    await service.inbound.receive("messenger_a", ITEM)
    [item] = await shelved(service)

    with pytest.raises(NotFound):
        await service.get(ItemTaker).take("messenger_b", item.item_id)
    async with service.db.transaction() as tx:
        with pytest.raises(NotFound):
            await service.get(Shelf).delete(tx, "messenger_b", item.item_id)


async def test_readiness_counts_what_waits_on_shelves_and_stays_ready(service: Service) -> None:
    await service.inbound.receive("messenger_a", ITEM)
    async with AsyncClient(
        transport=ASGITransport(app=service.app), base_url="http://msgsvc.test"
    ) as client:
        answer = await client.get("/readyz")

    assert (answer.status_code, answer.json()["status"]) == (200, "ok")
    assert answer.json()["checks"]["shelf"] == {"ok": True, "detail": {"messenger_a": 1}}


@pytest.mark.parametrize("is_known", [True, False])
async def test_the_items_of_an_erased_person_go_with_them(
    service: Service, tenant: Tenant, is_known: bool
) -> None:
    subscriber_id = await subscribed(service, tenant, "ann@people.example")
    theirs = replace(ITEM, user=ChannelUser("ann@people.example", "Ann"))
    if not is_known:
        theirs = replace(ITEM, raw=b"From: Ann <Ann@People.example>")
    for number in range(25):
        # More than are looked at in one step.
        await service.inbound.receive("messenger_a", replace(ITEM, update_id=f"x{number}"))
    await service.inbound.receive("messenger_a", theirs)
    await service.inbound.receive("messenger_b", replace(theirs, update_id="u2"))
    answer = await tenant.client.delete(f"/v1/subscribers/{subscriber_id}?erase=true")
    await settled(service)
    left = await shelved(service)

    assert answer.status_code == 204
    assert sorted(item.update_id for item in left) == sorted(f"x{number}" for number in range(25))
    assert len(await shelved(service, "messenger_b")) == 1


async def subscribed(service: Service, tenant: Tenant, user_id: str) -> str:
    user = ChannelUser(user_id, "Ann", None, "en")
    async with service.db.transaction() as tx:
        found = await service.subscribers.ensure(
            tx, tenant.project.project_id, "messenger_a", user, user_id, source="deep_link"
        )
    return found.subscriber_id


# ---- updates whose handler fails --------------------------------------------------------------------


@pytest.fixture
async def failing() -> Failing:
    return Failing()


@pytest.fixture
async def fragile(make_service: ServiceFactory, failing: Failing) -> Service:
    return await make_service(extra_plugins=[("failing", failing)])


async def test_an_update_whose_handler_fails_is_kept_with_the_reason(
    fragile: Service, failing: Failing
) -> None:
    await fragile.inbound.receive("messenger_a", written())
    [item] = await shelved(fragile)
    async with fragile.db.read() as tx:
        _, raw = await fragile.get(Shelf).read(tx, "messenger_a", item.item_id)

    assert (item.reason, item.kind) == ("fault", "update")
    assert item.detail == "the service failed on it (RuntimeError)"
    assert '"text": "hello"' in raw.decode()
    assert failing.texts == ["hello"]


async def test_an_update_whose_handler_failed_is_processed_again_when_it_is_taken(
    fragile: Service, failing: Failing
) -> None:
    await fragile.inbound.receive("messenger_a", written())
    [item] = await shelved(fragile)
    left = await fragile.get(ItemTaker).take("messenger_a", item.item_id)

    assert left is None
    assert failing.texts == ["hello", "hello"]
    assert await handled(fragile) == 1
    assert await shelved(fragile) == []


async def test_an_update_that_fails_again_stays_until_it_is_handled(
    make_service: ServiceFactory,
) -> None:
    failing = Failing(times=2)
    service = await make_service(extra_plugins=[("failing", failing)])
    await service.inbound.receive("messenger_a", written())
    [item] = await shelved(service)
    left = await service.get(ItemTaker).take("messenger_a", item.item_id)
    taken = await service.get(ItemTaker).take("messenger_a", item.item_id)

    assert left is not None
    assert (left.reason, left.update_kind) == ("fault", "MessageReceived")
    assert left.tried_at_ms is not None
    assert taken is None
    assert failing.texts == ["hello"] * 3


async def test_an_update_that_the_platform_sends_once_more_is_not_handled_again_when_it_is_taken(
    fragile: Service, failing: Failing
) -> None:
    # The job that removes such items has had its first run.
    await settled(fragile)
    for _ in range(2):
        await fragile.inbound.receive("messenger_a", written())
    [item] = await shelved(fragile)

    assert await fragile.get(ItemTaker).take("messenger_a", item.item_id) is None
    assert failing.texts == ["hello", "hello"]


async def test_an_update_that_was_processed_after_all_leaves_the_shelf_within_an_hour(
    fragile: Service, clock: FakeClock
) -> None:
    await settled(fragile)
    for _ in range(2):
        await fragile.inbound.receive("messenger_a", written())
    before = await shelved(fragile)
    clock.advance(2 * 3600)
    await settled(fragile)

    assert len(before) == 1
    assert await shelved(fragile) == []


async def test_a_block_from_before_the_last_message_changes_nothing_when_it_is_taken(
    service: Service, tenant: Tenant, clock: FakeClock
) -> None:
    subscriber_id = await subscribed(service, tenant, ANN.user_id)
    async with service.db.transaction() as tx:
        blocked = Blocked(update_id="b1", chat_id=ANN.user_id, user=ANN)
        await service.get(Shelf).put_failed(tx, "messenger_a", blocked, RuntimeError())
    clock.advance(60)
    later = MessageReceived(update_id="u2", chat_id=ANN.user_id, user=ANN, text="I am here")
    await service.inbound.receive("messenger_a", later)
    [item] = await shelved(service)
    left = await service.get(ItemTaker).take("messenger_a", item.item_id)
    found = await tenant.client.get(f"/v1/subscribers/{subscriber_id}")

    assert left is None
    assert found.json()["status"] == "active"


async def test_a_message_that_is_taken_later_does_not_count_as_written_now(
    fragile: Service, clock: FakeClock
) -> None:
    await fragile.inbound.receive("messenger_a", written())
    received_at_ms = clock.now_ms()
    [item] = await shelved(fragile)
    clock.advance(24 * 3600)
    await fragile.get(ItemTaker).take("messenger_a", item.item_id)
    async with fragile.db.read() as tx:
        seen_at_ms = await chats.find_seen_ms(tx, "messenger_a", "room")

    assert seen_at_ms == received_at_ms


async def test_updates_that_fail_push_out_nothing_that_could_not_be_read(
    make_service: ServiceFactory,
) -> None:
    failing = Failing(times=5)
    service = await make_service(extra_plugins=[("failing", failing)], limits={"shelf_items": 2})
    await service.inbound.receive("messenger_a", replace(ITEM, update_id="mail"))
    for number in range(5):
        await service.inbound.receive("messenger_a", written(f"u{number}"))

    assert [item.update_id for item in await shelved(service)] == ["u4", "u3", "mail"]


class OwnMessage(MessageReceived):
    """As a channel might derive it."""


async def test_an_update_of_a_class_that_a_channel_has_derived_can_be_taken(
    fragile: Service, failing: Failing
) -> None:
    await fragile.inbound.receive(
        "messenger_a", OwnMessage(update_id="u1", chat_id="room", user=ANN, text="hello")
    )
    [item] = await shelved(fragile)
    left = await fragile.get(ItemTaker).take("messenger_a", item.item_id)

    assert left is None
    assert failing.texts == ["hello", "hello"]


@pytest.mark.parametrize(
    "changed", ["update_kind = 'OfALaterRelease'", "update_kind = 'BotCreated'"]
)
async def test_an_update_that_another_release_kept_stays_if_this_one_does_not_know_it(
    fragile: Service, changed: str
) -> None:
    await fragile.inbound.receive("messenger_a", written())
    async with fragile.db.transaction() as tx:
        await tx.execute(f"UPDATE core_shelf SET {changed}", {})
    [item] = await shelved(fragile)
    left = await fragile.get(ItemTaker).take("messenger_a", item.item_id)

    assert left is not None
    assert left.reason == UnreadableReason.MALFORMED
    assert left.detail.startswith("another release kept it")
    assert "hello" not in left.detail
