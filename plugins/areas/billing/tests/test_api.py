"""What a project's API key shows of the account that pays for it."""

import asyncio
from typing import Any

import httpx2
import pytest

from msgsvc_auth import plugin as auth
from msgsvc_billing import plugin
from msgsvc_core.channels import ButtonPressed, ChannelUser, Started
from msgsvc_core.service import Service
from msgsvc_dashboard.accounts import Accounts
from msgsvc_devkit import FakeClock, RecordingChannel, settled
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from plugins.areas.billing.tests.conftest import DAY, WITH_BILLING, Payer, payer_of


@pytest.fixture
async def payer(service: Service, tenant: Tenant) -> Payer:
    """Who pays for `tenant` and for another project."""
    payer = await payer_of(service)
    async with service.db.transaction() as tx:
        await service.get(Accounts).give_project(tx, tenant.project.project_id, payer.account_id)
    return Payer(service, payer.account_id, tenant.project.project_id)


async def test_a_project_sees_how_its_account_stands(
    client: httpx2.AsyncClient, payer: Payer, clock: FakeClock
) -> None:
    await payer.grant(10)
    await payer.charge("ses_1")
    fine = (await client.get("/v1/billing")).json()
    await payer.spend_all()
    in_grace = (await client.get("/v1/billing")).json()
    clock.advance(3 * DAY)
    blocked = (await client.get("/v1/billing")).json()

    assert fine == {
        "plan": "free",
        "period": {"started_at": "2026-01-15T12:00:00.000Z", "ends_at": "2026-02-15T12:00:00.000Z"},
        "allowance": 100,
        "used": 1,
        "allowance_left": 99,
        "packs": 10,
        "balance": 109,
        "status": "ok",
        "grace_ends_at": None,
        "usage": [{"operation": "auth.confirmed", "quantity": 1, "credits": 1}],
    }
    assert (in_grace["status"], in_grace["balance"]) == ("grace", 0)
    assert in_grace["grace_ends_at"] == "2026-01-18T12:00:00.000Z"
    assert blocked["status"] == "blocked"
    project = (await client.get("/v1/project")).json()
    assert project["plan"] == "free"


@pytest.mark.both_databases
async def test_a_project_sees_its_own_lines_and_days_and_no_other_projects(
    client: httpx2.AsyncClient, service: Service, payer: Payer, clock: FakeClock
) -> None:
    other = await payer_of(service, "bob@shop.example")
    async with service.db.transaction() as tx:
        await service.get(Accounts).give_project(tx, other.project_id, payer.account_id)
    await other.charge("ses_of_other", quantity=5)
    for number in range(3):
        await payer.charge(f"ses_{number}")
    clock.advance(DAY)
    await payer.charge("ses_late")

    first = (await client.get("/v1/billing/ledger", params={"limit": 3})).json()
    rest = (
        await client.get("/v1/billing/ledger", params={"limit": 3, "cursor": first["next_cursor"]})
    ).json()
    assert [line["resource_id"] for line in [*first["data"], *rest["data"]]] == [
        "ses_late",
        "ses_2",
        "ses_1",
        "ses_0",
    ]
    assert rest["next_cursor"] is None
    assert {line["amount"] for line in first["data"]} == {-1}
    since = {"created_after": "2026-01-15T23:59:59Z", "operation": "auth.confirmed"}
    [late] = (await client.get("/v1/billing/ledger", params=since)).json()["data"]
    assert late["resource_id"] == "ses_late"
    none = await client.get("/v1/billing/ledger", params={"operation": "otp.send"})
    assert none.json()["data"] == []
    days = (await client.get("/v1/billing/usage")).json()["days"]
    assert [(one["day"], one["quantity"], one["credits"]) for one in days] == [
        ("2026-01-15", 3, 3),
        ("2026-01-16", 1, 1),
    ]
    today = (
        await client.get("/v1/billing/usage", params={"created_after": "2026-01-16T08:00:00Z"})
    ).json()["days"]
    before = (
        await client.get("/v1/billing/usage", params={"created_before": "2026-01-16T00:00:00Z"})
    ).json()["days"]
    assert [one["day"] for one in today] == ["2026-01-16"]
    assert [one["day"] for one in before] == ["2026-01-15"]


