"""Sending codes: what they are like, how often, and to whom."""

from collections import Counter
from typing import Any

import httpx2
import pytest

from msgsvc_core.billing import Charge
from msgsvc_core.channels import DeliveryError, Reason
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import BillingBlocked
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled
from msgsvc_otp import plugin
from msgsvc_otp.codes import new_code

from .conftest import ann_of, refusal, shown


async def test_code_is_sent_and_told_of(
    service: Service, client: httpx2.AsyncClient, ann: Any, ann_id: str, seen: Any
) -> None:
    answer = await client.post("/v1/otp/send", json={"subscriber_id": ann_id})
    await settled(service)

    otp_id = answer.json()["otp_id"]
    assert answer.status_code == 202
    assert answer.json() == {"otp_id": otp_id, "expires_at": "2026-01-15T12:05:00.000Z"}
    assert otp_id.startswith("otp_")
    assert ann.shown == (
        f"Your code for Shop:\n\n{ann.code}\n\nIt is valid for 5 min. Don't share it with anyone."
    )
    assert len(ann.code) == 6
    assert await seen() == [("otp.sent", 3)]
    assert await shown(client, otp_id) == {
        "otp_id": otp_id,
        "status": "sent",
        "purpose": "login",
        "subscriber_id": ann_id,
        "attempts_left": 3,
        "reason": None,
        "created_at": "2026-01-15T12:00:00.000Z",
        "expires_at": "2026-01-15T12:05:00.000Z",
    }


async def test_event_carries_the_person_and_no_code(
    client: httpx2.AsyncClient, ann: Any, ann_id: str, send: Any
) -> None:
    otp_id = await send(purpose="pay")

    (event,) = (await client.get("/v1/events?event=otp.sent")).json()["data"]
    assert event["data"] == {
        "occurred_at": "2026-01-15T12:00:00.000Z",
        "subscriber_id": ann_id,
        "channel": "messenger_a",
        "first_name": "Ann",
        "username": "ann_k",
        "lang": "en",
        "tags": [],
        "external_id": None,
        "otp_id": otp_id,
        "purpose": "pay",
        "attempts_left": 3,
    }


async def test_terms_can_be_chosen(client: httpx2.AsyncClient, ann: Any, send: Any) -> None:
    otp_id = await send(purpose="pay_2", ttl_minutes=30, max_attempts=10, length=8, lang="ru")

    code = await shown(client, otp_id)
    assert (code["purpose"], code["attempts_left"]) == ("pay_2", 10)
    assert code["expires_at"] == "2026-01-15T12:30:00.000Z"
    assert len(ann.code) == 8
    assert ann.shown.startswith("Ваш код для Shop:")


@pytest.mark.shared_service
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("ttl_minutes", 0),
        ("ttl_minutes", 31),
        ("ttl_minutes", "5"),
        ("max_attempts", 0),
        ("max_attempts", 11),
        ("length", 3),
        ("length", 9),
        ("purpose", "Login"),
        ("purpose", ""),
        ("purpose", "x" * 33),
        ("lang", "de_"),
        ("channel", "none"),
        ("colour", "red"),
    ],
)
async def test_terms_beyond_their_range_are_refused(
    client: httpx2.AsyncClient, ann_id: str, field: str, value: Any
) -> None:
    answer = await client.post("/v1/otp/send", json={"subscriber_id": ann_id, field: value})

    assert refusal(answer) == (400, "validation_failed")
    assert answer.json()["error"].startswith(f"{field}: ")


@pytest.mark.shared_service
@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 400, "validation_failed"),
        ({"subscriber_id": "sub_x"}, 404, "subscriber_not_found"),
        ({"external_id": "nobody"}, 404, "subscriber_not_found"),
        ({"external_id": " x"}, 400, "invalid_external_id"),
        ({"subscriber_id": "x", "external_id": "x"}, 400, "mutually_exclusive_identifiers"),
    ],
)
async def test_nobody_is_named(
    client: httpx2.AsyncClient, body: dict[str, str], status: int, code: str
) -> None:
    assert refusal(await client.post("/v1/otp/send", json=body)) == (status, code)


async def test_who_has_left_is_sent_no_code(client: httpx2.AsyncClient, ann_id: str) -> None:
    await client.delete(f"/v1/subscribers/{ann_id}")

    answer = await client.post("/v1/otp/send", json={"subscriber_id": ann_id})

    assert refusal(answer) == (409, "conflict")


