"""What leads people into chains, what ends them, and who may come in again."""

from typing import Any

import pytest

from msgsvc_core.channels import ChannelUser, Started
from msgsvc_devkit import settled

from .conftest import HOUR, Shop, refusal


async def _inside(shop: Shop, drip_id: str) -> list[tuple[str, str]]:
    """Who is, or was, in a chain, and how that stands."""
    return [(one["subscriber_id"], one["status"]) for one in await shop.enrollments(drip_id)]


async def test_subscribing_begins_a_chain(shop: Shop) -> None:
    before = await shop.person("Before")
    drip_id = await shop.chain("Welcome", trigger={"on": "subscription"})
    ann = await shop.person("Ann")
    await shop.person("Ann")

    assert (await _inside(shop, drip_id))[0] == (ann, "active")
    assert before not in dict(await _inside(shop, drip_id))
    assert await shop.after(HOUR) == ["Welcome", "Welcome"]


async def test_trigger_may_ask_for_a_source(shop: Shop) -> None:
    trigger = {"on": "subscription", "value": "auth"}
    drip_id = await shop.chain("Welcome", trigger=trigger)
    await shop.person("Ann", source="deep_link")
    bob = await shop.person("Bob", source="auth")

    assert await _inside(shop, drip_id) == [(bob, "active")]


async def test_new_tag_begins_a_chain_and_one_carried_before_does_not(shop: Shop) -> None:
    drip_id = await shop.chain("Dear VIP", trigger={"on": "tag", "value": "vip"})
    again = await shop.chain(
        "Again", trigger={"on": "tag", "value": "vip"}, reentry="after_completion"
    )
    ann = await shop.person("Ann")
    await shop.call(f"/subscribers/{ann}/tags/other", "PUT")
    assert await _inside(shop, drip_id) == []

    await shop.call(f"/subscribers/{ann}/tags/vip", "PUT")
    await shop.after(HOUR)
    await shop.call(f"/subscribers/{ann}/tags/vip", "PUT")
    await shop.call(f"/subscribers/{ann}", "PATCH", tags=["vip", "more"])

    assert await _inside(shop, drip_id) == [(ann, "completed")]
    assert await _inside(shop, again) == [(ann, "completed")]


async def test_tags_of_a_link_and_of_a_change_begin_a_chain(shop: Shop) -> None:
    drip_id = await shop.chain("Dear VIP", trigger={"on": "tag", "value": "vip"})
    await shop.call("/tags", name="vip")
    ann = await shop.person("Ann", tags=["vip"])
    bob = await shop.person("Bob")
    await shop.call(f"/subscribers/{bob}", "PATCH", tags=["vip"])
    link = (await shop.call("/subscribers/links", tags=["vip"]))["links"]["messenger_a"]
    start = Started(
        update_id="1",
        chat_id="chat-Cat",
        user=ChannelUser("user-cat", "Cat", None, "en"),
        payload=link.partition("?start=")[2],
    )
    await shop.service.inbound.receive("messenger_a", start)
    await settled(shop.service)

    inside = await _inside(shop, drip_id)
    assert inside[:2] == [(ann, "active"), (bob, "active")]
    assert len(inside) == 3


async def test_granted_permission_begins_a_chain_and_a_revoked_one_does_not(shop: Shop) -> None:
    for key in ("news", "sale"):
        await shop.call("/permissions", key=key, title=key)
    news = await shop.chain("News", trigger={"on": "permission", "value": "news"})
    sale = await shop.chain("Sale", trigger={"on": "permission", "value": "sale"})
    ann = await shop.person("Ann", permissions=["sale"])
    await shop.call(f"/subscribers/{ann}/permissions/sale", "DELETE")
    await shop.call(f"/subscribers/{ann}/permissions/news", "PUT")

    assert await _inside(shop, news) == [(ann, "active")]
    assert await _inside(shop, sale) == [(ann, "active")]


async def test_tracked_event_begins_a_chain(shop: Shop) -> None:
    trigger = {"on": "event", "value": "cart.abandoned"}
    drip_id = await shop.chain("Your cart", trigger=trigger)
    ann = await shop.person("Ann")
    await shop.call("/events", subscriber_id=ann, name="cart.filled")
    assert await _inside(shop, drip_id) == []

    await shop.call("/events", subscriber_id=ann, name="cart.abandoned")

    assert await _inside(shop, drip_id) == [(ann, "active")]


async def test_event_of_the_service_begins_a_chain(shop: Shop) -> None:
    trigger = {"on": "event", "value": "subscription.created"}
    drip_id = await shop.chain("Welcome", trigger=trigger)
    ann = await shop.person()

    assert await _inside(shop, drip_id) == [(ann, "active")]


async def test_event_of_another_project_begins_nothing(shop: Shop, make_tenant: Any) -> None:
    trigger = {"on": "event", "value": "cart.abandoned"}
    drip_id = await shop.chain("Your cart", trigger=trigger)
    stranger = Shop(shop.service, await make_tenant(shop.service), shop.clock)
    theirs = await stranger.chain("Theirs", trigger=trigger)
    bob = await stranger.person("Bob")
    await stranger.call("/events", subscriber_id=bob, name="cart.abandoned")

    assert await _inside(shop, drip_id) == []
    assert await _inside(stranger, theirs) == [(bob, "active")]


