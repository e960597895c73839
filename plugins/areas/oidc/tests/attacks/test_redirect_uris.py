"""Tricks with redirect URIs (RFC 9700, section 4.1; RFC 6749, section 3.1.2; RFC 8252, section 7.3).

The attacker wants a code, or an error, to go to an address of theirs. What is registered has one meaning for
every parser, and a request names it character by character; otherwise the person is shown a page, and the
browser goes nowhere.
"""

import pytest

from plugins.areas.oidc.tests.conftest import CALLBACK, answer_of

#: What an attacker asks for, where `https://app.example/callback` is registered.
REQUESTED = {
    "user-info": "https://app.example@evil.example/callback",
    "user-info of the right host": "https://evil@app.example/callback",
    "password": "https://app.example:443@evil.example/callback",
    "port": "https://app.example:8443/callback",
    "default port": "https://app.example:443/callback",
    "empty port": "https://app.example:/callback",
    "longer path": "https://app.example/callback/other",
    "shorter path": "https://app.example/",
    "path of another case": "https://app.example/Callback",
    "trailing slash": "https://app.example/callback/",
    "doubled slash": "https://app.example//callback",
    "dots": "https://app.example/callback/../callback",
    "dots to another path": "https://app.example/callback/../open?to=https://evil.example",
    "encoded dots": "https://app.example/callback/%2e%2e/callback",
    "encoded letter": "https://app.example/%63allback",
    "encoded slash": "https://app.example%2Fcallback",
    "encoded null": "https://app.example/callback%00",
    "encoded line break": "https://app.example/callback%0d%0a",
    "fragment": "https://app.example/callback#",
    "fragment with a URL": "https://app.example/callback#@evil.example/",
    "query": "https://app.example/callback?next=https://evil.example",
    "empty query": "https://app.example/callback?",
    "scheme of another case": "HTTPS://app.example/callback",
    "host of another case": "https://APP.example/callback",
    "http": "http://app.example/callback",
    "no scheme": "//app.example/callback",
    "no slashes": "https:app.example/callback",
    "backslash": "https://app.example\\callback",
    "backslash before a host": "https://evil.example\\@app.example/callback",
    "host as a prefix": "https://app.example.evil.example/callback",
    "host as a suffix": "https://evil-app.example/callback",
    "subdomain": "https://www.app.example/callback",
    "trailing dot": "https://app.example./callback",
    "homograph": "https://аpp.example/callback",
    "homograph in its xn-- form": "https://xn--pp-7kc.example/callback",
    "full-width letters": "https://ａpp.example/callback",
    "ideographic full stop": "https://app。example/callback",
    "leading space": " https://app.example/callback",
    "trailing line break": "https://app.example/callback\n",
    "tab that browsers drop": "https://app.example/call\tback",
    "two of them": "https://app.example/callback https://evil.example/",
    "javascript": "javascript:alert(1)//https://app.example/callback",
    "data": "data:text/html,<script>alert(1)</script>",
    "nothing": "",
}

#: What can't be registered, with a word of the reason.
REGISTERED = {
    "wildcard host": ("https://*.app.example/callback", "wildcard"),
    "wildcard path": ("https://app.example/*", "wildcard"),
    "user-info": ("https://app.example@evil.example/callback", "user name"),
    "fragment": ("https://app.example/callback#", "fragment"),
    "dots": ("https://app.example/a/../callback", "segments"),
    "encoded dots": ("https://app.example/a/%2E%2e/callback", "segments"),
    "half-encoded dots": ("https://app.example/a/.%2e/callback", "segments"),
    "encoded line break": ("https://app.example/callback%0d%0aSet-Cookie:a", "control"),
    "encoded null": ("https://app.example/callback%00", "control"),
    "half an encoding": ("https://app.example/callback%2", "percent-encoded"),
    "markup": ('https://app.example/"><script>', "percent-encoded"),
    "upper case": ("https://APP.example/callback", "lower case"),
    "upper case scheme": ("HTTPS://app.example/callback", "lower case"),
    "empty port": ("https://app.example:/callback", "host"),
    "port 0": ("https://app.example:0/callback", "host"),
    "trailing dot": ("https://app.example./callback", "host"),
    "encoded host": ("https://app%2eexample/callback", "host"),
    "backslash": ("https://app.example\\callback", "backslashes"),
    "homograph": ("https://аpp.example/callback", "ASCII"),
    "http": ("http://app.example/callback", "https"),
    "loopback as a prefix": ("http://127.0.0.1.evil.example/callback", "https"),
    "localhost as a prefix": ("http://localhost.evil.example/callback", "https"),
    "number for an address": ("http://2130706433/callback", "https"),
    "own parameter": ("https://app.example/callback?code=1", "parameters named"),
    "own parameter, encoded": ("https://app.example/callback?%63ode=1", "parameters named"),
    "javascript": ("javascript:alert(1)", "https"),
    "data": ("data:text/html,hello", "https"),
    "scheme of an app": ("com.example.app:/callback", "https"),
}

