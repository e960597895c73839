"""Dynamic client registration over HTTP. The class has the name of the conformance suite's plan."""

import asyncio
from typing import Any

import pytest

from plugins.areas.oidc.tests.conftest import CALLBACK, FAST_KEYS, answer_of


@pytest.fixture
def oidc_settings() -> dict[str, Any]:
    return {**FAST_KEYS, "registration": True}


@pytest.fixture
def new_token(client):
    """Makes initial access tokens by the API."""

    async def make(**changed):
        response = await client.post(
            "/v1/oidc/registration-tokens", json={"name": "Matrix", **changed}
        )
        assert response.status_code == 201, response.text
        return response.json()

    return make


async def register(visitor, token, **metadata):
    headers = {"Authorization": f"Bearer {token}"}
    body = {"client_name": "Element", "redirect_uris": [CALLBACK], **metadata}
    return await visitor.http.post(f"{visitor.issuer}/register", json=body, headers=headers)


async def manage(visitor, method, registered, token=None, **more):
    token = token or registered["registration_access_token"]
    return await visitor.http.request(
        method,
        registered["registration_client_uri"],
        headers={"Authorization": f"Bearer {token}"},
        **more,
    )


class TestDynamic:
    async def test_a_client_that_registered_itself_signs_people_in_with_consent(
        self, ann, new_token
    ):
        token = (await new_token())["token"]

        made = await register(ann, token, scope="openid profile", first_party=True)
        registered = made.json()
        page = await ann.authorize(registered, scope="openid profile")
        consent = await ann.press_yes()
        answer = answer_of(await ann.answer_consent(consent, "allow"))
        tokens = await ann.exchange(registered, answer["code"])

        assert made.status_code == 201
        assert made.headers["Cache-Control"] == "no-store"
        assert registered["client_secret_expires_at"] == 0
        assert registered["client_name"] == "Element"
        assert registered["grant_types"] == ["authorization_code"]
        assert "first_party" not in registered
        assert page.status_code == 303
        assert "/consent/" in consent.headers["Location"]
        assert tokens.status_code == 200

    async def test_the_api_shows_that_it_registered_itself(self, ann, new_token, client):
        registered = (await register(ann, (await new_token())["token"])).json()

        shown = (await client.get(f"/v1/oidc/clients/{registered['client_id']}")).json()

        assert (shown["dynamic"], shown["first_party"]) == (True, False)

    async def test_discovery_names_the_endpoint(self, ann):
        found = (await ann.http.get(f"{ann.issuer}/.well-known/openid-configuration")).json()

        assert found["registration_endpoint"] == f"http://msgsvc.test{ann.issuer}/register"

    @pytest.mark.parametrize(
        ("metadata", "error"),
        [
            ({"redirect_uris": ["http://app.example/callback"]}, "invalid_redirect_uri"),
            ({"redirect_uris": ["https://app.example/#x"]}, "invalid_redirect_uri"),
            ({"redirect_uris": []}, "invalid_redirect_uri"),
            ({"redirect_uris": CALLBACK}, "invalid_redirect_uri"),
            ({"redirect_uris": [1]}, "invalid_redirect_uri"),
            ({"post_logout_redirect_uris": ["javascript:x"]}, "invalid_client_metadata"),
            ({"backchannel_logout_uri": "https://10.0.0.1/"}, "invalid_client_metadata"),
            ({"token_endpoint_auth_method": "tls_client_auth"}, "invalid_client_metadata"),
            ({"token_endpoint_auth_method": "private_key_jwt"}, "invalid_client_metadata"),
            ({"grant_types": ["implicit"]}, "invalid_client_metadata"),
            ({"grant_types": []}, "invalid_client_metadata"),
            ({"response_types": ["code", "token"]}, "invalid_client_metadata"),
            ({"application_type": "tv"}, "invalid_client_metadata"),
            ({"jwks": {"keys": []}}, "invalid_client_metadata"),
            ({"jwks": []}, "invalid_client_metadata"),
            ({"id_token_signed_response_alg": "none"}, "invalid_client_metadata"),
            ({"id_token_signed_response_alg": "HS256"}, "invalid_client_metadata"),
            ({"subject_type": "secret"}, "invalid_client_metadata"),
            ({"client_name": "x" * 65}, "invalid_client_metadata"),
            ({"client_name": "Pay\u202epal"}, "invalid_client_metadata"),
            ({"client_name": 1}, "invalid_client_metadata"),
            ({"client_uri": "ftp://app.example/"}, "invalid_client_metadata"),
            ({"require_pushed_authorization_requests": "yes"}, "invalid_client_metadata"),
            (
                {
                    "subject_type": "pairwise",
                    "redirect_uris": [CALLBACK, "https://other.example/"],
                },
                "invalid_client_metadata",
            ),
        ],
    )
    async def test_metadata_that_can_not_be_is_refused_and_costs_no_use(
        self, ann, new_token, metadata, error
    ):
        token = (await new_token(max_uses=1))["token"]

        refused = await register(ann, token, **metadata)
        after = await register(ann, token)

        assert (refused.status_code, refused.json()["error"]) == (400, error)
        assert refused.json()["error_description"].isascii()
        assert after.status_code == 201

    @pytest.mark.parametrize("body", [b"[]", b"{", b"", b"\xff", b"[" * 100_000])
    async def test_a_body_that_is_no_object_is_refused(self, ann, new_token, body):
        token = (await new_token())["token"]

        refused = await ann.http.post(
            f"{ann.issuer}/register",
            content=body,
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )

        assert (refused.status_code, refused.json()["error"]) == (400, "invalid_request")

    @pytest.mark.both_databases
    async def test_a_token_registers_no_more_clients_than_it_may(self, ann, new_token):
        token = (await new_token(max_uses=3))["token"]

        made = await asyncio.gather(*(register(ann, token) for _ in range(12)))

        assert sorted(each.status_code for each in made) == [201] * 3 + [401] * 9

    async def test_a_token_expires(self, ann, new_token, clock):
        token = (await new_token(expires_in=60, max_uses=None))["token"]
        first = await register(ann, token)
        clock.advance(60)

        refused = await register(ann, token)

        assert first.status_code == 201
        assert (refused.status_code, refused.json()["error"]) == (401, "invalid_token")
        assert refused.headers["WWW-Authenticate"].startswith('Bearer error="invalid_token"')

    async def test_a_token_that_was_revoked_registers_nothing(self, ann, new_token, client):
        made = await new_token()

        revoked = await client.delete(f"/v1/oidc/registration-tokens/{made['token_id']}")
        again = await client.delete(f"/v1/oidc/registration-tokens/{made['token_id']}")
        refused = await register(ann, made["token"])

        assert (revoked.status_code, again.status_code, refused.status_code) == (204, 404, 401)

    async def test_without_a_token_or_with_an_api_key_nothing_is_registered(self, ann, tenant):
        without = await ann.http.post(f"{ann.issuer}/register", json={})
        with_key = await register(ann, tenant.key)

        assert (without.status_code, with_key.status_code) == (401, 401)
        assert without.headers["WWW-Authenticate"] == "Bearer"

    async def test_a_token_is_of_one_project(self, ann, new_token, make_tenant, service):
        token = (await new_token())["token"]
        other = await make_tenant(service, "Other")

        refused = await ann.http.post(
            f"/oidc/{other.project.project_id}/register",
            json={"redirect_uris": [CALLBACK]},
            headers={"Authorization": f"Bearer {token}"},
        )

        assert refused.status_code == 401

    @pytest.mark.both_databases
    async def test_tokens_are_listed_without_their_secret(self, new_token, client):
        made = [await new_token(name=f"Nr. {number}") for number in range(3)]

        page = (await client.get("/v1/oidc/registration-tokens?limit=2")).json()
        rest = (
            await client.get(f"/v1/oidc/registration-tokens?limit=2&cursor={page['next_cursor']}")
        ).json()

        assert [each["name"] for each in [*page["data"], *rest["data"]]] == [
            "Nr. 2",
            "Nr. 1",
            "Nr. 0",
        ]
        assert made[0]["token"] not in str(page) + str(rest)
        assert page["data"][0]["uses_left"] == 1

    @pytest.mark.both_databases
    async def test_a_client_reads_changes_and_deletes_its_registration(self, ann, new_token):
        registered = (await register(ann, (await new_token())["token"])).json()
        moved = "https://app.example/moved"

        read = await manage(ann, "GET", registered)
        changed = await manage(
            ann,
            "PUT",
            registered,
            json={
                "client_id": registered["client_id"],
                "client_secret": registered["client_secret"],
                "client_name": "Element X",
                "redirect_uris": [moved],
            },
        )
        page = await ann.authorize(registered, redirect_uri=moved)
        before = await ann.authorize(registered)
        deleted = await manage(ann, "DELETE", registered)
        gone = await manage(ann, "GET", registered)

        shown = {
            name: value
            for name, value in registered.items()
            if name not in {"client_secret", "client_secret_expires_at"}
        }
        assert read.json() == shown
        assert (changed.status_code, changed.json()["client_name"]) == (200, "Element X")
        assert changed.json()["redirect_uris"] == [moved]
        assert (page.status_code, before.status_code) == (303, 400)
        assert (deleted.status_code, deleted.content) == (204, b"")
        assert gone.status_code == 401

    @pytest.mark.parametrize(
        ("changed", "error"),
        [
            ({"client_id": "app_other"}, "invalid_request"),
            ({"client_secret": "wrong"}, "invalid_request"),
            ({"registration_access_token": "x"}, "invalid_request"),
            ({"token_endpoint_auth_method": "none"}, "invalid_client_metadata"),
            ({"subject_type": "pairwise"}, "invalid_client_metadata"),
            ({"redirect_uris": ["https://*.example/"]}, "invalid_redirect_uri"),
        ],
    )
    async def test_a_change_that_can_not_be_changes_nothing(self, ann, new_token, changed, error):
        registered = (await register(ann, (await new_token())["token"])).json()
        body = {
            "client_id": registered["client_id"],
            "redirect_uris": ["https://app.example/moved"],
            **changed,
        }

        refused = await manage(ann, "PUT", registered, json=body)
        read = await manage(ann, "GET", registered)

        assert (refused.status_code, refused.json()["error"]) == (400, error)
        assert read.json()["redirect_uris"] == [CALLBACK]

    async def test_what_an_update_leaves_out_is_removed(self, ann, new_token):
        goodbye = "https://app.example/goodbye"
        registered = (
            await register(
                ann,
                (await new_token())["token"],
                client_uri="https://app.example/",
                post_logout_redirect_uris=[goodbye],
            )
        ).json()

        changed = await manage(
            ann,
            "PUT",
            registered,
            json={"client_id": registered["client_id"], "redirect_uris": [CALLBACK]},
        )

        assert changed.json()["post_logout_redirect_uris"] == []
        assert "client_uri" not in changed.json()
        assert changed.json()["client_name"] == "app.example"

    async def test_a_registration_is_of_its_client_alone(self, ann, new_token, client):
        token = (await new_token(max_uses=2))["token"]
        first = (await register(ann, token)).json()
        second = (await register(ann, token)).json()
        by_api = (
            await client.post(
                "/v1/oidc/clients", json={"name": "Wiki", "redirect_uris": [CALLBACK]}
            )
        ).json()
        uri = f"{ann.issuer}/register/{by_api['client_id']}"

        stolen = await manage(ann, "DELETE", first, second["registration_access_token"])
        with_initial = await manage(ann, "GET", first, token)
        not_dynamic = await ann.http.delete(
            uri, headers={"Authorization": f"Bearer {first['registration_access_token']}"}
        )

        assert [each.status_code for each in (stolen, with_initial, not_dynamic)] == [401] * 3

    async def test_an_app_registers_with_a_scheme_of_its_own_and_without_a_secret(
        self, ann, new_token
    ):
        made = await register(
            ann,
            (await new_token())["token"],
            application_type="native",
            token_endpoint_auth_method="none",
            redirect_uris=["io.element:/callback"],
        )

        assert made.status_code == 201
        assert "client_secret" not in made.json()
        assert "client_secret_expires_at" not in made.json()


class TestOff:
    """Registration as it is without the setting."""

    @pytest.fixture
    def oidc_settings(self) -> dict[str, Any]:
        return dict(FAST_KEYS)

    async def test_there_is_no_endpoint_and_no_token(self, ann, client):
        found = (await ann.http.get(f"{ann.issuer}/.well-known/openid-configuration")).json()
        answer = await ann.http.post(f"{ann.issuer}/register", json={})
        token = await client.post("/v1/oidc/registration-tokens", json={"name": "Matrix"})

        assert "registration_endpoint" not in found
        assert answer.status_code == 404
        assert (token.status_code, token.json()["code"]) == (409, "conflict")
