"""Requests to the token endpoint, and with the tokens from there."""

from typing import Any

import httpx2

from tests.oidc_clients.provider import DEVICE
from tests.oidc_clients.reference.recording import FORM, Party, Script, claims_of, facts_of


async def codes(script: Script) -> None:
    """The authorization code grant: what is issued, and codes that are refused."""
    for kind, party in {
        "basic": script.web,
        "post": script.post,
        "public": script.public,
    }.items():
        answer = await script.exchange(f"code: {kind} client", party, await script.code(party))
        _record_id_token(script, f"code: ID token, {kind} client", answer.json())
    tokens = await script.tokens()
    script.record("code: offline access", {"members": sorted(tokens), "scope": tokens["scope"]})

    web = script.web
    await script.exchange("code: unknown", web, "no-such-code")
    await script.exchange("code: none", web, "", code=None)
    await script.exchange("code: of another client", script.post, await script.code())
    for case, changes in {
        "wrong verifier": {"code_verifier": "another-verifier-of-forty-three-characters-or-more"},
        "no verifier": {"code_verifier": None},
        "short verifier": {"code_verifier": "short"},
        "wrong redirect_uri": {"redirect_uri": "http://127.0.0.1:18080/other"},
        "no redirect_uri": {"redirect_uri": None},
    }.items():
        await script.exchange(f"code: {case}", web, await script.code(), **changes)
    plain = await script.code(code_challenge=None, code_challenge_method=None)
    await script.exchange("code: verifier without a challenge", web, plain)

    code = await script.code()
    first = await script.exchange(None, web, code)
    await script.exchange("code: again", web, code)
    await _user_info(script, "code: token of a code that came again", first.json()["access_token"])


async def clients(script: Script) -> None:
    """Authentication of clients."""
    name, secret = script.web.client.client_id, script.web.client.client_secret or ""
    data = {"grant_type": "refresh_token", "refresh_token": "no-such-token"}

    async def ask(case: str, more: dict[str, str] | None = None, **options: Any) -> None:
        await script.call(f"client: {case}", "token", None, data | (more or {}), **options)

    await ask("none")
    await ask("unknown, by header", auth=("no-such-client", "wrong"))
    await ask("unknown, in the form", {"client_id": "no-such-client", "client_secret": "wrong"})
    await ask("wrong secret, by header", auth=(name, "wrong"))
    await ask("wrong secret, in the form", {"client_id": name, "client_secret": "wrong"})
    await ask("no secret", {"client_id": name})
    await ask("header and form", {"client_id": name, "client_secret": secret}, auth=(name, secret))
    await ask("another client_id", {"client_id": "other"}, auth=(name, secret))
    await ask("the other way than registered", {"client_id": name, "client_secret": secret})
    await ask("header that is no base64", headers={"Authorization": "Basic !"})
    await ask("header of another scheme", headers={"Authorization": "Digest a"})
    public = script.public.client.client_id
    await ask("public with a secret", {"client_id": public, "client_secret": "wrong"})
    await ask(
        "assertion that is no token",
        {
            "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
            "client_assertion": "e30.e30.",
        },
    )


async def requests(script: Script) -> None:
    """Requests that are malformed, or of another kind."""
    web, url = script.web, script.endpoint("token")
    _, auth = web.authenticated()
    await script.call("request: no grant_type", "token", web, {})
    await script.call("request: unknown grant_type", "token", web, {"grant_type": "magic"})
    password = {"grant_type": "password", "username": "a", "password": "b"}
    await script.call("request: password", "token", web, password)
    foreign = {"grant_type": DEVICE, "device_code": "magic"}
    await script.call("request: grant of other clients", "token", web, foreign)
    script.record("request: GET", facts_of(await script.http.get(url, auth=auth)))
    as_json = await script.http.post(url, json={"grant_type": "magic"}, auth=auth)
    script.record("request: JSON", facts_of(as_json))
    twice = "grant_type=magic&grant_type=magic"
    answer = await script.http.post(url, content=twice, headers=FORM, auth=auth)
    script.record("request: parameter twice", facts_of(answer))
    origin = {"Origin": "http://127.0.0.1:18080", "Access-Control-Request-Method": "POST"}
    preflight = await script.http.request("OPTIONS", url, headers=origin)
    script.record("request: preflight", {"allowed": _allows(preflight)})