async def test_new_code_ends_the_old_one_of_the_same_purpose(
    client: httpx2.AsyncClient, ann: Any, ann_id: str, send: Any, verify: Any, clock: FakeClock
) -> None:
    first, old = await send(), ann.code
    other = await send(purpose="pay")
    clock.advance(30)
    second = await send()

    assert (await shown(client, first))["status"] == "superseded"
    assert (await shown(client, other))["status"] == "sent"
    by_id = await verify(otp_id=first, code=old)
    assert refusal(by_id) == (400, "otp_invalid")
    assert by_id.json()["error"] == "code: a newer one has taken its place"
    assert (await verify(subscriber_id=ann_id, code=ann.code)).json()["otp_id"] == second


async def test_code_that_had_run_out_stays_expired_when_another_is_sent(
    client: httpx2.AsyncClient, ann: Any, send: Any, verify: Any, clock: FakeClock
) -> None:
    first = await send()
    clock.advance(300)
    assert (await shown(client, first))["status"] == "expired"
    await send()

    assert (await shown(client, first))["status"] == "expired"
    assert refusal(await verify(otp_id=first, code=ann.code)) == (400, "otp_expired")


async def test_message_that_the_messenger_refuses_is_told_by_its_reason(
    service: Service, client: httpx2.AsyncClient, ann: Any, ann_id: str, send: Any, seen: Any
) -> None:
    ann.channel.failures.append(DeliveryError(Reason.INVALID_MESSAGE, "no"))

    otp_id = await send()

    code = await shown(client, otp_id)
    assert (code["status"], code["reason"]) == ("failed", "invalid_message")
    assert await seen() == []
    assert (await client.get(f"/v1/subscribers/{ann_id}")).json()["status"] == "active"


@pytest.mark.both_databases
@pytest.mark.parametrize("reason", [Reason.USER_BLOCKED_BOT, Reason.CHAT_NOT_FOUND])
async def test_who_can_not_be_reached_is_blocked_as_by_a_message(
    client: httpx2.AsyncClient, ann: Any, ann_id: str, send: Any, reason: Reason
) -> None:
    ann.channel.failures.append(DeliveryError(reason, "no"))

    otp_id = await send()

    assert (await shown(client, otp_id))["reason"] == str(reason)
    assert (await client.get(f"/v1/subscribers/{ann_id}")).json()["status"] == "blocked"
    (gone,) = (await client.get("/v1/events?event=subscription.deleted")).json()["data"]
    assert gone["data"]["reason"] == str(reason)
    again = await client.post("/v1/otp/send", json={"subscriber_id": ann_id, "purpose": "pay"})
    assert refusal(again) == (409, "conflict")


async def test_repeated_send_of_one_key_sends_one_code(
    service: Service, client: httpx2.AsyncClient, ann: Any, ann_id: str
) -> None:
    before = len(ann.messages)
    headers = {"Idempotency-Key": "send-0001"}

    first, again = [
        await client.post("/v1/otp/send", json={"subscriber_id": ann_id}, headers=headers)
        for _ in range(2)
    ]
    await settled(service)

    assert (first.status_code, again.status_code) == (202, 202)
    assert again.json() == first.json()
    assert len(ann.messages) == before + 1


class Accounts:
    """Keeps the charges that it was told of, and refuses them when it should."""

    def __init__(self) -> None:
        self.charges: list[Charge] = []
        self.refuses = False

    @hookimpl
    async def charge(self, tx: Tx, charge: Charge) -> None:
        if self.refuses:
            raise BillingBlocked
        self.charges.append(charge)


async def test_each_code_is_charged_and_may_be_refused(
    make_service: Any, make_tenant: Any, clock: FakeClock
) -> None:
    accounts = Accounts()
    service = await make_service(extra_plugins=[("otp", plugin), ("accounts", accounts)])
    tenant = await make_tenant(service)
    person = ann_of(service)
    subscriber_id = await person.subscribe(tenant.client)
    body = {"subscriber_id": subscriber_id}

    first = (await tenant.client.post("/v1/otp/send", json=body)).json()["otp_id"]
    await settled(service)
    clock.advance(30)
    accounts.refuses = True
    refused = await tenant.client.post("/v1/otp/send", json=body)

    project_id = tenant.project.project_id
    assert accounts.charges == [Charge(project_id, "otp.send", first, refusable=True)]
    assert refusal(refused) == (402, "billing_blocked")
    assert (await shown(tenant.client, first))["status"] == "sent"


def test_codes_are_random_digits_with_zeros_in_front() -> None:
    codes = [new_code(4) for _ in range(20_000)]

    assert all(len(code) == 4 and code.isdecimal() for code in codes)
    # Each of 40 counts is near 2000: 8 standard deviations of 42 are not met by chance.
    for place in range(4):
        counts = Counter(code[place] for code in codes)
        assert set(counts) == set("0123456789")
        assert all(abs(count - 2000) < 340 for count in counts.values())
