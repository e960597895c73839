"""/v1/oidc/clients: registration of clients, and their secrets."""

import pytest

from plugins.areas.oidc.tests.conftest import CALLBACK, PATH


@pytest.fixture
async def stranger(service, make_tenant):
    """Another project's API."""
    return (await make_tenant(service, "Another")).client


@pytest.mark.both_databases
async def test_a_client_is_created_shown_listed_changed_and_deleted(client, register):
    made = await register(scopes=["openid", "phone"])
    path = f"{PATH}/{made['client_id']}"

    shown = (await client.get(path)).json()
    listed = (await client.get(PATH)).json()["data"]
    changed = await client.patch(path, json={"name": "Graphs", "scopes": ["openid"]})
    deleted = await client.delete(path)

    assert made["client_secret"].startswith("mos_")
    assert shown == {name: value for name, value in made.items() if name != "client_secret"}
    assert listed == [shown]
    assert changed.json() == {**shown, "name": "Graphs", "scopes": ["openid"]}
    assert deleted.status_code == 204
    assert (await client.get(path)).status_code == 404


async def test_clients_of_another_project_are_not_found(stranger, register):
    made = await register()
    path = f"{PATH}/{made['client_id']}"

    answers = [
        await stranger.get(path),
        await stranger.patch(path, json={"name": "Mine"}),
        await stranger.delete(path),
        await stranger.get(f"{path}/secrets"),
        await stranger.post(f"{path}/secrets"),
        await stranger.delete(f"{path}/secrets/sec_1"),
    ]

    assert {answer.status_code for answer in answers} == {404}
    assert (await stranger.get(PATH)).json()["data"] == []


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"redirect_uris": []}, "redirect_uris"),
        ({"redirect_uris": ["http://app.example/callback"]}, "redirect_uris[0]"),
        ({"redirect_uris": [CALLBACK, f"{CALLBACK}#x"]}, "redirect_uris[1]"),
        ({"scopes": ["profile"]}, "scopes"),
        ({"scopes": ["openid", "admin"]}, "scopes[1]"),
        ({"jwks": {"keys": []}}, "jwks"),
        ({"token_endpoint_auth_method": "private_key_jwt"}, "jwks"),
        ({"backchannel_logout_uri": "http://app.example/logout"}, "backchannel_logout_uri"),
        ({"first_party": None}, "first_party"),
    ],
)
async def test_what_is_wrong_with_a_client_is_said_by_field(client, changed, field):
    body = {"name": "Grafana", "redirect_uris": [CALLBACK], **changed}
    refused = await client.post(PATH, json=body)

    assert refused.status_code == 400, refused.text
    assert field in refused.json()["error"]


@pytest.mark.both_databases
async def test_two_secrets_are_valid_during_a_rotation_and_never_three(
    ann, client, register, clock
):
    made = await register()
    path = f"{PATH}/{made['client_id']}/secrets"
    rotated = await client.post(path)
    second = rotated.json()
    clock.advance(1)

    async def opens(secret: str) -> bool:
        tried = {**made, "client_secret": secret}
        answer = await ann.exchange(tried, await ann.code(tried))
        return answer.status_code == 200

    during = [await opens(made["client_secret"]), await opens(second["client_secret"])]
    third = (await client.post(path)).json()
    clock.advance(1)
    after = [await opens(each["client_secret"]) for each in (made, second, third)]
    listed = (await client.get(path)).json()["data"]
    first = (await client.get(path, params={"limit": 1})).json()
    rest = (await client.get(path, params={"limit": 1, "cursor": first["next_cursor"]})).json()
    clock.advance(72 * 3600)
    at_the_end = [await opens(each["client_secret"]) for each in (second, third)]

    assert rotated.status_code == 200
    assert second["previous_valid_until"] is not None
    assert during == [True, True]
    assert after == [False, True, True]
    assert [each["secret_id"] for each in listed] == [third["secret_id"], second["secret_id"]]
    assert (first["data"], rest) == (listed[:1], {"data": listed[1:], "next_cursor": None})
    assert at_the_end == [False, True]


async def test_the_only_secret_can_not_be_deleted_and_another_can(client, register):
    made = await register()
    path = f"{PATH}/{made['client_id']}/secrets"
    [only] = (await client.get(path)).json()["data"]
    refused = await client.delete(f"{path}/{only['secret_id']}")

    await client.post(path)
    deleted = await client.delete(f"{path}/{only['secret_id']}")

    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert deleted.status_code == 204


async def test_a_secret_comes_in_the_form_only_from_a_client_that_is_registered_for_it(
    ann, client, register
):
    made = await register()
    by_form = {**made, "token_endpoint_auth_method": "client_secret_post"}
    refused = await ann.exchange(by_form, await ann.code(made))
    logged = await ann.outcomes(made)
    changed = await client.patch(
        f"{PATH}/{made['client_id']}", json={"token_endpoint_auth_method": "client_secret_post"}
    )
    # The header is for every client with a secret (RFC 6749, section 2.3.1).
    taken = [await ann.exchange(each, await ann.code(made)) for each in (by_form, made)]

    assert (refused.status_code, refused.json()["error"]) == (401, "invalid_client")
    assert refused.json()["error_description"] == (
        "the client is registered for client_secret_basic, and used the form"
    )
    assert logged[0] == ("token", "invalid_client")
    assert changed.json()["token_endpoint_auth_method"] == "client_secret_post"
    assert [answer.status_code for answer in taken] == [200, 200]


async def test_a_client_without_a_secret_stays_without(client, register):
    made = await register(token_endpoint_auth_method="none")
    refused = await client.patch(
        f"{PATH}/{made['client_id']}", json={"token_endpoint_auth_method": "client_secret_basic"}
    )

    assert refused.status_code == 400
    assert "token_endpoint_auth_method" in refused.json()["error"]


async def test_an_app_has_no_secret_to_rotate(client, register):
    made = await register(token_endpoint_auth_method="none")
    refused = await client.post(f"{PATH}/{made['client_id']}/secrets")

    assert "client_secret" not in made
    assert refused.status_code == 409


class TestLimit:
    @pytest.fixture
    def oidc_settings(self):
        return {"signing_alg": "ES256", "max_clients": 2}

    async def test_a_project_has_so_many_clients(self, client, register):
        await register()
        await register()

        refused = await client.post(PATH, json={"name": "Third", "redirect_uris": [CALLBACK]})

        assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
