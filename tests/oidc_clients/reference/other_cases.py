"""Requests to the other endpoints: metadata and keys, devices, backchannel authentication, logout."""

from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx2

from tests.oidc_clients.browsing import browser, is_at
from tests.oidc_clients.provider import CIBA, DEVICE
from tests.oidc_clients.reference.recording import (
    AFTER_LOGOUT,
    FORM,
    Party,
    Script,
    claims_of,
    facts_of,
)


async def metadata(script: Script) -> None:
    """Discovery and keys. A fact is a list's contents, a boolean, or that there is a URL."""
    issuer, origin = script.provider.issuer, {"Origin": "http://127.0.0.1:18080"}
    parts = urlsplit(issuer)
    # RFC 8414, section 3: between the host and the issuer's path, which OpenID Connect puts before it.
    for name, url in {
        "openid-configuration": f"{issuer}/.well-known/openid-configuration",
        "oauth-authorization-server": parts._replace(
            path=f"/.well-known/oauth-authorization-server{parts.path}"
        ).geturl(),
    }.items():
        answer = await script.http.get(url, headers=origin)
        script.record(f"metadata: {name}", _of_document(answer))
    for member, value in sorted(script.metadata.items()):
        fact = sorted(value) if isinstance(value, list) else value
        script.record(
            f"metadata: {member}", {"is": "a URL" if str(fact).startswith("http") else fact}
        )
    answer = await script.http.get(script.metadata["jwks_uri"], headers=origin)
    script.record("keys: document", _of_document(answer))
    for key in answer.json()["keys"][:1]:
        script.record("keys: a key", {"members": sorted(key), "alg": key["alg"], "use": key["use"]})


async def devices(script: Script) -> None:
    """Device authorization (RFC 8628)."""
    endpoint, party = "device_authorization", script.device
    scope = {"scope": "openid profile"}

    async def start(case: str | None = None) -> dict[str, Any]:
        answer = await script.call(case, endpoint, party, scope)
        started: dict[str, Any] = answer.raise_for_status().json()
        return started

    async def poll(case: str, code: str, by: Party = party) -> httpx2.Response:
        data = {"grant_type": DEVICE, "device_code": code}
        return await script.call(case, "token", by, data)

    started = await start("device: start")
    await script.call("device: start, not authenticated", endpoint, None, scope)
    await script.call("device: start, client without this grant", endpoint, script.web, scope)
    await script.call("device: start, no scope", endpoint, party, {})
    await script.call("device: start, unknown scope", endpoint, party, {"scope": "openid magic"})
    await poll("device: poll", started["device_code"])
    await poll("device: poll again at once", started["device_code"])
    await poll("device: unknown code", "magic")
    await poll("device: the user code", started["user_code"])
    await script.call("device: no code", "token", party, {"grant_type": DEVICE})
    other = await start()
    await poll("device: code of another client", other["device_code"], script.ciba)

    started = await start()
    await script.provider.answer_device(
        started["verification_uri_complete"], started["user_code"], yes=False
    )
    await poll("device: refused", started["device_code"])
    started = await start()
    await script.provider.answer_device(started["verification_uri_complete"], started["user_code"])
    answer = await poll("device: approved", started["device_code"])
    _, claims = claims_of(answer.json()["id_token"])
    script.record("device: ID token", {"claims": sorted(claims)})
    await poll("device: once more", started["device_code"])


async def backchannel(script: Script) -> None:
    """Client-initiated backchannel authentication, in poll mode."""
    endpoint, party, hint = "backchannel_authentication", script.ciba, script.provider.hint
    valid = {"scope": "openid profile", "login_hint": hint}

    async def start(case: str | None = None, **changes: str) -> httpx2.Response:
        data = {name: value for name, value in (valid | changes).items() if value}
        return await script.call(case, endpoint, party, data)

    async def poll(case: str, auth_req_id: str, by: Party = party) -> httpx2.Response:
        data = {"grant_type": CIBA, "auth_req_id": auth_req_id}
        return await script.call(case, "token", by, data)

    asked = (await start("ciba: start", binding_message="Payment 42")).json()["auth_req_id"]
    await start("ciba: no hint", login_hint="")
    await start("ciba: unknown person", login_hint="nobody")
    await start("ciba: two hints", id_token_hint="magic")
    await start("ciba: id_token_hint no token", login_hint="", id_token_hint="magic")
    await start("ciba: no scope", scope="")
    await start("ciba: scope without openid", scope="profile")
    await start("ciba: requested_expiry no number", requested_expiry="soon")
    await start("ciba: long binding_message", binding_message="x" * 5000)
    await script.call("ciba: not authenticated", endpoint, None, valid)
    await script.call("ciba: client without this grant", endpoint, script.web, valid)
    await poll("ciba: poll", asked)
    await poll("ciba: poll again at once", asked)
    await poll("ciba: unknown request", "magic")
    await poll("ciba: request of another client", asked, script.device)
    await script.call("ciba: no auth_req_id", "token", party, {"grant_type": CIBA})

    started = (await start(binding_message="Payment 43")).json()
    await script.provider.answer_ciba(started, "Payment 43", yes=False)
    await poll("ciba: refused", started["auth_req_id"])
    started = (await start(binding_message="Payment 44")).json()
    await script.provider.answer_ciba(started, "Payment 44")
    answer = await poll("ciba: approved", started["auth_req_id"])
    _, claims = claims_of(answer.json()["id_token"])
    script.record("ciba: ID token", {"claims": sorted(claims)})
    await poll("ciba: once more", started["auth_req_id"])


async def logout(script: Script) -> None:
    """RP-initiated logout, by a browser that is signed in."""
    tokens = await script.tokens()
    url, hint = script.endpoint("end_session"), tokens["id_token"]
    for case, parameters in {
        "nothing": {},
        "hint": {"id_token_hint": hint},
        "hint and URI": {"id_token_hint": hint, "post_logout_redirect_uri": AFTER_LOGOUT},
        "client_id and URI": {
            "client_id": script.web.client.client_id,
            "post_logout_redirect_uri": AFTER_LOGOUT,
        },
        "URI alone": {"post_logout_redirect_uri": AFTER_LOGOUT},
        "URI of elsewhere": {
            "id_token_hint": hint,
            "post_logout_redirect_uri": "https://attacker.example/",
        },
        "hint no token": {"id_token_hint": "magic"},
        "unknown client": {"client_id": "no-such-client"},
        "hint of another client": {
            "id_token_hint": hint,
            "client_id": script.post.client.client_id,
        },
    }.items():
        for method in ("GET", "POST"):
            async with browser() as client:
                page = await (
                    client.get(url, params=parameters)
                    if method == "GET"
                    else client.post(url, content=urlencode(parameters), headers=FORM)
                )
            script.record(f"logout: {case}, {method}", _of_logout(script, page))


def _of_logout(script: Script, page: httpx2.Response) -> dict[str, Any]:
    """Whether the person sees a page of the provider, is led elsewhere, or to an error."""
    if page.is_redirect:
        here = is_at(page.headers["location"], script.provider.issuer)
        return {"goes": "to the person" if here else "to the client"}
    if page.status_code == 200:
        return {"goes": "to the person"}
    return {"goes": "nowhere", "status": page.status_code}


def _of_document(answer: httpx2.Response) -> dict[str, Any]:
    facts = facts_of(answer)
    return {
        "status": facts["status"],
        "type": facts["type"],
        "from other origins": "access-control-allow-origin" in answer.headers,
        "cached": "max-age" in answer.headers.get("cache-control", ""),
    }


CASES = (metadata, devices, backchannel, logout)