async def refreshes(script: Script) -> None:
    """Refresh tokens: rotation, reuse, and scopes."""
    web = script.web
    old = (await script.tokens())["refresh_token"]
    answer = await script.refresh("refresh: valid", web, old)
    fresh = answer.json()["refresh_token"]
    script.record("refresh: rotation", {"rotates": fresh != old})
    _record_id_token(script, "refresh: ID token", answer.json())
    await script.refresh("refresh: unknown", web, "no-such-token")
    await script.call("refresh: none", "token", web, {"grant_type": "refresh_token"})
    await script.refresh("refresh: of another client", script.post, fresh)
    await script.refresh("refresh: fewer scopes", web, fresh, scope="openid")

    token = (await script.tokens())["refresh_token"]
    await script.refresh("refresh: more scopes", web, token, scope="openid email")

    old = (await script.tokens())["refresh_token"]
    fresh = (await script.refresh(None, web, old)).json()["refresh_token"]
    await script.refresh("refresh: again at once", web, old)
    await script.refresh("refresh: successor after that", web, fresh)

    public = (await script.tokens(script.public))["refresh_token"]
    await script.refresh("refresh: public client", script.public, public)


async def user_info(script: Script) -> None:
    """`userinfo`: claims by scope, and tokens that are refused (RFC 6750)."""
    url = script.endpoint("userinfo")
    tokens = await script.tokens()
    token = tokens["access_token"]
    bearer = {"Authorization": f"Bearer {token}"}
    for case, answer in {
        "by GET": await script.http.get(url, headers=bearer),
        "by POST": await script.http.post(url, headers=bearer),
        "in the form": await script.http.post(url, data={"access_token": token}),
        "in the query": await script.http.get(url, params={"access_token": token}),
        "twice": await script.http.post(url, headers=bearer, data={"access_token": token}),
        "no token": await script.http.get(url),
        "wrong token": await script.http.get(url, headers={"Authorization": "Bearer magic"}),
        "another scheme": await script.http.get(url, headers={"Authorization": "Basic magic"}),
        "refresh token": await script.http.get(
            url, headers={"Authorization": f"Bearer {tokens['refresh_token']}"}
        ),
        "ID token": await script.http.get(
            url, headers={"Authorization": f"Bearer {tokens['id_token']}"}
        ),
    }.items():
        script.record(f"userinfo: {case}", facts_of(answer))
    bare = (await script.exchange(None, script.web, await script.code(scope="openid"))).json()
    await _user_info(script, "userinfo: openid alone", bare["access_token"])
    asked = {"Origin": "http://127.0.0.1:18080", **bearer}
    script.record(
        "userinfo: from another origin",
        {"allowed": _allows(await script.http.get(url, headers=asked))},
    )


async def ends(script: Script) -> None:
    """Revocation (RFC 7009) and introspection (RFC 7662)."""
    web, post = script.web, script.post
    tokens = await script.tokens()
    access, fresh = tokens["access_token"], tokens["refresh_token"]

    async def ask(case: str, endpoint: str, party: Party | None, **data: str) -> httpx2.Response:
        return await script.call(case, endpoint, party, data)

    look, end = "introspection", "revocation"
    answer = await ask("introspection: access token", look, web, token=access)
    script.record("introspection: active", {"active": answer.json()["active"]})
    await ask("introspection: refresh token", look, web, token=fresh)
    answer = await ask("introspection: of another client", look, post, token=access)
    await ask("introspection: unknown token", look, web, token="magic")
    await ask("introspection: no token", look, web)
    await ask("introspection: not authenticated", look, None, token=access)
    await ask("introspection: wrong hint", look, web, token=fresh, token_type_hint="access_token")
    await ask("introspection: unknown hint", look, web, token=fresh, token_type_hint="magic")

    await ask("revocation: of another client", end, post, token=fresh)
    await ask("revocation: unknown token", end, web, token="magic")
    await ask("revocation: no token", end, web)
    await ask("revocation: not authenticated", end, None, token=fresh)
    await ask("revocation: unknown hint", end, web, token="magic", token_type_hint="magic")
    script.record("revocation: GET", facts_of(await script.http.get(script.endpoint(end))))
    await ask("revocation: refresh token", end, web, token=fresh)
    await script.refresh("revocation: refreshing after that", web, fresh)
    await _user_info(script, "revocation: access token after that", access)
    access = (await script.tokens())["access_token"]
    await ask("revocation: access token", end, web, token=access)
    await _user_info(script, "revocation: userinfo after that", access)
    await ask("introspection: revoked token", look, web, token=access)


def _record_id_token(script: Script, case: str, tokens: dict[str, Any]) -> None:
    if "id_token" not in tokens:
        script.record(case, {"claims": None})
        return
    header, claims = claims_of(tokens["id_token"])
    script.record(
        case,
        {
            "header": sorted(header),
            "algorithm": header["alg"],
            "claims": sorted(claims),
            "audience": type(claims["aud"]).__name__,
            "type": tokens["token_type"].lower(),
        },
    )


async def _user_info(script: Script, case: str, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    answer = await script.http.get(script.endpoint("userinfo"), headers=headers)
    script.record(case, facts_of(answer))


def _allows(answer: httpx2.Response) -> bool:
    """Whether a page of another origin may read it."""
    return "access-control-allow-origin" in answer.headers


CASES = (codes, clients, requests, refreshes, user_info, ends)