async def test_a_project_of_the_operator_is_not_billed(client: httpx2.AsyncClient) -> None:
    answer = (await client.get("/v1/billing")).json()

    assert (answer["plan"], answer["balance"], answer["status"]) == (None, None, "ok")
    assert (await client.get("/v1/billing/ledger")).json()["data"] == []
    assert (await client.get("/v1/billing/usage")).json()["days"] == []


async def test_lists_can_be_saved_where_the_plan_has_it(
    client: httpx2.AsyncClient, payer: Payer
) -> None:
    refused = await client.get("/v1/subscribers/export")
    await payer.change_plan("basic")
    saved = await client.get("/v1/subscribers/export")

    assert refused.status_code == 403
    assert "'free'" in refused.json()["error"]
    assert saved.status_code == 200


async def test_messages_that_arrived_are_charged_where_they_have_a_price(
    make_service: ServiceFactory, make_tenant: Any, clock: FakeClock
) -> None:
    service = await make_service(**WITH_BILLING, billing={"prices": {"message.sent": 1}})
    payer = await payer_of(service)
    tenant = await make_tenant(service)
    project_id = tenant.project.project_id
    async with service.db.transaction() as tx:
        await service.get(Accounts).give_project(tx, project_id, payer.account_id)
        user = ChannelUser("1", "Ann", None, "en")
        ann = await service.subscribers.ensure(
            tx, project_id, "messenger_a", user, "chat-1", source="api"
        )
    body = {"subscriber_id": ann.subscriber_id, "text": "Hi"}
    await tenant.client.post("/v1/send", json=body)
    await tenant.client.post("/v1/send/batch", json={"messages": [body] * 3})
    await settled(service)

    state = await payer.state()
    assert state.used == 4
    usage = (await tenant.client.get("/v1/billing/usage")).json()["days"]
    assert usage[0]["operation"] == "message.sent"
    assert usage[0]["quantity"] == usage[0]["credits"] == 4
    assert await payer.is_even()


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_of_100_people_who_say_yes_at_once_with_10_credits_10_are_charged_and_all_get_in(
    make_service: ServiceFactory, make_tenant: Any
) -> None:
    service = await make_service(
        extra_plugins=[("auth", auth), ("billing", plugin)],
        plugins=("dashboard",),
        auth={"sessions_per_hour": 1000},
    )
    payer = await payer_of(service)
    tenant = await make_tenant(service)
    async with service.db.transaction() as tx:
        await service.get(Accounts).give_project(tx, tenant.project.project_id, payer.account_id)
    await payer.charge("before", quantity=90)

    sessions = [await _begun(service, tenant, number) for number in range(100)]
    await settled(service)
    yes = [_yes(service, number) for number in range(100)]
    await asyncio.gather(*(_press(service, number, data) for number, data in enumerate(yes)))
    await settled(service)

    for session_id in sessions:
        status = (await tenant.client.get(f"/v1/auth/session/{session_id}/status")).json()
        assert status["status"] == "confirmed"
    amounts = await payer.amounts()
    assert sorted(amounts[f"auth.confirmed {each}"] for each in sessions) == [-1] * 10 + [0] * 90
    assert (await payer.state()).balance == 0
    assert await payer.is_even()


async def _begun(service: Service, tenant: Tenant, number: int) -> str:
    """The session of a person who has opened its link."""
    answer = await tenant.client.post("/v1/auth/session", json={"state": str(number)})
    session = answer.json()
    payload = session["links"]["messenger_a"].partition("?start=")[2]
    user = ChannelUser(str(number), "Ann", None, "en")
    started = Started(update_id=f"s{number}", chat_id=f"chat-{number}", user=user, payload=payload)
    await service.inbound.receive("messenger_a", started)
    return str(session["session_id"])


def _yes(service: Service, number: int) -> str:
    """What the button says to the bot by which a person who was asked says Yes."""
    channel = service.channels["messenger_a"]
    assert isinstance(channel, RecordingChannel)
    [asked] = [sent for sent in channel.sent if sent.chat_id == f"chat-{number}"]
    yes = next(button for row in asked.message.buttons for button in row if button.text == "Yes")
    return yes.data or ""


async def _press(service: Service, number: int, data: str) -> None:
    pressed = ButtonPressed(
        update_id=f"p{number}",
        chat_id=f"chat-{number}",
        user=ChannelUser(str(number), "Ann", None, "en"),
        data=data,
        message_ref="m1",
        button_ref=f"b{number}",
    )
    await service.inbound.receive("messenger_a", pressed)