#: Schemes that an app can't take either.
OF_APPS = {
    "scheme without a domain": "myapp:/callback",
    "javascript": "javascript:alert(1)//com.example",
    "data": "data:text/html,hello",
    "file": "file:///callback",
    "upper case": "com.Example.app:/callback",
    "dots": "com.example.app:/a/../callback",
}


async def test_an_address_that_is_not_registered_gets_nothing(ann, register):
    client = await register()
    followed = []
    for name, requested in REQUESTED.items():
        page = await ann.authorize(client, redirect_uri=requested or None)
        shown = "evil.example" in page.text or "<form" in page.text
        if page.status_code != 400 or "Location" in page.headers or shown:
            followed.append(name)

    assert not followed


async def test_a_loose_or_ambiguous_address_cannot_be_registered(client):
    accepted = []
    for name, (uri, reason) in REGISTERED.items():
        body = {"name": "Evil", "redirect_uris": [uri]}
        response = await client.post("/v1/oidc/clients", json=body)
        if response.status_code != 400 or reason not in response.text:
            accepted.append((name, response.text))

    assert not accepted


async def test_an_app_cannot_take_a_scheme_of_others(client):
    accepted = []
    for name, uri in OF_APPS.items():
        body = {"name": "Evil", "redirect_uris": [uri], "token_endpoint_auth_method": "none"}
        response = await client.post("/v1/oidc/clients", json=body)
        if response.status_code != 400:
            accepted.append(name)

    assert not accepted


@pytest.mark.parametrize(
    ("registered", "requested", "is_app", "matches"),
    [
        pytest.param("http://127.0.0.1/cb", "http://127.0.0.1:5001/cb", True, True, id="app"),
        pytest.param("http://[::1]:1/cb", "http://[::1]:5001/cb", True, True, id="app on IPv6"),
        pytest.param("http://127.0.0.1:1/cb", "http://127.0.0.1:2/cb", False, False, id="site"),
        pytest.param("http://127.0.0.1/cb", "http://localhost/cb", True, False, id="name"),
        pytest.param("http://localhost/cb", "http://127.0.0.1/cb", True, False, id="address"),
        pytest.param("http://localhost/cb", "http://localhost:2/cb", True, False, id="name's port"),
        pytest.param("http://127.0.0.1/cb", "http://[::1]/cb", True, False, id="other family"),
        pytest.param("http://127.0.0.1/cb", "https://127.0.0.1:2/cb", True, False, id="https"),
        pytest.param("http://127.0.0.1/cb", "http://127.0.0.1:2/cb#", True, False, id="fragment"),
        pytest.param("http://127.0.0.1/cb", "http://127.0.0.1:2/c\tb", True, False, id="tab"),
        pytest.param("http://127.0.0.1/cb", "http://127.0.0.2:2/cb", True, False, id="neighbour"),
        pytest.param("http://127.0.0.1/cb", "http://127.0.0.1:2@evil/cb", True, False, id="user"),
    ],
)
async def test_only_an_app_chooses_its_port_and_only_of_its_loopback_address(
    ann, register, registered, requested, is_app, matches
):
    method = "none" if is_app else "client_secret_basic"
    app = await register(redirect_uris=[registered], token_endpoint_auth_method=method)

    page = await ann.authorize(app, redirect_uri=requested)

    assert page.status_code == (303 if matches else 400), page.text


async def test_a_code_for_one_address_is_not_exchanged_for_another(ann, register):
    client = await register(redirect_uris=[CALLBACK, f"{CALLBACK}/other"])
    code = await ann.code(client)

    for redirect_uri in (f"{CALLBACK}/other", f"{CALLBACK}/", None):
        refused = await ann.exchange(client, code, redirect_uri=redirect_uri)
        assert (refused.status_code, refused.json()["error"]) == (400, "invalid_grant")
    assert (await ann.exchange(client, code)).status_code == 200


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"scope": "profile"}, "invalid_scope"),
        ({"prompt": "none"}, "login_required"),
        ({"response_mode": "fragment"}, "invalid_request"),
        ({"request_uri": "https://evil.example/request"}, "request_uri_not_supported"),
    ],
)
async def test_an_error_is_no_open_redirect(ann, register, changed, error):
    client = await register()
    there = await ann.authorize(client, **changed)
    page = await ann.authorize(client, **changed, redirect_uri="https://evil.example/")

    assert answer_of(there)["error"] == error
    assert page.status_code == 400
    assert "Location" not in page.headers


async def test_an_unknown_client_is_sent_nowhere(ann, register):
    unknown = {**await register(), "client_id": "app_0000000000000000000000"}

    page = await ann.authorize(unknown, redirect_uri="https://evil.example/")

    assert page.status_code == 400
    assert "Location" not in page.headers


async def test_a_client_of_another_project_is_unknown_here(ann, elsewhere):
    theirs = await elsewhere.register()

    page = await ann.authorize(theirs)

    assert page.status_code == 400
    assert "client_id is not known here" in page.text
