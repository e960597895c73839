"""Checking a code."""

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled
from msgsvc_otp import plugin

from .conftest import refusal


async def test_right_code_tells_who_gave_it(ann: Any, ann_id: str, send: Any, verify: Any) -> None:
    otp_id = await send()

    answer = await verify(subscriber_id=ann_id, code=ann.code)

    assert answer.status_code == 200
    assert answer.json() == {
        "verified": True,
        "otp_id": otp_id,
        "purpose": "login",
        "subscriber_id": ann_id,
        "channel": "messenger_a",
        "first_name": "Ann",
        "username": "ann_k",
        "lang": "en",
        "tags": [],
        "external_id": None,
        "proves": "account",
    }


async def test_code_can_be_named_by_its_id(ann: Any, send: Any, verify: Any) -> None:
    otp_id = await send(purpose="pay")

    answer = await verify(otp_id=otp_id, code=ann.code)

    assert (answer.status_code, answer.json()["purpose"]) == (200, "pay")


async def test_spaces_in_a_code_do_not_matter(ann: Any, send: Any, verify: Any) -> None:
    otp_id = await send()

    assert (await verify(otp_id=otp_id, code=f" {ann.code[:3]} {ann.code[3:]} ")).is_success


async def test_a_form_sent_in_empty_is_no_attempt(ann: Any, send: Any, verify: Any) -> None:
    otp_id = await send()

    empty = [await verify(otp_id=otp_id, code=code) for code in ("", " ", "   ")]

    assert [refusal(answer) for answer in empty] == [(400, "validation_failed")] * 3
    assert (await verify(otp_id=otp_id, code=ann.code)).is_success


async def test_code_works_once(ann: Any, ann_id: str, send: Any, verify: Any) -> None:
    otp_id = await send()
    await verify(otp_id=otp_id, code=ann.code)

    for named in ({"otp_id": otp_id}, {"subscriber_id": ann_id}):
        answer = await verify(**named, code=ann.code)

        assert refusal(answer) == (400, "otp_invalid")
        assert answer.json()["error"] == "code: used before; a code works once"


async def test_wrong_codes_count_down_and_the_right_one_comes_too_late(
    ann: Any, send: Any, verify: Any, seen: Any
) -> None:
    otp_id = await send()

    answers = [await verify(otp_id=otp_id, code=ann.wrong) for _ in range(3)]
    late = await verify(otp_id=otp_id, code=ann.code)

    assert [refusal(answer) for answer in answers] == [(400, "otp_invalid")] * 3
    assert [answer.json()["error"] for answer in answers] == [
        "code: wrong; 2 attempts left",
        "code: wrong; 1 attempt left",
        "code: wrong, and it was the last attempt; send another",
    ]
    assert refusal(late) == (400, "otp_max_attempts")
    assert await seen() == [
        ("otp.sent", 3),
        ("otp.failed_attempt", 2),
        ("otp.failed_attempt", 1),
        ("otp.failed_attempt", 0),
        ("otp.max_attempts_reached", 0),
    ]


async def test_last_attempt_may_be_the_right_one(
    ann: Any, send: Any, verify: Any, seen: Any
) -> None:
    otp_id = await send(max_attempts=2)
    await verify(otp_id=otp_id, code=ann.wrong)

    assert (await verify(otp_id=otp_id, code=ann.code)).status_code == 200
    assert (await seen())[-1] == ("otp.verified", 0)


@pytest.mark.shared_service
@pytest.mark.parametrize("code", ["abcdef", "12345", "1234567", "١٢٣٤٥٦"])
async def test_what_is_no_code_is_a_wrong_one(ann: Any, send: Any, verify: Any, code: str) -> None:
    otp_id = await send()

    assert (await verify(otp_id=otp_id, code=code)).json()[
        "error"
    ] == "code: wrong; 2 attempts left"


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_hundred_right_codes_at_once_succeed_once(
    ann: Any, ann_id: str, send: Any, verify: Any, seen: Any
) -> None:
    await send(max_attempts=10)
    code = ann.code

    answers = await asyncio.gather(*(verify(subscriber_id=ann_id, code=code) for _ in range(100)))

    assert Counter(answer.status_code for answer in answers) == {200: 1, 400: 99}
    assert {answer.json().get("code") for answer in answers} == {None, "otp_invalid"}
    assert (await seen())[1:] == [("otp.verified", 9)]


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_two_hundred_wrong_codes_at_once_are_compared_as_often_as_allowed(
    ann: Any, send: Any, verify: Any, seen: Any
) -> None:
    otp_id, wrong = await send(), ann.wrong

    answers = await asyncio.gather(*(verify(otp_id=otp_id, code=wrong) for _ in range(200)))

    assert Counter(refusal(answer) for answer in answers) == {
        (400, "otp_invalid"): 3,
        (400, "otp_max_attempts"): 197,
    }
    names = [name for name, _ in await seen()]
    assert names.count("otp.failed_attempt") == 3
    assert names.count("otp.max_attempts_reached") == 1


