"""Logout that a client starts, over HTTP. The class has the name of the conformance suite's plan."""

import re
from urllib.parse import urlsplit

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet

from msgsvc_oidc.keys.service import SigningKeys
from plugins.areas.oidc.tests.conftest import CALLBACK

GOODBYE = "https://app.example/goodbye"


async def logout(visitor, **query):
    return await visitor.http.get(f"{visitor.issuer}/logout", params=query)


def form_of(page):
    """Where our own page posts to, and what it sends along."""
    action = re.search(r'<form method="post" action="([^"]+)"', page.text)
    assert action, page.text
    fields = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', page.text)
    return urlsplit(action[1]).path, dict(fields)


async def press(visitor, page, answer="sign_out", **changed):
    path, fields = form_of(page)
    return await visitor.http.post(path, data={**fields, "answer": answer, **changed})


async def is_signed_in(visitor, client):
    """Whether a client that must not ask gets a code."""
    page = await visitor.authorize(client, prompt="none")
    return "code=" in page.headers["Location"]


class TestRpInitiatedLogout:
    async def test_an_id_token_of_the_session_signs_out_and_goes_back(self, ann, register):
        client = await register(first_party=True, post_logout_redirect_uris=[GOODBYE])
        tokens = await ann.tokens(client)

        page = await logout(
            ann,
            id_token_hint=tokens["id_token"],
            post_logout_redirect_uri=GOODBYE,
            state="st 1&x",
        )

        assert page.status_code == 303
        assert page.headers["Location"] == f"{GOODBYE}?state=st+1%26x"
        assert not await is_signed_in(ann, client)
        assert (await ann.userinfo(tokens["access_token"])).status_code == 401

    @pytest.mark.both_databases
    async def test_an_id_token_from_before_the_person_signed_in_again_signs_out(
        self, ann, new_visitor, register
    ):
        """The session goes on, unless it is another person's."""
        client = await register(first_party=True, post_logout_redirect_uris=[GOODBYE])
        hers = ann.claims(first := await ann.tokens(client))
        again = ann.claims(await ann.tokens(client, prompt="login"))
        page = await logout(ann, id_token_hint=first["id_token"], post_logout_redirect_uri=GOODBYE)
        await ann.tokens(client)
        ann.subscriber = (await new_visitor("Ben", "1002")).subscriber
        of_ben = ann.claims(await ann.tokens(client, prompt="login"))

        assert again["sid"] == hers["sid"]
        assert page.headers["Location"] == GOODBYE
        assert of_ben["sub"] == ann.subscriber.subscriber_id
        assert of_ben["sid"] != hers["sid"]

    async def test_it_takes_a_form_too(self, ann, register):
        client = await register(first_party=True, post_logout_redirect_uris=[GOODBYE])
        tokens = await ann.tokens(client)

        page = await ann.http.post(
            f"{ann.issuer}/logout",
            data={"id_token_hint": tokens["id_token"], "post_logout_redirect_uri": GOODBYE},
        )

        assert page.headers["Location"] == GOODBYE
        assert not await is_signed_in(ann, client)

    async def test_an_id_token_that_has_expired_is_taken(self, ann, register, clock):
        client = await register(first_party=True)
        tokens = await ann.tokens(client)
        clock.advance(3600)

        page = await logout(ann, id_token_hint=tokens["id_token"])

        assert "You are signed out" in page.text
        assert not await is_signed_in(ann, client)

    async def test_access_while_the_person_is_away_stays(self, ann, register):
        client = await register(first_party=True, scopes=["openid", "offline_access"])
        offline = await ann.tokens(client, scope="openid offline_access")

        await logout(ann, id_token_hint=offline["id_token"])
        refreshed = await ann.refresh(client, offline["refresh_token"])

        assert refreshed.status_code == 200

    async def test_a_code_that_was_not_used_ends_with_the_session(self, ann, register):
        client = await register(first_party=True, scopes=["openid", "offline_access"])
        tokens = await ann.tokens(client)
        code = await ann.code(client, scope="openid offline_access")

        await logout(ann, id_token_hint=tokens["id_token"])
        refused = await ann.exchange(client, code)

        assert refused.json()["error"] == "invalid_grant"

    async def test_without_a_hint_the_person_is_asked_and_nothing_ends_before(self, ann, register):
        client = await register(first_party=True)
        await ann.code(client)

        page = await logout(ann)
        before = await is_signed_in(ann, client)
        done = await press(ann, page)

        assert "Sign out?" in page.text
        assert before
        assert "You are signed out" in done.text
        assert not await is_signed_in(ann, client)

    async def test_a_client_without_a_hint_gets_the_person_back_after_the_press(
        self, ann, register
    ):
        client = await register(name="Wiki", first_party=True, post_logout_redirect_uris=[GOODBYE])
        await ann.code(client)

        page = await logout(
            ann, client_id=client["client_id"], post_logout_redirect_uri=GOODBYE, state="s"
        )
        done = await press(ann, page)

        assert "Wiki signs you out" in page.text
        assert done.headers["Location"] == f"{GOODBYE}?state=s"

    async def test_who_stays_signed_in_goes_back_as_well(self, ann, register):
        client = await register(first_party=True, post_logout_redirect_uris=[GOODBYE])
        await ann.code(client)
        page = await logout(ann, client_id=client["client_id"], post_logout_redirect_uri=GOODBYE)

        done = await press(ann, page, "stay")

        assert done.headers["Location"] == GOODBYE
        assert await is_signed_in(ann, client)

    async def test_who_stays_without_a_way_back_is_told_so(self, ann, register):
        client = await register(first_party=True)
        await ann.code(client)

        done = await press(ann, await logout(ann), "stay")

        assert "You are still signed in" in done.text

    async def test_no_other_site_can_press_the_button(self, ann, new_visitor, register):
        client = await register(first_party=True)
        await ann.code(client)
        ben = await new_visitor("Ben", "1002")
        await ben.code(client)
        _, of_ben = form_of(await logout(ben))
        page = await logout(ann)

        without = await press(ann, page, confirmation="")
        with_another = await press(ann, page, confirmation=of_ben["confirmation"])

        assert (without.status_code, with_another.status_code) == (400, 400)
        assert await is_signed_in(ann, client)

    async def test_the_page_can_not_be_framed(self, ann, register):
        await ann.code(await register(first_party=True))

        page = await logout(ann)

        assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]
        assert page.headers["X-Frame-Options"] == "DENY"

    async def test_a_hint_of_another_session_asks(self, ann, new_visitor, register):
        client = await register(first_party=True)
        ben = await new_visitor("Ben", "1002")
        of_ben = (await ben.tokens(client))["id_token"]
        await ann.code(client)

        page = await logout(ann, id_token_hint=of_ben)

        assert "Sign out?" in page.text
        assert await is_signed_in(ann, client)
        assert await is_signed_in(ben, client)

    async def test_a_hint_that_somebody_else_signed_asks(self, ann, register):
        client = await register(first_party=True)
        tokens = await ann.tokens(client)
        claims = await _claims(ann, tokens["id_token"])
        forged = jwt.encode({"alg": "ES256"}, claims, ECKey.generate_key("P-256"))

        page = await logout(ann, id_token_hint=forged)

        assert "Sign out?" in page.text
        assert await is_signed_in(ann, client)

    @pytest.mark.parametrize(
        "uri",
        [
            CALLBACK,
            "https://evil.example/",
            f"{GOODBYE}/",
            f"{GOODBYE}?x=1",
            GOODBYE.upper(),
            "https://app.example@evil.example/goodbye",
            "javascript:alert(1)",
        ],
    )
    async def test_a_uri_that_is_not_registered_is_never_followed(self, ann, register, uri):
        """The person signs out all the same, whatever the client got wrong."""
        client = await register(first_party=True, post_logout_redirect_uris=[GOODBYE])
        tokens = await ann.tokens(client)

        page = await logout(ann, id_token_hint=tokens["id_token"], post_logout_redirect_uri=uri)

        assert page.status_code == 200
        assert "You are signed out" in page.text
        assert "not registered" in page.text
        assert not await is_signed_in(ann, client)

    @pytest.mark.parametrize(
        ("query", "problem"),
        [
            ({"post_logout_redirect_uri": GOODBYE}, "goes with"),
            ({"post_logout_redirect_uri": GOODBYE, "id_token_hint": "x.y.z"}, "goes with"),
            ({"post_logout_redirect_uri": GOODBYE, "client_id": "app_0"}, "not known"),
            ({"client_id": "app_0"}, "not known"),
            ({"state": "x" * 8193}, "too long"),
            ({"state": ["a", "b"]}, "state"),
        ],
    )
    async def test_a_request_with_a_mistake_asks_and_leads_nowhere(
        self, ann, register, query, problem
    ):
        client = await register(first_party=True, post_logout_redirect_uris=[GOODBYE])
        await ann.code(client)

        page = await logout(ann, **query)
        before = await is_signed_in(ann, client)
        done = await press(ann, page)
        again = await logout(ann, **query)

        assert before
        assert "Sign out?" in page.text
        assert problem in page.text.split("<details>")[1]
        assert (done.status_code, "You are signed out" in done.text) == (200, True)
        assert not await is_signed_in(ann, client)
        assert (again.status_code, problem in again.text) == (200, True)

    async def test_a_client_id_that_is_not_the_hints_asks(self, ann, register):
        first, second = await register(first_party=True), await register(first_party=True)
        tokens = await ann.tokens(first)

        page = await logout(ann, id_token_hint=tokens["id_token"], client_id=second["client_id"])

        assert "Sign out?" in page.text
        assert "not that of id_token_hint" in page.text
        assert await is_signed_in(ann, first)

    async def test_a_browser_without_a_session_goes_on_at_once(self, ann, register):
        client = await register(post_logout_redirect_uris=[GOODBYE])

        away = await logout(ann, client_id=client["client_id"], post_logout_redirect_uri=GOODBYE)
        nowhere = await logout(ann)

        assert away.headers["Location"] == GOODBYE
        assert "You are signed out" in nowhere.text

    async def test_the_page_speaks_the_language_that_is_asked_for(self, ann, register):
        await ann.code(await register(first_party=True))

        page = await logout(ann, ui_locales="ru en")

        assert "Выйти?" in page.text

    async def test_discovery_names_the_endpoint(self, ann):
        found = (await ann.http.get(f"{ann.issuer}/.well-known/openid-configuration")).json()

        assert found["end_session_endpoint"] == f"http://msgsvc.test{ann.issuer}/logout"


async def test_a_hint_by_a_key_that_signs_no_more_is_taken(ann, register, service, clock):
    client = await register(first_party=True)
    tokens = await ann.tokens(client)
    clock.advance(3 * 3600)
    keys = service.get(SigningKeys)
    async with service.db.transaction() as tx:
        promoted = await keys.rotate(tx, at_once=True)
    # People sign out weeks later.
    clock.advance(60 * 24 * 3600)
    async with service.db.transaction() as tx:
        await keys.rotate(tx)

    page = await logout(ann, id_token_hint=tokens["id_token"])

    assert promoted
    assert "You are signed out" in page.text


async def _claims(visitor, id_token):
    keys = (await visitor.http.get(f"{visitor.issuer}/jwks")).json()
    return jwt.decode(id_token, KeySet.import_key_set(keys), algorithms=["ES256"]).claims
