"""Claims of the granted scopes in ID tokens (OpenID Connect Core 1.0, section 5.4), where most software looks
for them."""

import pytest

from plugins.areas.oidc.tests.devices import DEVICE_CLIENT, answer, poll, start

SCOPES = ["openid", "profile", "phone", "email", "offline_access"]


@pytest.fixture
async def with_phone(service, ann):
    async with service.db.transaction() as tx:
        await service.contacts.record(
            tx,
            ann.project_id,
            ann.subscriber.subscriber_id,
            kind="phone",
            value="+12025550123",
            source="messenger_a",
        )


@pytest.mark.both_databases
async def test_an_id_token_tells_what_userinfo_tells(ann, register, with_phone):
    client = await register(scopes=SCOPES)
    tokens = await ann.tokens(client, scope=" ".join(SCOPES))
    person = (await ann.userinfo(tokens["access_token"])).json()
    claims = ann.claims(tokens)

    assert person["name"] == "Ann"
    assert person["preferred_username"] == "ann_k"
    assert person["phone_number"] == "+12025550123"
    assert {name: claims[name] for name in person} == person
    assert (claims["aud"], claims["nonce"]) == (client["client_id"], "nonce-1")


async def test_claims_are_those_of_the_granted_scopes_alone(ann, register, with_phone):
    client = await register(scopes=SCOPES)
    plain = ann.claims(await ann.tokens(client, scope="openid"))
    phone = ann.claims(await ann.tokens(client, scope="openid phone"))

    assert not {"name", "locale", "phone_number", "email"} & plain.keys()
    assert phone["phone_number_verified"] is True
    assert "name" not in phone


async def test_a_refresh_tells_the_claims_of_the_scopes_that_it_asks_for(ann, register, with_phone):
    client = await register(scopes=SCOPES)
    tokens = await ann.tokens(client, scope=" ".join(SCOPES))
    narrow = await ann.refresh(client, tokens["refresh_token"], scope="openid phone")

    assert "name" in ann.claims(tokens)
    assert ann.claims(narrow.json())["phone_number"] == "+12025550123"
    assert "name" not in ann.claims(narrow.json())


async def test_a_client_may_have_them_in_userinfo_alone(ann, client, register):
    made = await register(claims_in_id_token=False)
    without = await ann.tokens(made, scope="openid profile")
    await client.patch(f"/v1/oidc/clients/{made['client_id']}", json={"claims_in_id_token": True})
    with_them = await ann.tokens(made, scope="openid profile")

    assert "name" not in ann.claims(without)
    assert (await ann.userinfo(without["access_token"])).json()["name"] == "Ann"
    assert ann.claims(with_them)["name"] == "Ann"


async def test_devices_get_them_too(ann, register):
    tv = await register(**DEVICE_CLIENT)
    codes = await start(ann, tv, scope="openid profile")
    await answer(ann, codes["user_code"])
    tokens = (await poll(ann, tv, codes["device_code"])).json()

    assert ann.claims(tokens)["name"] == "Ann"