async def test_what_is_undone_begins_nothing(shop: Shop) -> None:
    drip_id = await shop.chain("Welcome", trigger={"on": "subscription"})
    with pytest.raises(ZeroDivisionError):
        async with shop.service.db.transaction() as tx:
            await shop.service.subscribers.ensure(
                tx,
                shop.project_id,
                "messenger_a",
                ChannelUser("user-x", "Xenia", None, "en"),
                "chat-x",
                source="api",
            )
            raise ZeroDivisionError

    assert await _inside(shop, drip_id) == []


async def test_somebody_is_in_a_chain_once_at_a_time(shop: Shop) -> None:
    drip_id = await shop.chain("one", reentry="after_completion")
    ann = await shop.person("Ann")
    first = await shop.enroll(drip_id, ann)
    answer = await shop.client.post(f"/v1/drips/{drip_id}/enroll", json={"subscriber_id": ann})

    assert refusal(answer) == (409, "conflict")
    assert first in answer.json()["error"]
    assert len(await _inside(shop, drip_id)) == 1


async def test_reentry_decides_whether_somebody_comes_in_again(shop: Shop) -> None:
    never = await shop.chain("never")
    again = await shop.chain("again", reentry="after_completion")
    ann = await shop.person("Ann")
    for drip_id in (never, again):
        await shop.enroll(drip_id, ann)
    await shop.after(HOUR)
    answer = await shop.client.post(f"/v1/drips/{never}/enroll", json={"subscriber_id": ann})
    await shop.enroll(again, ann)

    assert refusal(answer) == (409, "conflict")
    assert sorted(await shop.after(HOUR)) == ["again", "again", "never"]


async def test_stop_on_ends_a_chain_for_the_person_of_the_event(shop: Shop) -> None:
    drip_id = await shop.chain("one", "two", stop_on=["order.paid"])
    other = await shop.chain("other")
    ann, bob = await shop.person("Ann"), await shop.person("Bob")
    for who in (ann, bob):
        await shop.enroll(drip_id, who)
    await shop.enroll(other, ann)
    await shop.call("/events", subscriber_id=ann, name="order.paid")
    await shop.after(HOUR)

    assert await _inside(shop, drip_id) == [(ann, "stopped"), (bob, "active")]
    assert (await shop.enrollments(drip_id))[0]["reason"] == "order.paid"
    assert (shop.texts("Ann"), shop.texts("Bob")) == (["other"], ["one"])
    assert [one["event"] for one in await shop.told("drip.completed")] == ["drip.completed"]


async def test_one_event_may_end_a_chain_and_begin_it_anew(shop: Shop) -> None:
    drip_id = await shop.chain(
        "Your cart",
        trigger={"on": "event", "value": "cart.filled"},
        stop_on=["cart.filled"],
        reentry="after_completion",
    )
    ann = await shop.person("Ann")
    for _ in range(2):
        await shop.call("/events", subscriber_id=ann, name="cart.filled")

    assert await _inside(shop, drip_id) == [(ann, "stopped"), (ann, "active")]


@pytest.mark.both_databases
async def test_who_leaves_or_blocks_is_stopped(shop: Shop) -> None:
    drip_id = await shop.chain("one")
    ann, bob = await shop.person("Ann"), await shop.person("Bob")
    for who in (ann, bob):
        await shop.enroll(drip_id, who)
    await shop.call(f"/subscribers/{ann}", "DELETE")
    async with shop.service.db.transaction() as tx:
        found = await shop.service.subscribers.get(tx, shop.project_id, bob)
        await shop.service.subscribers.block(tx, found.bot, found.user_id, reason="bot_blocked")
    await shop.after(HOUR)

    assert await _inside(shop, drip_id) == [(ann, "stopped"), (bob, "stopped")]
    assert shop.texts() == []


async def test_who_left_while_nobody_was_told_is_stopped(shop: Shop) -> None:
    drip_id = await shop.chain("one")
    ann = await shop.person("Ann")
    await shop.enroll(drip_id, ann)
    # As in a time without the plugin.
    async with shop.service.db.transaction() as tx:
        await tx.execute("UPDATE core_subscribers SET status = 'unsubscribed'")
    await shop.after(HOUR)

    [enrollment] = await shop.enrollments(drip_id)
    assert (enrollment["status"], enrollment["reason"]) == ("stopped", "not subscribed")
    assert shop.texts() == []


async def test_who_has_left_is_not_led_in(shop: Shop) -> None:
    trigger = {"on": "event", "value": "cart.filled"}
    drip_id = await shop.chain("Your cart", trigger=trigger)
    ann = await shop.person("Ann")
    await shop.call(f"/subscribers/{ann}", "DELETE")
    await shop.call("/events", subscriber_id=ann, name="cart.filled")
    answer = await shop.client.post(f"/v1/drips/{drip_id}/enroll", json={"subscriber_id": ann})

    assert refusal(answer) == (409, "conflict")
    assert await _inside(shop, drip_id) == []


async def test_erased_person_takes_their_enrollments_along(shop: Shop) -> None:
    drip_id = await shop.chain("one")
    ann, bob = await shop.person("Ann"), await shop.person("Bob")
    for who in (ann, bob):
        await shop.enroll(drip_id, who)
    await shop.call(f"/subscribers/{ann}?erase=true", "DELETE")

    assert await shop.after(HOUR) == ["one"]
    assert await _inside(shop, drip_id) == [(bob, "completed")]
