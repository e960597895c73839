"""How often a person is sent codes, and how often theirs are guessed: exactly, also all at once."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import httpx2
import pytest

from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled
from msgsvc_otp import plugin
from msgsvc_otp.settings import OtpSettings

from .conftest import ann_of, refusal, shown


async def active(service: Service) -> int:
    async with service.db.read() as tx:
        return int(await tx.fetch_val("SELECT COUNT(*) FROM otp_codes WHERE status = 'active'"))


@pytest.mark.shared_service
@pytest.mark.parametrize(
    ("after_s", "retry_after"), [(0, "30"), (0.001, "30"), (29, "1"), (29.999, "1"), (30, None)]
)
async def test_another_code_may_follow_after_30_seconds(
    client: httpx2.AsyncClient,
    ann_id: str,
    send: Any,
    clock: FakeClock,
    after_s: float,
    retry_after: str | None,
) -> None:
    first = await send()
    clock.advance(after_s)

    answer = await client.post("/v1/otp/send", json={"subscriber_id": ann_id})

    assert answer.headers.get("Retry-After") == retry_after
    if retry_after is None:
        assert answer.status_code == 202
    else:
        assert refusal(answer) == (425, "too_early")
        assert answer.json()["retryable"] is True
        # What was refused has changed nothing.
        assert (await shown(client, first))["status"] == "sent"


async def test_sixth_code_of_an_hour_waits_for_the_first_to_be_an_hour_old(
    client: httpx2.AsyncClient, ann: Any, ann_id: str, send: Any, clock: FakeClock
) -> None:
    for purpose in ("login", "pay", "login", "pay", "login"):
        await send(purpose=purpose)
        clock.advance(60)
    before = len(ann.messages)

    refused = await client.post("/v1/otp/send", json={"subscriber_id": ann_id, "purpose": "new"})
    clock.advance(3600 - 300 - 0.001)
    almost = await client.post("/v1/otp/send", json={"subscriber_id": ann_id, "purpose": "new"})
    clock.advance(0.001)
    await send(purpose="new")
    next_one = await client.post("/v1/otp/send", json={"subscriber_id": ann_id})

    assert refusal(refused) == refusal(almost) == (429, "otp_rate_limited")
    assert [one.headers["Retry-After"] for one in (refused, almost, next_one)] == [
        "3300",
        "1",
        "60",
    ]
    assert refused.json()["retryable"] is True
    assert len(ann.messages) == before + 1


async def test_limit_of_one_person_is_none_of_another(
    service: Service, client: httpx2.AsyncClient, ann_id: str, bob: Any, send: Any
) -> None:
    bob_id = await bob.subscribe(client)
    for number in range(5):
        await send(purpose=f"p{number}")

    answer = await client.post("/v1/otp/send", json={"subscriber_id": bob_id})
    await settled(service)

    assert answer.status_code == 202
    assert bob.shown.startswith("Ваш код для Shop:")


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_fifty_sends_at_once_make_one_active_code(
    service: Service, client: httpx2.AsyncClient, ann: Any, ann_id: str
) -> None:
    answers = await asyncio.gather(
        *(client.post("/v1/otp/send", json={"subscriber_id": ann_id}) for _ in range(50))
    )
    await settled(service)

    assert Counter(answer.status_code for answer in answers) == {202: 1, 425: 49}
    assert await active(service) == 1
    assert len([one for one in ann.messages if "Your code" in one.message.text]) == 1


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_sends_at_once_without_a_wait_between_keep_to_the_hour_and_one_active_code(
    make_service: Any, make_tenant: Any
) -> None:
    service = await make_service(
        extra_plugins=[("otp", plugin)], otp={"resend_after_s": 0, "sends_per_hour": 7}
    )
    client = (await make_tenant(service)).client
    person = ann_of(service)
    subscriber_id = await person.subscribe(client)

    answers = await asyncio.gather(
        *(client.post("/v1/otp/send", json={"subscriber_id": subscriber_id}) for _ in range(50))
    )

    assert Counter(answer.status_code for answer in answers) == {202: 7, 429: 43}
    assert await active(service) == 1


async def test_wrong_guesses_are_limited_over_all_codes_of_a_person(
    client: httpx2.AsyncClient, ann: Any, ann_id: str, send: Any, verify: Any, clock: FakeClock
) -> None:
    for purpose in ("login", "pay", "login"):
        await send(purpose=purpose, max_attempts=4)
        for _ in range(4 if purpose == "login" else 2):
            assert (await verify(subscriber_id=ann_id, purpose=purpose, code=ann.wrong)).json()[
                "code"
            ] == "otp_invalid"
        clock.advance(30)

    # 10 wrong ones. The next code stands one guess, and no second one.
    otp_id = await send(purpose="pay", max_attempts=4)
    first = await verify(otp_id=otp_id, code=ann.wrong)
    second = await verify(otp_id=otp_id, code=ann.code)

    assert first.json()["code"] == "otp_invalid"
    assert refusal(second) == (429, "otp_rate_limited")
    # The first code was tried last at 12:00:00; 90 s have gone by.
    assert second.headers["Retry-After"] == str(3600 - 90)
    # What was not compared was not counted.
    assert (await shown(client, otp_id))["attempts_left"] == 3


async def test_who_has_the_code_in_hand_gets_in_after_others_guessed_for_an_hour(
    ann: Any, ann_id: str, send: Any, verify: Any, clock: FakeClock
) -> None:
    for _ in range(4):
        await send(max_attempts=10)
        for _ in range(10):
            await verify(subscriber_id=ann_id, code=ann.wrong)
        clock.advance(30)

    await send()
    answer = await verify(subscriber_id=ann_id, code=ann.code)

    assert answer.status_code == 200


async def test_right_codes_are_no_wrong_guesses(
    ann: Any, send: Any, verify: Any, clock: FakeClock
) -> None:
    for _ in range(20):
        otp_id = await send(max_attempts=3)
        assert (await verify(otp_id=otp_id, code=ann.code)).is_success
        clock.advance(720)

    otp_id = await send()
    for _ in range(2):
        assert (await verify(otp_id=otp_id, code=ann.wrong)).json()["code"] == "otp_invalid"


def test_settings_begin_with_the_numbers_of_the_interface_spec() -> None:
    assert OtpSettings().model_dump() == {
        "ttl_minutes": 5,
        "most_ttl_minutes": 30,
        "max_attempts": 3,
        "most_max_attempts": 10,
        "length": 6,
        "least_length": 4,
        "most_length": 8,
        "resend_after_s": 30,
        "sends_per_hour": 5,
        "guesses_per_hour": 10,
        "link_lifetime_s": 600,
        # The hosted pages are not in the specification.
        "page_lifetime_s": 1800,
        "page_requests_per_minute": 30,
        "allow_http_returns": False,
    }


@pytest.mark.parametrize(
    "values",
    [
        {"ttl_minutes": 31},
        {"max_attempts": 11},
        {"length": 9},
        {"length": 3},
        {"guesses_per_hour": 0},
    ],
)
def test_settings_that_contradict_each_other_are_refused(values: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"must be|greater than"):
        OtpSettings(**values)


async def test_limits_are_those_of_the_settings(make_service: Any, make_tenant: Any) -> None:
    service = await make_service(
        extra_plugins=[("otp", plugin)],
        otp={"length": 4, "most_ttl_minutes": 60, "ttl_minutes": 45, "resend_after_s": 0},
    )
    client = (await make_tenant(service)).client
    person = ann_of(service)
    body = {"subscriber_id": await person.subscribe(client)}

    answers: Sequence[httpx2.Response] = [
        await client.post("/v1/otp/send", json={**body, **terms})
        for terms in ({}, {"ttl_minutes": 60}, {"ttl_minutes": 61})
    ]
    await settled(service)

    assert [answer.status_code for answer in answers] == [202, 202, 400]
    assert answers[0].json()["expires_at"] == "2026-01-15T12:45:00.000Z"
    assert len(person.code) == 4
