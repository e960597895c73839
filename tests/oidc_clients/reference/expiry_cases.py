"""What is refused when its time is over. Each case lets as much time pass as either provider gives."""

from tests.oidc_clients.provider import CIBA, DEVICE, Clocked
from tests.oidc_clients.reference.recording import Script, facts_of

#: Seconds, each longer than what it is for lives.
CODE_S = 601
TOKEN_S = 3601
REQUEST_S = 901
REFRESH_S = 400 * 86_400


async def codes(script: Script, provider: Clocked) -> None:
    code = await script.code()
    await provider.advance(CODE_S)
    await script.exchange("expired: code", script.web, code)


async def access_tokens(script: Script, provider: Clocked) -> None:
    tokens = await script.tokens()
    token = tokens["access_token"]
    await provider.advance(TOKEN_S)
    headers = {"Authorization": f"Bearer {token}"}
    answer = await script.http.get(script.endpoint("userinfo"), headers=headers)
    script.record("expired: access token", facts_of(answer))
    await script.call(
        "expired: introspection of the access token", "introspection", script.web, {"token": token}
    )
    await script.refresh("expired: refresh afterwards", script.web, tokens["refresh_token"])


async def refresh_tokens(script: Script, provider: Clocked) -> None:
    token = (await script.tokens())["refresh_token"]
    await provider.advance(REFRESH_S)
    await script.refresh("expired: refresh token", script.web, token)


async def devices(script: Script, provider: Clocked) -> None:
    scope = {"scope": "openid"}
    answer = await script.call(None, "device_authorization", script.device, scope)
    code = answer.json()["device_code"]
    await provider.advance(REQUEST_S)
    data = {"grant_type": DEVICE, "device_code": code}
    await script.call("expired: device code", "token", script.device, data)


async def backchannel(script: Script, provider: Clocked) -> None:
    asked = {"scope": "openid", "login_hint": script.provider.hint}
    answer = await script.call(None, "backchannel_authentication", script.ciba, asked)
    auth_req_id = answer.json()["auth_req_id"]
    await provider.advance(REQUEST_S)
    data = {"grant_type": CIBA, "auth_req_id": auth_req_id}
    await script.call("expired: backchannel request", "token", script.ciba, data)


async def pushed(script: Script, provider: Clocked) -> None:
    endpoint = "pushed_authorization_request"
    answer = await script.call(None, endpoint, script.web, script.request())
    uri = answer.json()["request_uri"]
    await provider.advance(REQUEST_S)
    again = {"client_id": script.web.client.client_id, "request_uri": uri}
    await script.authorize("expired: pushed request", again)


CASES = (codes, access_tokens, devices, backchannel, pushed, refresh_tokens)
