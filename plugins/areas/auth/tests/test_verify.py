"""Exchanging a code."""

import asyncio

import httpx2
import pytest

from msgsvc_auth import plugin


async def test_code_tells_who_signed_in(client, clock, ann, sign_in):
    signed_in = await sign_in(ann)

    response = await client.post("/v1/auth/verify", json={"code": signed_in["code"]})

    answer = response.json()
    assert response.status_code == 200
    assert answer.pop("subscriber_id").startswith("sub_")
    assert answer == {
        "channel": "messenger_a",
        "first_name": "Ann",
        "username": "ann_k",
        "lang": "en",
        "tags": [],
        "external_id": None,
        "state": "xyz",
        "auth_time": "2026-01-15T12:00:00.000Z",
        "session_id": signed_in["session_id"],
        "proves": "account",
    }


async def test_second_verify_of_the_same_code_is_refused(client, ann, sign_in):
    body = {"code": (await sign_in(ann))["code"]}
    await client.post("/v1/auth/verify", json=body)

    response = await client.post("/v1/auth/verify", json=body)

    assert (response.status_code, response.json()["code"]) == (409, "auth_code_used")


async def test_hundred_parallel_verifies_of_one_code_give_one_person(client, ann, sign_in):
    body = {"code": (await sign_in(ann))["code"]}

    responses = await asyncio.gather(
        *(client.post("/v1/auth/verify", json=body) for _ in range(100))
    )

    outcomes = [(response.status_code, response.json().get("code")) for response in responses]
    assert outcomes.count((200, None)) == 1
    assert outcomes.count((409, "auth_code_used")) == 99


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_codes_that_come_at_once_are_each_exchanged_or_refused_alone(client, ann, sign_in):
    codes = [(await sign_in(ann))["code"] for _ in range(3)]
    used = codes.pop()
    await client.post("/v1/auth/verify", json={"code": used})

    responses = await asyncio.gather(
        *(client.post("/v1/auth/verify", json={"code": code}) for code in (*codes, used, "wrong"))
    )

    outcomes = [(response.status_code, response.json().get("code")) for response in responses]
    assert outcomes == [
        (200, None),
        (200, None),
        (409, "auth_code_used"),
        (400, "auth_code_invalid"),
    ]
    assert len({response.json()["session_id"] for response in responses[:2]}) == 2


async def test_verify_with_an_idempotency_key_is_answered_alike_again(client, ann, sign_in):
    body = {"code": (await sign_in(ann))["code"]}
    headers = {"Idempotency-Key": "verify-1"}

    first = await client.post("/v1/auth/verify", json=body, headers=headers)
    again = await client.post("/v1/auth/verify", json=body, headers=headers)
    without = await client.post("/v1/auth/verify", json=body)

    assert (first.status_code, again.status_code) == (200, 200)
    assert again.json() == first.json()
    assert again.headers["Idempotent-Replayed"] == "true"
    assert without.json()["code"] == "auth_code_used"


async def test_code_works_until_its_last_millisecond(client, clock, ann, sign_in):
    body = {"code": (await sign_in(ann))["code"]}
    clock.advance(299.999)

    assert (await client.post("/v1/auth/verify", json=body)).status_code == 200


async def test_code_is_refused_after_300_seconds(client, clock, ann, sign_in):
    body = {"code": (await sign_in(ann))["code"]}
    clock.advance(300)

    response = await client.post("/v1/auth/verify", json=body)

    assert (response.status_code, response.json()["code"]) == (400, "auth_code_expired")


async def test_used_code_stays_used_when_its_time_is_over(client, clock, ann, sign_in):
    body = {"code": (await sign_in(ann))["code"]}
    await client.post("/v1/auth/verify", json=body)
    clock.advance(3600)

    response = await client.post("/v1/auth/verify", json=body)

    assert response.json()["code"] == "auth_code_used"


async def test_wrong_code_is_refused(client, ann, sign_in):
    code = (await sign_in(ann))["code"]
    wrong = code[:-1] + ("A" if code[-1] != "A" else "B")

    response = await client.post("/v1/auth/verify", json={"code": wrong})

    assert (response.status_code, response.json()["code"]) == (400, "auth_code_invalid")


