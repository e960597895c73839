"""Logout tokens, delivered over real HTTP. The class has the name of the conformance suite's plan."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs

import pytest
from joserfc import jwt
from joserfc.jwk import KeySet

from msgsvc_core.api.pagination import PageQuery
from msgsvc_devkit.webhooks import WebhookReceiver
from msgsvc_devkit.work import settled
from msgsvc_oidc.backchannel_logout.retries import WAITS_S
from msgsvc_oidc.backchannel_logout.service import LogoutDeliveries
from msgsvc_oidc.consents.service import Consents
from msgsvc_oidc.protocol.logout import EVENT
from plugins.areas.oidc.tests.conftest import FAST_KEYS


@pytest.fixture
def oidc_settings() -> dict[str, Any]:
    """Plain http on loopback, where the tests' client is."""
    return {**FAST_KEYS, "allow_http_logout": True, "allow_cidrs": ["127.0.0.0/8"]}


@pytest.fixture
async def receiver() -> AsyncIterator[WebhookReceiver]:
    async with WebhookReceiver() as found:
        yield found


def tokens_of(receiver):
    """The logout tokens that came, in order."""
    for request in receiver.requests:
        assert request.headers["Content-Type"] == "application/x-www-form-urlencoded"
    return [parse_qs(request.body.decode())["logout_token"][0] for request in receiver.requests]


async def claims_of(visitor, token):
    keys = (await visitor.http.get(f"{visitor.issuer}/jwks")).json()
    return jwt.decode(token, KeySet.import_key_set(keys), algorithms=["ES256", "RS256"]).claims


def header_of(token):
    part = token.split(".")[0]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


async def sign_out(visitor, id_token):
    await visitor.http.get(f"{visitor.issuer}/logout", params={"id_token_hint": id_token})


async def journal(service, visitor, client):
    async with service.db.read() as tx:
        query = PageQuery(limit=10)
        deliveries = service.get(LogoutDeliveries)
        return await deliveries.page(tx, visitor.project_id, client["client_id"], query)


