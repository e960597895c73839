"""Opening sessions and asking where they stand."""

import re

import pytest

from msgsvc_auth import plugin


async def test_session_has_a_link_and_a_qr_image_per_channel(client):
    response = await client.post("/v1/auth/session", json={"state": "xyz"})

    session = response.json()
    assert response.status_code == 201
    assert session.keys() == {"session_id", "status", "links", "qr", "expires_in", "interval"}
    assert session["status"] == "pending"
    assert (session["expires_in"], session["interval"]) == (600, 2)
    assert session["links"].keys() == session["qr"].keys() == {"messenger_a", "messenger_b"}
    payload = session["links"]["messenger_a"].partition("?start=")[2]
    assert re.fullmatch(r"auth_s_[0-9A-Za-z]{22}", payload)
    assert session["qr"]["messenger_a"].endswith(f"/qr/messenger_a/{payload}.svg")


async def test_qr_image_needs_no_key(client):
    session = (await client.post("/v1/auth/session", json={})).json()
    path = session["qr"]["messenger_b"].partition("/qr/")[2]

    response = await client.get(f"/qr/{path}", headers={"Authorization": ""})

    assert response.status_code == 200
    assert response.headers["content-type"].startswith("image/svg+xml")


async def test_link_does_not_give_away_the_session_id(client):
    session = (await client.post("/v1/auth/session", json={})).json()

    token = session["links"]["messenger_a"].partition("auth_s_")[2]

    assert token not in session["session_id"]
    assert (await client.get(f"/v1/auth/session/{token}/status")).status_code == 404
    assert (await client.get(f"/v1/auth/session/ses_{token}/status")).status_code == 404


async def test_session_for_one_channel_has_the_links_of_that_channel_alone(client):
    session = (await client.post("/v1/auth/session", json={"channel": "messenger_b"})).json()

    assert session["links"].keys() == session["qr"].keys() == {"messenger_b"}


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({"channel": "pigeon"}, "validation_failed", "channel"),
        ({"state": "x" * 513}, "validation_failed", "state"),
        ({"state": 7}, "validation_failed", "state"),
        ({"lang": "de_"}, "validation_failed", "lang"),
        ({"colour": "red"}, "validation_failed", "colour"),
        ({"callback_url": "https://shop.example/back"}, "invalid_url", "callback_url"),
        ({"callback_url": "https://shop.example/back?from=bot&x=1"}, "invalid_url", "callback_url"),
        ({"callback_url": "not a url"}, "invalid_url", "callback_url"),
    ],
)
async def test_wrong_session_is_refused_with_the_field_named(client, link, body, code, field):
    response = await client.post("/v1/auth/session", json=body)

    assert response.status_code == 400
    assert response.json()["code"] == code
    assert response.json()["error"].startswith(f"{field}: ")
    assert response.json()["retryable"] is False


async def test_callback_of_another_project_is_not_registered(service, make_tenant, link):
    other = await make_tenant(service, "Other")

    response = await other.client.post(
        "/v1/auth/session", json={"callback_url": link["callback_url"]}
    )

    assert response.json()["code"] == "invalid_url"


async def test_sixth_session_within_an_hour_is_refused_with_the_wait(client, clock):
    for _ in range(5):
        assert (await client.post("/v1/auth/session", json={})).status_code == 201
        clock.advance(60)

    response = await client.post("/v1/auth/session", json={})

    assert response.status_code == 429
    assert response.json()["code"] == "rate_limit_project"
    assert response.json()["retryable"] is True
    # The first of the five was opened 300 seconds ago.
    assert response.headers["retry-after"] == "3300"


async def test_slot_frees_an_hour_after_its_session(client, clock):
    for _ in range(5):
        await client.post("/v1/auth/session", json={})

    clock.advance(3600)

    assert (await client.post("/v1/auth/session", json={})).status_code == 201


async def test_session_that_was_refused_takes_no_slot(client):
    for _ in range(5):
        await client.post("/v1/auth/session", json={"channel": "pigeon"})

    assert (await client.post("/v1/auth/session", json={})).status_code == 201


async def test_one_projects_sessions_do_not_count_for_another(service, client, make_tenant):
    other = await make_tenant(service, "Other")
    for _ in range(5):
        await client.post("/v1/auth/session", json={})

    assert (await other.client.post("/v1/auth/session", json={})).status_code == 201


async def test_repeated_request_with_an_idempotency_key_opens_one_session(client):
    headers = {"Idempotency-Key": "sign-in-0001"}

    answers = [
        (await client.post("/v1/auth/session", json={}, headers=headers)).json() for _ in range(6)
    ]

    assert len({answer["session_id"] for answer in answers}) == 1


async def test_new_session_is_pending_without_a_code(client):
    session_id = (await client.post("/v1/auth/session", json={"state": "xyz"})).json()["session_id"]

    response = await client.get(f"/v1/auth/session/{session_id}/status")

    assert response.status_code == 200
    assert response.json() == {
        "session_id": session_id,
        "status": "pending",
        "state": "xyz",
        "expires_in": 600,
    }


async def test_seconds_left_count_down_to_expiry(client, clock):
    session_id = (await client.post("/v1/auth/session", json={})).json()["session_id"]
    path = f"/v1/auth/session/{session_id}/status"

    clock.advance(599.5)
    late = (await client.get(path)).json()
    clock.advance(0.5)
    over = (await client.get(path)).json()

    assert (late["status"], late["expires_in"]) == ("pending", 1)
    assert (over["status"], over["expires_in"]) == ("expired", 0)


async def test_session_of_another_project_is_missing(service, client, make_tenant):
    other = await make_tenant(service, "Other")
    session_id = (await client.post("/v1/auth/session", json={})).json()["session_id"]

    theirs = await other.client.get(f"/v1/auth/session/{session_id}/status")
    nobodys = await other.client.get(f"/v1/auth/session/ses_{'0' * 44}/status")

    assert theirs.status_code == nobodys.status_code == 404
    assert theirs.json()["code"] == nobodys.json()["code"] == "not_found"


async def test_key_without_the_auth_scope_opens_no_session(service, make_tenant):
    tenant = await make_tenant(service, "Narrow", scopes=("messages",))

    response = await tenant.client.post("/v1/auth/session", json={})

    assert (response.status_code, response.json()["code"]) == (403, "forbidden")


async def test_settings_change_lifetime_and_limit(make_service, make_tenant):
    service = await make_service(
        extra_plugins=[("auth", plugin)], auth={"session_lifetime_s": 60, "sessions_per_hour": 1}
    )
    client = (await make_tenant(service)).client

    first = await client.post("/v1/auth/session", json={})
    second = await client.post("/v1/auth/session", json={})

    assert first.json()["expires_in"] == 60
    assert second.status_code == 429


async def test_people_can_sign_in_and_are_limited_while_redis_is_away(make_service, make_tenant):
    service = await make_service(
        extra_plugins=[("auth", plugin)],
        auth={"sessions_per_hour": 2},
        redis_url="redis://127.0.0.1:1/0",
    )
    client = (await make_tenant(service)).client

    answers = [await client.post("/v1/auth/session", json={}) for _ in range(3)]

    assert [answer.status_code for answer in answers[:2]] == [answers[0].status_code] * 2
    assert answers[0].is_success
    assert answers[2].status_code == 429
