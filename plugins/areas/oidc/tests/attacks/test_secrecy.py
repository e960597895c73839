"""What somebody finds who reads the logs or a copy of the database: no secret, code, token or cookie (RFC
9700, section 4.3; RFC 6819, section 5.1.4.1)."""

import ast
import inspect
from pathlib import Path

import pytest

import msgsvc_oidc
from msgsvc_core.kernel.ids import new_id
from msgsvc_oidc.grants.service import Grants
from msgsvc_oidc.protocol.client_authentication import ASSERTION_TYPE
from plugins.areas.oidc.tests.attacks.test_client_assertions import RSA, claims_of, signed
from plugins.areas.oidc.tests.conftest import CALLBACK, CHALLENGE, VERIFIER

OFFLINE = "openid profile offline_access"

#: Values that have to be equal in constant time: whoever may measure the comparison does not know them.
SECRET_NAMES = ("secret", "signature", "digest", "verifier", "token")


async def a_whole_flow(ann, register, clock) -> dict[str, str]:
    """A sign-in with all that can go wrong, and every secret that was seen on the way."""
    scopes = ["openid", "profile", "offline_access"]
    client, robot = (
        await register(scopes=scopes),
        await register(
            scopes=scopes,
            token_endpoint_auth_method="private_key_jwt",
            jwks={"keys": [RSA.as_dict(private=False)]},
        ),
    )
    code = await ann.code(client, scope=OFFLINE, state="state-of-the-browser", nonce="its-nonce")
    by_form = await ann.authorize(client, response_mode="form_post", prompt="none")
    tokens = (await ann.exchange(client, code)).json()
    refreshed = (await ann.refresh(client, tokens["refresh_token"])).json()
    await ann.userinfo(tokens["access_token"])
    await ann.http.post(f"{ann.issuer}/userinfo", data={"access_token": tokens["access_token"]})
    await ann.http.get(f"{ann.issuer}/userinfo", params={"access_token": tokens["access_token"]})
    auth = (client["client_id"], client["client_secret"])
    for path in ("introspect", "revoke"):
        form = {"token": refreshed["refresh_token"]}
        await ann.http.post(f"{ann.issuer}/{path}", data=form, auth=auth)
    assertion = signed(claims_of(ann, robot, clock, jti=new_id("jti")))
    fields = {"client_assertion_type": ASSERTION_TYPE, "client_assertion": assertion}
    pushed = await ann.http.post(
        f"{ann.issuer}/par",
        data={**fields, "response_type": "code", "redirect_uri": CALLBACK, "scope": "openid"},
    )
    # The same again, and wrong ones.
    await ann.http.post(f"{ann.issuer}/token", data={**fields, "grant_type": "refresh_token"})
    await ann.exchange(client, code)
    await ann.refresh(client, tokens["refresh_token"])
    await ann.exchange({**client, "client_secret": f"{client['client_secret']}x"}, code)
    await ann.exchange(client, code, code_verifier="x" * 43)
    return {
        "client secret": client["client_secret"],
        "code": code,
        "code in a form": by_form.text.partition('name="code" value="')[2].partition('"')[0],
        "verifier": VERIFIER,
        "access token": tokens["access_token"],
        "refresh token": tokens["refresh_token"],
        "next refresh token": refreshed["refresh_token"],
        "ID token": tokens["id_token"],
        "assertion": assertion,
        "pushed request": pushed.json()["request_uri"],
        "code of the sign-in page": ann.sign_ins.started[next(iter(ann.sign_ins.started))].code,
        **{f"cookie {number}": each.value for number, each in enumerate(ann.http.cookies.jar)},
    }


@pytest.fixture
async def seen(capfd, ann, register, clock):
    """After `capfd`, which then has what was logged meanwhile."""
    found = await a_whole_flow(ann, register, clock)
    assert all(len(secret) > 20 for secret in found.values()), found
    return found


async def test_no_secret_is_in_the_log(seen, capfd):
    log = "".join(capfd.readouterr())
    leaked = [name for name, secret in seen.items() if secret in log]

    assert log.count("request ") > 15
    assert not leaked
    for text in ("state-of-the-browser", "its-nonce", CHALLENGE):
        assert text not in log


async def test_an_unexpected_error_logs_no_secret(ann, register, capfd, monkeypatch):
    client = await register(scopes=["openid", "offline_access"])
    code = await ann.code(client, scope="openid offline_access")

    async def broken(self, *args, **kwargs):
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr(Grants, "tokens", broken)
    response = await ann.exchange(client, code)
    log = "".join(capfd.readouterr())

    assert (response.status_code, response.json()["error"]) == (500, "server_error")
    assert "broken on purpose" in log
    assert "broken on purpose" not in response.text
    for secret in (code, client["client_secret"], VERIFIER):
        assert secret not in log


async def test_no_secret_is_in_the_database(seen, service):
    async with service.db.read() as tx:
        tables = await tx.fetch_all(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'oidc_%'"
        )
        rows = [
            str(dict(row))
            for table in tables
            for row in await tx.fetch_all(f"SELECT * FROM {table['name']}")
        ]
    everything = "\n".join(rows)

    assert "Grafana" in everything
    assert not [name for name, secret in seen.items() if secret in everything]
    assert '"d":' not in everything


async def test_no_secret_is_shown_again(seen, ann, client):
    listed = (await client.get("/v1/oidc/clients")).text
    for each in (await client.get("/v1/oidc/clients")).json()["data"]:
        path = f"/v1/oidc/clients/{each['client_id']}"
        listed += (await client.get(path)).text
        listed += (await client.get(f"{path}/secrets")).text

    assert not [name for name, secret in seen.items() if secret in listed]


async def test_no_error_repeats_what_was_wrong(ann, register):
    client = await register()
    code = await ann.code(client)
    wrong = {**client, "client_secret": "mos_wrong_secret"}
    for response in (
        await ann.exchange(wrong, code),
        await ann.exchange(client, code, code_verifier="x" * 43),
        await ann.exchange(client, f"{code}x"),
        await ann.refresh(client, code),
        await ann.userinfo(code),
    ):
        text = f"{response.text}{response.headers}"
        assert response.status_code in {400, 401}
        assert "mos_wrong_secret" not in text
        assert code not in text
        assert "x" * 43 not in text


def test_secrets_are_compared_in_constant_time():
    compared = [
        f"{path.name}:{node.lineno}"
        for path in Path(inspect.getfile(msgsvc_oidc)).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Compare)
        and any(isinstance(op, (ast.Eq, ast.NotEq)) for op in node.ops)
        for side in (node.left, *node.comparators)
        if _name(side).endswith(SECRET_NAMES)
    ]

    assert not compared


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""
