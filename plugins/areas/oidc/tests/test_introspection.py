"""An API introspects the access tokens of the clients that call it (RFC 7662): a single-page app has no
credentials, its API has."""

import pytest

from plugins.areas.oidc.tests.conftest import CALLBACK, PATH

SCOPE = "openid profile offline_access"


@pytest.fixture
async def page(register):
    """A single-page app."""
    return await register(
        name="Page",
        token_endpoint_auth_method="none",
        scopes=["openid", "profile", "offline_access"],
    )


@pytest.fixture
async def api(register, page):
    """Its API, which signs nobody in."""
    return await register(
        name="API", redirect_uris=[], grant_types=[], introspects=[page["client_id"]]
    )


async def shown(visitor, client, token):
    response = await visitor.post(client, "/introspect", token=token)
    assert response.status_code == 200, response.text
    return response.json()


@pytest.mark.both_databases
async def test_an_api_learns_of_the_access_tokens_of_its_page(ann, page, api):
    tokens = await ann.tokens(page, scope=SCOPE)
    found = await shown(ann, api, tokens["access_token"])

    assert found == {
        "active": True,
        "scope": SCOPE,
        "client_id": page["client_id"],
        "sub": ann.subscriber.subscriber_id,
        "iss": f"http://msgsvc.test{ann.issuer}",
        "aud": api["client_id"],
        "exp": found["exp"],
        "token_type": "Bearer",
    }


async def test_its_page_s_refresh_tokens_are_as_unknown_ones(ann, page, api):
    tokens = await ann.tokens(page, scope=SCOPE)

    assert await shown(ann, api, tokens["refresh_token"]) == {"active": False}
    assert (await ann.refresh(page, tokens["refresh_token"])).status_code == 200


@pytest.mark.both_databases
async def test_of_other_clients_it_learns_nothing(ann, register, client, page, api):
    other = await register(name="Other")
    theirs = (await ann.tokens(other))["access_token"]
    pages = (await ann.tokens(page))["access_token"]
    of_other = await shown(ann, api, theirs)
    await client.patch(f"{PATH}/{api['client_id']}", json={"introspects": [other["client_id"]]})

    assert of_other == {"active": False}
    assert await shown(ann, other, pages) == {"active": False}
    assert (await shown(ann, api, theirs))["active"]
    assert await shown(ann, api, pages) == {"active": False}


async def test_it_can_not_end_a_token_that_it_may_introspect(ann, page, api):
    token = (await ann.tokens(page))["access_token"]
    await ann.post(api, "/revoke", token=token)

    assert (await shown(ann, api, token))["active"]


async def test_a_token_that_has_ended_is_not_active(ann, page, api, clock):
    revoked, late = [(await ann.tokens(page))["access_token"] for _ in range(2)]
    await ann.post(page, "/revoke", token=revoked)
    ended = await shown(ann, api, revoked)
    clock.advance(600)

    assert ended == {"active": False}
    assert await shown(ann, api, late) == {"active": False}


async def test_scopes_that_the_page_may_not_have_any_more_are_not_shown(
    ann, client, page, api, clock
):
    token = (await ann.tokens(page, scope=SCOPE))["access_token"]
    await client.patch(f"{PATH}/{page['client_id']}", json={"scopes": ["openid"]})
    clock.advance(1)

    assert (await shown(ann, api, token))["scope"] == "openid"


async def test_each_page_s_people_keep_the_id_that_it_knows_them_by(ann, register):
    page = await register(subject_type="pairwise", token_endpoint_auth_method="none")
    api = await register(redirect_uris=[], grant_types=[], introspects=[page["client_id"]])
    tokens = await ann.tokens(page)
    found = await shown(ann, api, tokens["access_token"])

    assert found["sub"] == ann.claims(tokens)["sub"] != ann.subscriber.subscriber_id


@pytest.mark.both_databases
async def test_a_client_that_is_deleted_is_struck_off_the_list(client, page, api):
    path = f"{PATH}/{api['client_id']}"
    await client.delete(f"{PATH}/{page['client_id']}")
    left = (await client.get(path)).json()
    renamed = await client.patch(path, json={"name": "Orders"})

    assert left["introspects"] == []
    assert renamed.status_code == 200


async def test_an_api_signs_nobody_in(ann, api):
    page = await ann.authorize(api)

    assert page.status_code == 400


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"introspects": ["app_unknown"]}, "introspects[0]"),
        ({"introspects": ["app_unknown"], "token_endpoint_auth_method": "none"}, "introspects"),
        ({"grant_types": [], "token_endpoint_auth_method": "none"}, "grant_types"),
        ({"introspects": "all"}, "introspects"),
    ],
)
async def test_what_can_not_introspect_is_refused(client, changed, field):
    body = {"name": "API", "redirect_uris": [CALLBACK], **changed}
    refused = await client.post(PATH, json=body)

    assert (refused.status_code, field in refused.json()["error"]) == (400, True), refused.text


async def test_clients_of_other_projects_and_the_client_itself_are_refused(
    client, service, make_tenant, page, api
):
    stranger = (await make_tenant(service, "Another")).client
    elsewhere = await stranger.post(
        PATH, json={"name": "API", "grant_types": [], "introspects": [page["client_id"]]}
    )
    itself = await client.patch(
        f"{PATH}/{api['client_id']}", json={"introspects": [api["client_id"]]}
    )

    assert (elsewhere.status_code, itself.status_code) == (400, 400)