class TestBackChannelLogout:
    async def test_another_person_in_the_same_browser_signs_the_first_one_out(
        self, ann, new_visitor, register, receiver, service
    ):
        client = await register(first_party=True, backchannel_logout_uri=receiver.url)
        hers = await ann.tokens(client)
        first = ann.claims(hers)

        ann.subscriber = (await new_visitor("Ben", "1002")).subscriber
        await ann.tokens(client, prompt="login")
        await settled(service)
        [token] = tokens_of(receiver)

        assert (await claims_of(ann, token))["sid"] == first["sid"]
        assert (await ann.userinfo(hers["access_token"])).status_code == 401

    async def test_every_client_of_the_session_gets_a_token(
        self, ann, register, receiver, service, clock
    ):
        first = await register(first_party=True, backchannel_logout_uri=receiver.url)
        second = await register(
            first_party=True,
            backchannel_logout_uri=receiver.url,
            id_token_signed_response_alg="RS256",
            subject_type="pairwise",
        )
        await register(first_party=True, backchannel_logout_uri=receiver.url)
        of_first, of_second = await ann.tokens(first), await ann.tokens(second)
        now_s = clock.now_ms() // 1000

        await sign_out(ann, of_first["id_token"])
        await settled(service)
        tokens = tokens_of(receiver)
        claims = {each["aud"]: each for each in [await claims_of(ann, one) for one in tokens]}
        subjects = {
            each["aud"]: (each["sub"], each["sid"])
            for each in [await claims_of(ann, one["id_token"]) for one in (of_first, of_second)]
        }

        assert claims.keys() == {first["client_id"], second["client_id"]}
        for client_id, found in claims.items():
            assert (found["sub"], found["sid"]) == subjects[client_id]
            assert found["iss"] == f"http://msgsvc.test{ann.issuer}"
            assert found["events"] == {EVENT: {}}
            assert found["iat"] == now_s
            assert found["exp"] == now_s + 120
            assert "nonce" not in found
        assert {header_of(token)["typ"] for token in tokens} == {"logout+jwt"}
        assert {header_of(token)["alg"] for token in tokens} == {"ES256", "RS256"}
        assert len({found["jti"] for found in claims.values()}) == 2

    async def test_a_session_that_ended_is_told_once(self, ann, register, receiver, service):
        client = await register(first_party=True, backchannel_logout_uri=receiver.url)
        tokens = await ann.tokens(client)
        await ann.code(client)

        await sign_out(ann, tokens["id_token"])
        await sign_out(ann, tokens["id_token"])
        await settled(service)

        assert len(receiver.requests) == 1

    @pytest.mark.database_file
    @pytest.mark.both_databases
    async def test_of_concurrent_logouts_one_notifies_the_clients(
        self, ann, register, receiver, service
    ):
        client = await register(first_party=True, backchannel_logout_uri=receiver.url)
        tokens = await ann.tokens(client)

        await asyncio.gather(*(sign_out(ann, tokens["id_token"]) for _ in range(20)))
        await settled(service)

        assert len(receiver.requests) == 1

    async def test_another_session_of_the_person_goes_on(
        self, ann, new_visitor, register, receiver, service
    ):
        client = await register(first_party=True, backchannel_logout_uri=receiver.url)
        elsewhere = await new_visitor()
        here, there = await ann.tokens(client), await elsewhere.tokens(client)

        await sign_out(ann, here["id_token"])
        await settled(service)
        [token] = tokens_of(receiver)

        assert (await claims_of(ann, token))["sid"] == (await claims_of(ann, here["id_token"]))[
            "sid"
        ]
        assert (await elsewhere.userinfo(there["access_token"])).status_code == 200

    @pytest.mark.both_databases
    async def test_a_client_that_fails_is_asked_again_with_a_fresh_token(
        self, ann, register, receiver, service, clock
    ):
        client = await register(first_party=True, backchannel_logout_uri=receiver.url)
        tokens = await ann.tokens(client)
        receiver.fail(503)
        receiver.hang_up()

        await sign_out(ann, tokens["id_token"])
        await settled(service)
        [first] = await journal(service, ann, client)
        for wait_s in WAITS_S[:2]:
            clock.advance(wait_s * 1.2)
            await settled(service)
        [last] = await journal(service, ann, client)
        claims = [await claims_of(ann, token) for token in tokens_of(receiver)]

        assert (first.status, first.attempts, first.status_code) == ("pending", 1, 503)
        assert first.error == "the client answered 503"
        assert first.next_attempt_at_ms is not None
        assert (last.status, last.attempts, last.status_code) == ("delivered", 3, 200)
        assert (last.error, last.next_attempt_at_ms) == ("", None)
        assert len({found["jti"] for found in claims}) == 3
        assert claims[0]["iat"] < claims[2]["iat"]

    async def test_a_client_that_never_answers_is_given_up(
        self, ann, register, receiver, service, clock
    ):
        client = await register(first_party=True, backchannel_logout_uri=receiver.url)
        tokens = await ann.tokens(client)
        receiver.fail(500, times=50)

        await sign_out(ann, tokens["id_token"])
        await settled(service)
        for wait_s in WAITS_S:
            clock.advance(wait_s * 1.2)
            await settled(service)
        clock.advance(100_000)
        await settled(service)
        [found] = await journal(service, ann, client)

        assert (found.status, found.attempts) == ("failed", len(WAITS_S) + 1)
        assert len(receiver.requests) == len(WAITS_S) + 1

    async def test_a_token_that_the_client_refuses_is_not_repeated(
        self, ann, register, receiver, service
    ):
        client = await register(first_party=True, backchannel_logout_uri=receiver.url)
        tokens = await ann.tokens(client)
        receiver.fail(400)

        await sign_out(ann, tokens["id_token"])
        await settled(service)
        [found] = await journal(service, ann, client)

        assert (found.status, found.status_code) == ("failed", 400)

    async def test_a_redirect_is_not_followed(self, ann, register, receiver, service):
        client = await register(first_party=True, backchannel_logout_uri=receiver.url)
        tokens = await ann.tokens(client)
        receiver.redirect("/elsewhere")

        await sign_out(ann, tokens["id_token"])
        await settled(service)
        [found] = await journal(service, ann, client)

        assert found.status == "failed"
        assert "redirect" in found.error
        assert len(receiver.requests) == 1

    async def test_an_answer_that_leads_nowhere_is_called_no_redirect(
        self, ann, register, receiver, service
    ):
        client = await register(first_party=True, backchannel_logout_uri=receiver.url)
        tokens = await ann.tokens(client)
        receiver.fail(304)

        await sign_out(ann, tokens["id_token"])
        await settled(service)
        [found] = await journal(service, ann, client)

        assert (found.status, found.error) == ("failed", "the client answered 304")

    async def test_who_takes_a_consent_back_is_signed_out_of_the_client(
        self, ann, register, receiver, service
    ):
        client = await register(backchannel_logout_uri=receiver.url)
        other = await register(backchannel_logout_uri=receiver.url)
        await ann.tokens(client)
        await ann.tokens(other)

        async with service.db.transaction() as tx:
            await service.get(Consents).take_back(
                tx, ann.project_id, client["client_id"], ann.subscriber.subscriber_id
            )
        await settled(service)
        [token] = tokens_of(receiver)
        claims = await claims_of(ann, token)

        assert claims["aud"] == client["client_id"]
        assert claims["sub"] == ann.subscriber.subscriber_id
        assert "sid" not in claims

    @pytest.mark.both_databases
    @pytest.mark.parametrize("kind", ["public", "pairwise"])
    async def test_clients_hear_of_a_person_who_is_erased(
        self, ann, register, receiver, service, kind
    ):
        """Afterwards the deliveries name nobody."""
        client = await register(
            first_party=True, backchannel_logout_uri=receiver.url, subject_type=kind
        )
        tokens = await ann.tokens(client)
        subject = ann.claims(tokens)["sub"]

        async with service.db.transaction() as tx:
            await service.subscribers.erase(tx, ann.project_id, ann.subscriber.subscriber_id)
        await settled(service)
        [token] = tokens_of(receiver)
        async with service.db.read() as tx:
            left = await tx.fetch_val("SELECT COUNT(*) FROM oidc_grants")
            rows = await tx.fetch_all("SELECT status, subject FROM oidc_logout_deliveries")

        assert (await claims_of(ann, token))["sub"] == subject
        assert left == 0
        assert [(row["status"], row["subject"]) for row in rows] == [("delivered", "")]
        assert (await ann.userinfo(tokens["access_token"])).status_code == 401

    async def test_a_client_that_is_deleted_hears_of_nothing(
        self, ann, register, receiver, service, client
    ):
        wiki = await register(first_party=True, backchannel_logout_uri=receiver.url)
        await ann.tokens(wiki)

        await client.delete(f"/v1/oidc/clients/{wiki['client_id']}")
        await settled(service)

        assert receiver.requests == []

    @pytest.mark.parametrize(
        "uri",
        ["http://10.0.0.1/logout", "https://169.254.169.254/", "https://a.example/#fragment"],
    )
    async def test_a_uri_of_our_own_network_can_not_be_registered(self, client, uri):
        refused = await client.post(
            "/v1/oidc/clients",
            json={
                "name": "Wiki",
                "redirect_uris": ["https://app.example/"],
                "backchannel_logout_uri": uri,
            },
        )

        assert (refused.status_code, refused.json()["code"]) == (400, "invalid_url")