async def test_code_of_another_project_is_invalid_and_stays_good(
    service, client, make_tenant, ann, sign_in
):
    other = await make_tenant(service, "Other")
    body = {"code": (await sign_in(ann))["code"]}

    theirs = await other.client.post("/v1/auth/verify", json=body)
    ours = await client.post("/v1/auth/verify", json=body)

    assert (theirs.status_code, theirs.json()["code"]) == (400, "auth_code_invalid")
    assert ours.status_code == 200


async def test_polling_shows_the_same_code_until_it_is_consumed(client, clock, ann, sign_in):
    first = await sign_in(ann)
    path = f"/v1/auth/session/{first['session_id']}/status"
    clock.advance(10)

    again = (await client.get(path)).json()
    await client.post("/v1/auth/verify", json={"code": first["code"]})
    after = (await client.get(path)).json()

    assert (first["status"], first["expires_in"]) == ("confirmed", 300)
    assert again == {**first, "expires_in": 290}
    assert after == {
        "session_id": first["session_id"],
        "status": "consumed",
        "state": "xyz",
        "expires_in": 0,
    }


async def test_polling_says_expired_when_the_code_is_over(client, clock, ann, sign_in):
    session_id = (await sign_in(ann))["session_id"]
    clock.advance(300)

    answer = (await client.get(f"/v1/auth/session/{session_id}/status")).json()

    assert answer["status"] == "expired"
    assert "code" not in answer


async def test_code_is_256_bits_in_base62(ann, sign_in):
    codes = {(await sign_in(ann))["code"] for _ in range(3)}

    assert len(codes) == 3
    assert all(len(code) == 43 and code.isalnum() and code.isascii() for code in codes)


async def test_session_and_events_hold_nothing_to_read_the_code_from(service, ann, sign_in):
    code = (await sign_in(ann))["code"]

    async with service.db.read() as tx:
        rows = [
            *await tx.fetch_all("SELECT * FROM auth_sessions"),
            *await tx.fetch_all("SELECT * FROM core_events"),
        ]

    assert rows
    assert not any(code in str(row[column]) for row in rows for column in row.keys())


async def test_code_survives_the_rotation_of_the_secret_key(make_service, client, ann, sign_in):
    signed_in = await sign_in(ann)
    old_key = ann.service.settings.secret_keys[0]
    rotated = await make_service(
        extra_plugins=[("auth", plugin)],
        database_url=ann.service.settings.database_url,
        secret_keys=("a-newer-key-for-tests-a-newer-key-for-tests", old_key.get_secret_value()),
    )
    path = f"/v1/auth/session/{signed_in['session_id']}/status"

    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=rotated.app),
        base_url=client.base_url,
        headers=client.headers,
    ) as client_after:
        polled = await client_after.get(path)
        verified = await client_after.post("/v1/auth/verify", json={"code": signed_in["code"]})

    assert polled.json()["code"] == signed_in["code"]
    assert verified.status_code == 200


async def test_code_of_an_erased_person_is_invalid(service, client, ann, sign_in):
    body = {"code": (await sign_in(ann))["code"]}
    async with service.db.transaction() as tx:
        await tx.execute("DELETE FROM core_subscribers")

    response = await client.post("/v1/auth/verify", json=body)

    assert response.json()["code"] == "auth_code_invalid"


async def test_metrics_say_how_far_sign_ins_come(service, client, ann, bob, sign_in):
    await client.post("/v1/auth/verify", json={"code": (await sign_in(ann))["code"]})
    session = (await client.post("/v1/auth/session", json={"state": "x"})).json()
    await bob.press(await bob.open(session["links"]["messenger_a"]), "Отмена")
    await client.post("/v1/auth/session", json={"state": "left to expire"})

    found = {
        (sample.labels["outcome"], sample.labels["channel"]): sample.value
        for family in service.metrics.registry.collect()
        for sample in family.samples
        if sample.name == "msgsvc_auth_sign_ins_total" and sample.value
    }

    assert found == {
        ("begun", ""): 3,
        ("confirmed", "messenger_a"): 1,
        ("exchanged", "messenger_a"): 1,
        ("cancelled", "messenger_a"): 1,
    }
