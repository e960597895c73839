"""Requests to the authorization endpoint, and to that of pushed requests."""

import httpx2

from tests.oidc_clients.reference.recording import (
    CHALLENGE,
    REDIRECT_URI,
    Script,
    facts_of_answer,
)


async def redirect_uris(script: Script) -> None:
    """What may not go to the redirect URI, and redirect URIs that are not quite the registered one."""
    ask, request = script.authorize, script.request
    await ask("authorize: valid", request())
    await ask("authorize: valid, posted", request(), method="POST")
    await ask("authorize: no client_id", request(client_id=None))
    await ask("authorize: unknown client", request(client_id="no-such-client"))
    await ask("authorize: no redirect_uri", request(redirect_uri=None))
    for name, uri in {
        "of elsewhere": "https://attacker.example/callback",
        "with a slash more": f"{REDIRECT_URI}/",
        "with a query": f"{REDIRECT_URI}?a=b",
        "with a fragment": f"{REDIRECT_URI}#a",
        "of another port": REDIRECT_URI.replace("18080", "18081"),
        "of localhost": REDIRECT_URI.replace("127.0.0.1", "localhost"),
        "with a user": REDIRECT_URI.replace("127", "a@127"),
        "in capitals": REDIRECT_URI.replace("callback", "Callback"),
    }.items():
        await ask(f"authorize: redirect_uri {name}", request(redirect_uri=uri))


async def parameters(script: Script) -> None:
    """Wrong parameters of a known client with a right redirect URI."""
    ask, request = script.authorize, script.request
    for case, changes in {
        "no response_type": {"response_type": None},
        "response_type token": {"response_type": "token"},
        "response_type code id_token": {"response_type": "code id_token"},
        "response_type unknown": {"response_type": "magic"},
        "no scope": {"scope": None},
        "scope without openid": {"scope": "profile"},
        "scope with an unknown word": {"scope": "openid magic"},
        "no state": {"state": None, "response_type": "magic"},
        "no nonce": {"nonce": None},
        "prompt unknown": {"prompt": "magic"},
        "prompt none and login": {"prompt": "none login"},
        "prompt none without a session": {"prompt": "none"},
        "max_age negative": {"max_age": "-1"},
        "max_age no number": {"max_age": "soon"},
        "max_age 0": {"max_age": "0"},
        "response_mode unknown": {"response_mode": "magic"},
        "response_mode fragment": {"response_mode": "fragment"},
        "response_mode form_post, prompt none": {"response_mode": "form_post", "prompt": "none"},
        "request": {"request": "e30.e30."},
        "request_uri of elsewhere": {"request_uri": "https://attacker.example/request"},
        "request_uri unknown": {"request_uri": "urn:ietf:params:oauth:request_uri:magic"},
        "registration": {"registration": "{}"},
        "id_token_hint no token": {"id_token_hint": "magic", "prompt": "none"},
        "acr_values unknown": {"acr_values": "urn:example:magic"},
        "ui_locales unknown": {"ui_locales": "xx-magic"},
        "login_hint unknown": {"login_hint": "nobody"},
        "claims": {"claims": '{"userinfo":{"name":null}}'},
        "an unknown parameter": {"magic": "1"},
    }.items():
        await ask(f"authorize: {case}", request(**changes))
    await ask("authorize: state twice", [*request().items(), ("state", "b")])
    await ask("authorize: client without this grant", request(script.device))


async def pkce(script: Script) -> None:
    """Proof keys (RFC 7636)."""
    for kind, party in {"public": script.public, "confidential": script.web}.items():
        for case, changes in {
            "no challenge": {"code_challenge": None, "code_challenge_method": None},
            "method without challenge": {"code_challenge": None},
            "plain": {"code_challenge_method": "plain"},
            "no method": {"code_challenge_method": None},
            "unknown method": {"code_challenge_method": "magic"},
            "short challenge": {"code_challenge": CHALLENGE[:20]},
            "challenge with other characters": {"code_challenge": "!" + CHALLENGE[1:]},
        }.items():
            request = script.request(party, **changes)
            await script.authorize(f"pkce: {case}, {kind} client", request)


async def answers(script: Script) -> None:
    """What goes to the client after a sign-in, and with a session."""
    cookies = httpx2.Cookies()
    request = script.request
    for case, changes in {
        "by the query": {},
        "by a form": {"response_mode": "form_post"},
        "without state": {"state": None},
    }.items():
        answer = await script.signed_in(request(**changes), cookies)
        script.record(f"answer: {case}", facts_of_answer(answer))
    cancelled = await script.signed_in(request(), yes=False)
    script.record("answer: cancelled", facts_of_answer(cancelled))
    for case, changes in {
        "prompt none": {"prompt": "none"},
        "prompt none, more scopes": {"prompt": "none", "scope": "openid email"},
        "prompt none, max_age 3600": {"prompt": "none", "max_age": "3600"},
        "no prompt": {},
        "prompt login": {"prompt": "login"},
        "prompt consent": {"prompt": "consent"},
        "prompt select_account": {"prompt": "select_account"},
    }.items():
        await script.authorize(f"session: {case}", request(**changes), cookies=cookies)
    other = request(script.post, prompt="none")
    await script.authorize("session: prompt none, another client", other, cookies=cookies)


async def pushed(script: Script) -> None:
    """Pushed authorization requests (RFC 9126)."""
    endpoint, web, request = "pushed_authorization_request", script.web, script.request

    async def push(case: str | None, **changes: str | None) -> httpx2.Response:
        return await script.call(case, endpoint, web, request(**changes))

    uri = str((await push("pushed: valid")).json()["request_uri"])
    client_id = {"client_id": web.client.client_id}
    await push("pushed: redirect_uri of elsewhere", redirect_uri="https://attacker.example/")
    await push("pushed: no response_type", response_type=None)
    await push("pushed: scope without openid", scope="profile")
    await push("pushed: with request_uri", request_uri=uri)
    await push("pushed: plain challenge", code_challenge_method="plain")
    await push("pushed: another client_id", client_id=script.post.client.client_id)
    await script.call("pushed: not authenticated", endpoint, None, request())
    await script.call(
        "pushed: wrong secret", endpoint, None, request(), auth=(client_id["client_id"], "wrong")
    )
    await script.call("pushed: public client", endpoint, script.public, request(script.public))
    public = request(script.public, code_challenge=None, code_challenge_method=None)
    await script.call("pushed: public client without a challenge", endpoint, script.public, public)
    await script.authorize(
        "pushed: request_uri of another client",
        {"client_id": script.post.client.client_id, "request_uri": uri},
    )
    await script.authorize("pushed: request_uri without client_id", {"request_uri": uri})
    await script.authorize("pushed: request_uri", {**client_id, "request_uri": uri})
    used = str((await push(None)).json()["request_uri"])
    done = await script.signed_in({**client_id, "request_uri": used})
    script.record("pushed: answer", facts_of_answer(done))
    await script.authorize("pushed: request_uri again", {**client_id, "request_uri": used})


CASES = (redirect_uris, parameters, pkce, answers, pushed)