@pytest.mark.shared_service
@pytest.mark.parametrize(
    ("after_s", "status"), [(299, 200), (299.999, 200), (300, 400), (301, 400)]
)
async def test_code_is_good_for_300_seconds(
    ann: Any, send: Any, verify: Any, clock: FakeClock, after_s: float, status: int
) -> None:
    otp_id, code = await send(), ann.code
    clock.advance(after_s)

    answer = await verify(otp_id=otp_id, code=code)

    assert answer.status_code == status
    assert answer.json().get("code") == (None if status == 200 else "otp_expired")


@pytest.mark.parametrize(("after_s", "status"), [(299, 200), (301, 400)])
async def test_time_goes_on_over_a_restart(
    service: Service,
    make_service: Any,
    tenant: Any,
    ann: Any,
    send: Any,
    clock: FakeClock,
    after_s: float,
    status: int,
) -> None:
    otp_id, code = await send(), ann.code
    await service.stop()
    clock.advance(after_s)
    again = await make_service(
        extra_plugins=[("otp", plugin)], database_url=service.settings.database_url
    )

    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=again.app),
        base_url="http://msgsvc.test",
        headers={"Authorization": f"Bearer {tenant.key}"},
    ) as client:
        answer = await client.post("/v1/otp/verify", json={"otp_id": otp_id, "code": code})

    assert answer.status_code == status


async def test_attempt_is_counted_once_for_one_idempotency_key(
    client: httpx2.AsyncClient, ann: Any, send: Any
) -> None:
    otp_id = await send()
    body = {"otp_id": otp_id, "code": ann.wrong}
    headers = {"Idempotency-Key": "guess-0001"}

    first = await client.post("/v1/otp/verify", json=body, headers=headers)
    again = await client.post("/v1/otp/verify", json=body, headers=headers)
    shown = (await client.get(f"/v1/otp/{otp_id}")).json()

    assert refusal(first) == (400, "otp_invalid")
    assert again.json() == first.json()
    assert again.headers["Idempotent-Replayed"] == "true"
    assert shown["attempts_left"] == 2


async def test_success_is_answered_again_for_the_same_idempotency_key(
    client: httpx2.AsyncClient, ann: Any, send: Any
) -> None:
    body = {"otp_id": await send(), "code": ann.code}
    headers = {"Idempotency-Key": "guess-0001"}

    first = await client.post("/v1/otp/verify", json=body, headers=headers)
    again = await client.post("/v1/otp/verify", json=body, headers=headers)

    assert (first.status_code, again.status_code) == (200, 200)
    assert again.json() == first.json()


async def test_code_of_another_purpose_is_not_compared(
    ann: Any, ann_id: str, send: Any, verify: Any, client: httpx2.AsyncClient
) -> None:
    otp_id = await send(purpose="pay")

    by_id = await verify(otp_id=otp_id, purpose="login", code=ann.code)
    by_person = await verify(subscriber_id=ann_id, code=ann.code)

    assert refusal(by_id) == refusal(by_person) == (400, "otp_invalid")
    assert by_id.json()["error"] == "purpose: this code is for pay"
    assert (await client.get(f"/v1/otp/{otp_id}")).json()["attempts_left"] == 3


@pytest.mark.shared_service
@pytest.mark.parametrize(
    ("named", "status", "code"),
    [
        ({}, 400, "validation_failed"),
        ({"subscriber_id": "sub_x", "external_id": "x"}, 400, "mutually_exclusive_identifiers"),
        ({"otp_id": "otp_x", "subscriber_id": "x"}, 400, "mutually_exclusive_identifiers"),
        ({"otp_id": "otp_x"}, 404, "not_found"),
        ({"subscriber_id": "sub_x"}, 404, "subscriber_not_found"),
        ({"external_id": "nobody"}, 404, "subscriber_not_found"),
        ({"external_id": " x"}, 400, "invalid_external_id"),
        ({"subscriber_id": "sub_x", "channel": "none"}, 400, "validation_failed"),
        ({"otp_id": "otp_x", "purpose": "Pay"}, 400, "validation_failed"),
    ],
)
async def test_what_names_no_code(
    verify: Any, named: dict[str, str], status: int, code: str
) -> None:
    assert refusal(await verify(**named, code="123456")) == (status, code)


async def test_code_of_an_external_id_is_found_on_the_channel_it_went_to(
    service: Service, client: httpx2.AsyncClient, ann: Any, verify: Any, clock: FakeClock
) -> None:
    elsewhere = replace(ann, channel_name="messenger_b")
    await ann.subscribe(client, external_id="u-1")
    clock.advance(1)
    await elsewhere.subscribe(client, external_id="u-1")
    answer = await client.post(
        "/v1/otp/send", json={"external_id": "u-1", "channel": "messenger_a"}
    )
    assert answer.status_code == 202
    await settled(service)

    verified = await verify(external_id="u-1", code=ann.code)

    assert (verified.status_code, verified.json()["channel"]) == (200, "messenger_a")


async def test_who_names_nothing_is_told_of_all_that_names_a_code(verify: Any) -> None:
    error = (await verify(code="123456")).json()["error"]

    assert error == "otp_id: give it, or subscriber_id, or external_id"
