"""A device that waits, and the browser of its person."""

from typing import Any
from urllib.parse import urlsplit

import httpx2

from msgsvc_core.plugins.sign_ins import SignInMethod
from plugins.areas.oidc.tests.conftest import Visitor

DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code"

#: How a client for devices is registered.
DEVICE_CLIENT: dict[str, Any] = {
    "name": "TV",
    "redirect_uris": [],
    "grant_types": [DEVICE_CODE, "refresh_token"],
    "scopes": ["openid", "profile", "offline_access", "notify"],
    "token_endpoint_auth_method": "none",
}


async def ask_for_codes(person: Visitor, client: dict[str, Any], **changed: Any) -> httpx2.Response:
    """The device's first request."""
    return await person.post(client, "/device_authorization", **{"scope": "openid", **changed})


async def start(person: Visitor, client: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """The codes of a device."""
    response = await ask_for_codes(person, client, **changed)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def poll(person: Visitor, client: dict[str, Any], device_code: str) -> httpx2.Response:
    """The device asks for its tokens."""
    return await person.token(client, grant_type=DEVICE_CODE, device_code=device_code)


async def enter(person: Visitor, user_code: str) -> httpx2.Response:
    """The person opens the page and enters a code."""
    opened = await person.http.get(f"{person.issuer}/device")
    assert opened.status_code == 200, opened.text
    return await person.http.post(f"{person.issuer}/device", data={"user_code": user_code})


async def answer(
    person: Visitor, user_code: str, said: str = "allow", method: SignInMethod = "number"
) -> httpx2.Response:
    """The whole way of the person: the code, a sign-in where it is needed, and the consent."""
    page = await enter(person, user_code)
    assert page.status_code == 303, page.text
    if "/login/" in page.headers["Location"]:
        page = await person.press_yes(method)
    assert "/consent/" in urlsplit(page.headers["Location"]).path
    return await person.answer_consent(page, said)
