"""The whole way over real HTTP: a service, its API, its webhook, and people on the fake platform."""

import pytest

from msgsvc_core.channels.health.states import ChannelStates
from msgsvc_core.kernel.clock import HOUR_MS, SystemClock
from msgsvc_devkit import until
from msgsvc_devkit.contexts import JobInTest
from msgsvc_devkit.platforms.whatsapp import FakeWhatsApp, Person, Refused

from .conftest import Shop

pytestmark = pytest.mark.both_databases


async def test_a_person_signs_in_and_their_number_is_a_verified_contact(
    shop: Shop, platform: FakeWhatsApp
) -> None:
    ann = platform.person("Ann")
    subscriber_id = await shop.subscribe(ann)
    session = (await shop.client.post("/v1/auth/session", json={"state": "xyz"})).json()

    await ann.open(session["links"]["messenger_a"])
    await ann.wait_for("Sign in", button="Yes")
    await ann.press("Yes")
    completed = await shop.event("auth.completed")

    assert (completed["state"], completed["channel"]) == ("xyz", "messenger_a")
    assert completed["subscriber_id"] == subscriber_id
    assert await _phone(shop, subscriber_id) == f"+{ann.number}"


async def test_who_hides_their_number_has_no_verified_contact(
    shop: Shop, platform: FakeWhatsApp
) -> None:
    ann = platform.person("Ann", username="ann")
    ann.shows_number = False
    subscriber_id = await shop.subscribe(ann)
    person = (await shop.client.get(f"/v1/subscribers/{subscriber_id}")).json()

    assert await _phone(shop, subscriber_id) is None
    assert person["username"] == "ann"


async def test_a_message_with_buttons_and_a_picture_is_seen_and_clicked(
    shop: Shop, platform: FakeWhatsApp, media_url: str
) -> None:
    ann = platform.person("Ann")
    subscriber_id = await shop.subscribe(ann)

    message_id = await shop.send(
        subscriber_id,
        "<b>Lunch</b> at 12 & 1?",
        format="html",
        media={"type": "image", "url": f"{media_url}/p.png"},
        buttons=[
            [{"text": "At 12", "data": "lunch:12"}],
            [{"text": "Menu", "url": "https://x.example"}],
        ],
    )
    shown = await ann.wait_for("Lunch at 12 & 1?", button="At 12")
    await ann.press("At 12")
    click = await shop.event("button.clicked")

    assert shown.media == "image"
    assert shown.looks == (("bold", "Lunch"),)
    assert "Menu: https://x.example" in shown.text
    assert (click["message_id"], click["data"], click["text"]) == (message_id, "lunch:12", "At 12")


async def test_who_has_not_written_for_a_day_gets_the_template(
    shop: Shop, platform: FakeWhatsApp
) -> None:
    ann = platform.person("Ann")
    subscriber_id = await shop.subscribe(ann)
    platform.pass_time(25)
    await _let_pass(shop, ann, 25)

    await shop.send(subscriber_id, "Your order\nis *ready*")
    shown = await ann.wait_for("Your order is *ready*")
    await shop.event("delivery.success")

    assert shown.template == "notice"
    assert not any(status == "failed" for status in _statuses(platform))


async def test_who_opts_out_is_unsubscribed(shop: Shop, platform: FakeWhatsApp) -> None:
    ann = platform.person("Ann")
    subscriber_id = await shop.subscribe(ann)

    await ann.opt_out()
    deleted = await shop.event("subscription.deleted")

    assert deleted["subscriber_id"] == subscriber_id


async def test_who_seemed_unreachable_and_writes_is_subscribed_again(
    shop: Shop, platform: FakeWhatsApp
) -> None:
    """131026 is also the answer for an old app, or for terms that somebody has not accepted yet."""
    ann = platform.person("Ann")
    subscriber_id = await shop.subscribe(ann)
    await ann.wait_for("subscribed")
    platform.faults.fail_next(Refused(400, 131026, "Message undeliverable"))
    await shop.send(subscriber_id, "Your order is ready")
    deleted = await shop.event("subscription.deleted")
    before = (await shop.client.get(f"/v1/subscribers/{subscriber_id}")).json()

    await ann.write("Is it ready?")

    async def is_active() -> bool:
        found = await shop.client.get(f"/v1/subscribers/{subscriber_id}")
        return bool(found.json()["status"] == "active")

    assert (deleted["reason"], before["status"]) == ("chat_not_found", "blocked")
    assert await until(is_active)
    await shop.send(subscriber_id, "It is")
    await ann.wait_for("It is")


