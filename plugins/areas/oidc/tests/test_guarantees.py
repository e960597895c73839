"""What a client's people have to prove, and what tokens say that they did."""

import pytest

from msgsvc_core.channels import Identity
from plugins.areas.oidc.tests.conftest import Visitor, answer_of


@pytest.mark.parametrize(
    ("proves", "amr"),
    [
        ("account", ["mca"]),
        ("phone", ["mca", "sms"]),
        ("mailbox", ["mca", "urn:msgsvc:amr:mailbox"]),
        ("homeserver", ["mca", "urn:msgsvc:amr:homeserver"]),
    ],
)
@pytest.mark.both_databases
async def test_tokens_say_what_was_proven(ann: Visitor, register, proves: Identity, amr):
    client = await register(first_party=True, scopes=["openid", "offline_access"])
    await ann.authorize(client, scope="openid offline_access")

    code = answer_of(await ann.press_yes(proves=proves))["code"]
    tokens = (await ann.exchange(client, code)).json()
    later = (await ann.refresh(client, tokens["refresh_token"])).json()

    assert ann.claims(tokens)["amr"] == ann.claims(later)["amr"] == amr


@pytest.mark.both_databases
async def test_a_client_that_asks_for_a_phone_is_not_given_an_earlier_session(
    ann: Visitor, register
):
    anything = await register(first_party=True)
    bank = await register(first_party=True, must_prove=["phone"])
    await ann.sign_in(anything)

    page = await ann.authorize(bank)
    asked = ann.sign_ins.latest.request
    code = answer_of(await ann.press_yes(proves="phone"))["code"]
    again = answer_of(await ann.authorize(bank))

    assert "/login/" in page.headers["Location"]
    assert asked.must_prove == ("phone",)
    assert ann.claims((await ann.exchange(bank, code)).json())["amr"] == ["mca", "sms"]
    assert again["code"], "the session has proven a phone by now"


async def test_an_unknown_guarantee_is_refused(client):
    answer = await client.post(
        "/v1/oidc/clients",
        json={
            "name": "Bank",
            "redirect_uris": ["https://bank.example/cb"],
            "must_prove": ["passport"],
        },
    )

    assert (answer.status_code, answer.json()["code"]) == (400, "validation_failed")


@pytest.mark.both_databases
async def test_a_session_of_before_guarantees_satisfies_none(ann: Visitor, register, service):
    """By whichever channel it was made: nobody recorded what that proved."""
    shop = await register(first_party=True, scopes=["openid", "offline_access"])
    bank = await register(first_party=True, must_prove=["account"])
    await ann.authorize(shop, scope="openid offline_access")
    code = answer_of(await ann.press_yes(proves="mailbox"))["code"]
    tokens = (await ann.exchange(shop, code)).json()
    async with service.db.transaction() as tx:
        for table in ("oidc_sessions", "oidc_grants"):
            await tx.execute(f"UPDATE {table} SET proves = NULL", {})

    page = await ann.authorize(bank)
    still = answer_of(await ann.authorize(shop, scope="openid offline_access"))
    later = (await ann.refresh(shop, tokens["refresh_token"])).json()

    assert "/login/" in page.headers["Location"]
    assert still["code"], "a client without a guarantee takes it as before"
    assert ann.claims(later)["amr"] == ["mca"]


OFFLINE = ["openid", "profile", "offline_access"]


@pytest.mark.both_databases
async def test_a_refresh_gives_what_the_client_may_have_now(ann: Visitor, register, client):
    """Also the access tokens of before, at `userinfo`."""
    app = await register(first_party=True, scopes=OFFLINE)
    tokens = await ann.tokens(app, scope=" ".join(OFFLINE))
    before = (await ann.userinfo(tokens["access_token"])).json()
    await client.patch(
        f"/v1/oidc/clients/{app['client_id']}", json={"scopes": ["openid", "offline_access"]}
    )

    after = (await ann.userinfo(tokens["access_token"])).json()
    narrower = (await ann.refresh(app, tokens["refresh_token"])).json()
    await client.patch(f"/v1/oidc/clients/{app['client_id']}", json={"scopes": ["openid"]})
    refused = await ann.refresh(app, narrower["refresh_token"])

    assert "name" in before
    assert set(after) == {"sub"}
    assert narrower["scope"] == "openid offline_access"
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_grant")


@pytest.mark.both_databases
async def test_a_refresh_needs_the_proof_that_the_client_asks_for_now(
    ann: Visitor, register, client
):
    app = await register(first_party=True, scopes=OFFLINE)
    await ann.authorize(app, scope=" ".join(OFFLINE))
    code = answer_of(await ann.press_yes(proves="account"))["code"]
    tokens = (await ann.exchange(app, code)).json()
    path = f"/v1/oidc/clients/{app['client_id']}"

    await client.patch(path, json={"must_prove": ["phone"]})
    refused = await ann.refresh(app, tokens["refresh_token"])
    await client.patch(path, json={"must_prove": ["phone", "account"]})
    taken = await ann.refresh(app, tokens["refresh_token"])

    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_grant")
    assert taken.status_code == 200
