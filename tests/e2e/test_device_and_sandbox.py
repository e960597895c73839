"""A device's sign-in with the sandbox messenger, over HTTP: Cancel in the chat ends the device's wait."""

import re
from html import unescape
from urllib.parse import urlsplit

import httpx2

from msgsvc_devkit.ephemeral.actors import Msgsvc

DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code"


def test_a_device_stops_waiting_when_cancel_is_pressed(msgsvc: Msgsvc) -> None:
    with httpx2.Client(base_url=msgsvc.base_url, timeout=60) as browser:
        tv = browser.post(
            "/v1/oidc/clients",
            headers={"Authorization": f"Bearer {msgsvc.api_key}"},
            json={
                "name": "TV",
                "grant_types": [DEVICE_CODE],
                "token_endpoint_auth_method": "none",
            },
        ).json()
        issuer, named = urlsplit(tv["issuer"]).path, {"client_id": tv["client_id"]}
        codes = browser.post(
            f"{issuer}/device_authorization", data={**named, "scope": "openid"}
        ).json()
        poll = {**named, "grant_type": DEVICE_CODE, "device_code": codes["device_code"]}
        waiting = browser.post(f"{issuer}/token", data=poll).json()

        browser.get(f"{issuer}/device")
        entered = browser.post(f"{issuer}/device", data={"user_code": codes["user_code"]})
        page = browser.get(entered.headers["Location"]).text
        link = re.search(r'data-channel="messenger_a" href="([^"]+)"', page)
        assert link is not None, page
        ann = msgsvc.person("Ann")
        ann.open(unescape(link[1]))
        ann.press("Cancel")
        refused = browser.post(f"{issuer}/token", data=poll)

    assert waiting["error"] == "authorization_pending"
    assert (refused.status_code, refused.json()["error"]) == (400, "access_denied")
