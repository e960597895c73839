"""The plan `oidcc-formpost-basic-certification-test-plan` of the OpenID Foundation's conformance suite: the
modules of the basic plan, with the answer posted by a form (OAuth 2.0 Form Post Response Mode, section 2).

The suite itself was not run; see `test_basic.py`. Its modules that do not look at the answer are there alone.
"""

from html import unescape
from html.parser import HTMLParser

import pytest

from plugins.areas.oidc.tests.conformance.test_basic import PLAIN, claims_of, exchange
from plugins.areas.oidc.tests.conftest import CALLBACK

POST = {"response_mode": "form_post", **PLAIN}


class Form(HTMLParser):
    """The form of a page: where it goes, and its fields."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.method = self.action = ""
        self.fields: dict[str, str] = {}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.method, self.action = found["method"], found["action"]
        elif tag == "input":
            self.fields[found["name"]] = found["value"]


def form_of(page):
    assert page.status_code == 200, page.text
    assert page.headers["Content-Type"].startswith("text/html")
    assert page.headers["Cache-Control"] == "no-store"
    assert "Location" not in page.headers
    form = Form(page.text)
    assert (form.method, unescape(form.action)) == ("post", CALLBACK)
    return form.fields


async def tokens_of(visitor, client, **changed):
    page = await visitor.authorize(client, **{**POST, **changed})
    if page.status_code == 303:
        page = await visitor.press_yes()
    if page.status_code == 303:
        page = await visitor.answer_consent(page, "allow")
    answer = form_of(page)
    assert answer["state"] == "state-1"
    assert answer["iss"] == f"http://msgsvc.test{visitor.issuer}"
    response = await exchange(visitor, client, answer["code"])
    assert response.status_code == 200, response.text
    return response.json()


class TestFormPost:
    async def test_oidcc_server(self, ann, rp, clock):
        claims = await claims_of(ann, rp, await tokens_of(ann, rp), clock)

        assert claims["nonce"] == "nonce-1"

    async def test_oidcc_response_type_missing(self, ann, rp):
        answer = form_of(await ann.authorize(rp, response_type=None, **POST))

        assert (answer["error"], answer["state"]) == ("invalid_request", "state-1")
        assert "code" not in answer

    async def test_oidcc_ensure_request_without_nonce_succeeds_for_code_flow(self, ann, rp, clock):
        tokens = await tokens_of(ann, rp, nonce=None)

        assert "nonce" not in await claims_of(ann, rp, tokens, clock)

    @pytest.mark.parametrize(
        "changed",
        [
            pytest.param({"scope": "openid profile"}, id="oidcc-scope-profile"),
            pytest.param({"scope": "profile openid"}, id="oidcc-ensure-other-scope-order-succeeds"),
            pytest.param({"display": "page"}, id="oidcc-display-page"),
            pytest.param({"extra": "a"}, id="oidcc-ensure-request-with-unknown-parameter-succeeds"),
            pytest.param({"login_hint": "bob"}, id="oidcc-login-hint"),
            pytest.param({"ui_locales": "se"}, id="oidcc-ui-locales"),
            pytest.param({"claims_locales": "se"}, id="oidcc-claims-locales"),
            pytest.param({"acr_values": "1 2"}, id="oidcc-ensure-request-with-acr-values-succeeds"),
        ],
    )
    async def test_requests_that_succeed(self, ann, rp, changed):
        assert "id_token" in await tokens_of(ann, rp, **changed)

    async def test_oidcc_prompt_login(self, ann, rp):
        await tokens_of(ann, rp)
        await tokens_of(ann, rp, prompt="login")

        assert len(ann.sign_ins.started) == 2

    async def test_oidcc_prompt_none_not_logged_in(self, ann, rp):
        answer = form_of(await ann.authorize(rp, prompt="none", **POST))

        assert answer["error"] == "login_required"

    async def test_oidcc_prompt_none_logged_in(self, ann, rp):
        await tokens_of(ann, rp)

        assert "code" in form_of(await ann.authorize(rp, prompt="none", **POST))

    async def test_oidcc_max_age_1(self, ann, rp, clock):
        await tokens_of(ann, rp)
        clock.advance(2)
        await tokens_of(ann, rp, max_age="1")

        assert len(ann.sign_ins.started) == 2

    async def test_oidcc_max_age_10000(self, ann, rp, clock):
        await tokens_of(ann, rp)
        clock.advance(2)
        await tokens_of(ann, rp, max_age="10000")

        assert len(ann.sign_ins.started) == 1

    async def test_a_refusal_is_posted_as_well(self, ann, rp):
        await ann.authorize(rp, **POST)
        answer = form_of(await ann.answer_consent(await ann.press_yes(), "deny"))

        assert (answer["error"], answer["state"]) == ("access_denied", "state-1")

    async def test_oidcc_ensure_registered_redirect_uri(self, ann, rp):
        page = await ann.authorize(rp, redirect_uri=f"{CALLBACK}/unregistered", **POST)

        assert page.status_code == 400
        assert "<form" not in page.text