async def test_an_update_that_comes_five_times_has_one_effect(
    shop: Shop, platform: FakeWhatsApp
) -> None:
    platform.webhooks.repeats = 5
    ann = platform.person("Ann")
    subscriber_id = await shop.subscribe(ann)
    await shop.send(subscriber_id, "Vote", buttons=[[{"text": "For", "data": "vote:1"}]])
    await ann.wait_for("Vote", button="For")

    await ann.press("For")
    await shop.event("button.clicked")
    platform.webhooks.answers.clear()
    await ann.write("Marks that all five have come")

    async def told() -> bool:
        return len(platform.webhooks.answers) >= 5

    await until(told)

    assert len(await shop.events("button.clicked")) == 1
    assert len(await shop.events("subscription.created")) == 1


async def test_the_webhook_answers_strangers_with_401(shop: Shop) -> None:
    path = "/hooks/messenger_a"
    query = {"hub.mode": "subscribe", "hub.challenge": "1", "hub.verify_token": "guess"}

    assert (await shop.client.get(path, params=query)).status_code == 401
    assert (await shop.client.post(path, json={"object": "x"})).status_code == 401


async def _phone(shop: Shop, subscriber_id: str) -> str | None:
    """The verified phone number of a subscriber."""
    project_id = (await shop.client.get("/v1/project")).json()["project_id"]
    async with shop.service.db.read() as tx:
        return (await shop.service.contacts.find(tx, project_id, subscriber_id)).phone


async def _let_pass(shop: Shop, person: Person, hours: float) -> None:
    """As if the last update of a person's chat had come hours ago."""
    async with shop.service.db.transaction() as tx:
        await tx.execute(
            "UPDATE core_chats SET seen_at_ms = seen_at_ms - :passed_ms WHERE chat_id = :chat_id",
            {"passed_ms": int(hours * HOUR_MS), "chat_id": person.user_id},
        )


def _statuses(platform: FakeWhatsApp) -> list[str]:
    values = [body["entry"][0]["changes"][0]["value"] for body in platform.webhooks.all]
    return [status["status"] for value in values for status in value.get("statuses", [])]


@pytest.mark.parametrize("at_once", [False, True])
async def test_an_unpaid_bill_stops_the_channel_until_it_is_paid(
    shop: Shop, platform: FakeWhatsApp, *, at_once: bool
) -> None:
    ann = platform.person("Ann")
    subscriber_id = await shop.subscribe(ann)
    await ann.wait_for("subscribed")
    platform.unpaid, platform.refuses_at_once = True, at_once
    first = await shop.send(subscriber_id, "First")
    channel = shop.service.channels["messenger_a"]

    async def stopped() -> str:
        async with shop.service.db.read() as tx:
            state = await shop.service.get(ChannelStates).find(tx, channel.key)
        return (state.detail or "") if state is not None and state.stopped else ""

    detail = await until(stopped, interval_s=0.05)
    second = await shop.send(subscriber_id, "Second")
    # The number itself is fine, but the bill is still unpaid.
    await shop.service.get(ChannelStates).check_stopped(JobInTest(shop.service.db), [])
    still = await stopped()
    platform.unpaid = False
    await shop.service.get(ChannelStates).check_stopped(JobInTest(shop.service.db), [])
    await ann.wait_for("Second")

    async def settled() -> bool:
        found = [
            (await shop.client.get(f"/v1/messages/{message_id}")).json()["status"]
            for message_id in (first, second)
        ]
        # One message reports it, maybe before the answer to its call is recorded; the others wait.
        return found == ["failed", "sent"]

    await until(settled, interval_s=0.1)

    assert "payment method" in detail
    assert still == detail


async def test_a_late_report_of_an_unpaid_bill_stops_nothing(
    shop: Shop, platform: FakeWhatsApp
) -> None:
    channel = shop.service.channels["messenger_a"]
    two_hours_ago = SystemClock().now_ms() - 2 * HOUR_MS
    async with shop.service.db.transaction() as tx:
        done = await shop.service.get(ChannelStates).stop_by_report(
            tx, channel.key, "131042: unpaid", two_hours_ago
        )

    assert not done
