"""The pages in the dashboard: a client's life, the checker, sign-ins, sign-outs, and who may do what."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from msgsvc_core.service import Service
from msgsvc_devkit.dashboard import Visitor as DashboardVisitor
from msgsvc_devkit.dashboard import visitor
from msgsvc_oidc import plugin
from plugins.areas.oidc.tests.conftest import CALLBACK, PATH, Registry, Visitor
from plugins.areas.oidc.tests.sign_ins import ScriptedSignIns

#: What somebody might try to have a page run.
HOSTILE = "<script>alert(1)</script>\"'{{7*7}}"

NEW = {
    "name": "Grafana",
    "auth_method": "client_secret_basic",
    "redirect_uris": f"{CALLBACK}\r\n https://app.example/second \r\n",
    "scopes": ["profile", "notify"],
    "grant_types": ["authorization_code", "refresh_token"],
    "signing_alg": "ES256",
}


@pytest.fixture
async def service(
    make_service: Callable[..., Awaitable[Service]],
    sign_ins: ScriptedSignIns,
    oidc_settings: dict[str, Any],
) -> Service:
    return await make_service(
        plugins=("dashboard",),
        extra_plugins=[("signing", sign_ins), ("oidc", plugin)],
        oidc=oidc_settings,
        base_url="http://msgsvc.test",
    )


@pytest.fixture
async def owner(service: Service, tenant: Any) -> AsyncIterator[DashboardVisitor]:
    made = await visitor(service, tenant.project.project_id)
    yield made
    await made.client.aclose()


def path_of(client: dict[str, Any]) -> str:
    return f"/oidc/{client['client_id']}"


async def test_a_client_is_added_and_its_secret_shown_once(
    owner: DashboardVisitor, register: Registry
) -> None:
    empty, form = await owner.get("/oidc"), await owner.get("/oidc/new")
    made = await owner.post("/oidc/new", NEW)
    [client] = (await register.client.get("/v1/oidc/clients")).json()["data"]
    listed, shown = await owner.get("/oidc"), await owner.get(path_of(client))

    assert "No clients yet" in empty.text
    assert re.search(r'value="profile" checked', form.text)
    assert client["issuer"] in made.text
    assert client["client_id"] in made.text
    assert re.search(r"mos_\w+", made.text)
    assert client["redirect_uris"] == [CALLBACK, "https://app.example/second"]
    assert client["scopes"] == ["openid", "profile", "notify"]
    assert client["id_token_signed_response_alg"] == "ES256"
    assert "mos_" not in listed.text + shown.text
    assert client["issuer"] in shown.text


async def test_what_was_typed_is_shown_again_after_a_refusal(owner: DashboardVisitor) -> None:
    typed = {**NEW, "name": HOSTILE, "redirect_uris": "http://app.example/", "pairwise": "1"}
    refused = await owner.post("/oidc/new", {**typed, "scopes": ["phone"]})

    assert refused.status_code == 400
    assert 'role="alert"' in refused.text
    assert "<script>alert" not in refused.text
    assert "&lt;script&gt;" in refused.text
    assert "http://app.example/" in refused.text
    assert re.search(r'value="phone" checked', refused.text)
    assert not re.search(r'value="profile" checked', refused.text)
    assert re.search(r'name="pairwise" value="1" checked', refused.text)


async def test_an_app_has_no_secret(owner: DashboardVisitor) -> None:
    made = await owner.post("/oidc/new", {**NEW, "auth_method": "none"})
    path = re.search(r'href="([^"]+/oidc/app_\w+)"', made.text)
    assert path is not None
    shown = await owner.get(path[1])

    assert "mos_" not in made.text
    assert "Rotate the secret" not in shown.text


async def test_a_client_with_keys_of_its_own_is_added(owner: DashboardVisitor) -> None:
    jwks = '{"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}'
    with_keys = {**NEW, "auth_method": "private_key_jwt"}
    made = await owner.post("/oidc/new", {**with_keys, "jwks": jwks})
    broken = await owner.post("/oidc/new", {**with_keys, "jwks": "{"})

    assert made.status_code == 200
    assert "mos_" not in made.text
    assert broken.status_code == 400
    assert "JWK Set" in broken.text


async def test_a_client_is_changed_and_deleted(owner: DashboardVisitor, register: Registry) -> None:
    client = await register(scopes=["openid", "profile", "phone"])
    form = await owner.get(f"{path_of(client)}/edit")
    changed = await owner.post(
        f"{path_of(client)}/edit",
        {
            "name": "Wiki",
            "redirect_uris": CALLBACK,
            "grant_types": ["authorization_code"],
            "backchannel_logout_uri": "https://app.example/logout",
            "first_party": "1",
        },
    )
    shown = await owner.get(path_of(client))
    after = (
        await register.client.get(f"/v1{path_of(client).replace('/oidc/', '/oidc/clients/')}")
    ).json()
    deleted = await owner.post(f"{path_of(client)}/delete")

    assert re.search(r'value="phone" checked', form.text)
    assert changed.status_code == 303
    assert "Wiki" in shown.text
    assert (after["scopes"], after["first_party"]) == (["openid"], True)
    assert after["backchannel_logout_uri"] == "https://app.example/logout"
    assert deleted.headers["location"].endswith("/oidc")
    assert (await owner.get(path_of(client))).status_code == 404


async def test_an_api_is_added_that_introspects_tokens_of_another_client(
    owner: DashboardVisitor, register: Registry
) -> None:
    page = await register(name="Page", token_endpoint_auth_method="none")
    form = await owner.get("/oidc/new")
    added = await owner.post(
        "/oidc/new",
        {
            "name": "API",
            "auth_method": "client_secret_post",
            "signing_alg": "ES256",
            "introspects": page["client_id"],
        },
    )
    api, _ = (await register.client.get(PATH)).json()["data"]
    shown, edit = await owner.get(path_of(api)), await owner.get(f"{path_of(api)}/edit")
    changed = await owner.post(
        f"{path_of(api)}/edit", {"name": "API", "auth_method": "client_secret_basic"}
    )
    [after, _] = (await register.client.get(PATH)).json()["data"]

    assert "Access tokens that it may introspect" in form.text
    assert added.status_code == 200, added.text
    assert (api["grant_types"], api["introspects"]) == ([], [page["client_id"]])
    assert "none: it signs nobody in" in shown.text
    assert "With a secret in the form or the header (client_secret_post)" in shown.text
    assert re.search(r"<dd[^>]*>\s*Page\s*</dd>", shown.text)
    assert re.search(rf'name="introspects" value="{page["client_id"]}" checked', edit.text)
    assert changed.status_code == 303
    assert after["token_endpoint_auth_method"] == "client_secret_basic"
    assert after["introspects"] == []


async def test_claims_are_in_id_tokens_unless_the_box_is_cleared(
    owner: DashboardVisitor, register: Registry
) -> None:
    form = await owner.get("/oidc/new")
    await owner.post("/oidc/new", NEW)
    [without] = (await register.client.get(PATH)).json()["data"]
    shown = await owner.get(path_of(without))
    await owner.post(f"{path_of(without)}/edit", {**NEW, "claims_in_id_token": "1"})
    [with_them] = (await register.client.get(PATH)).json()["data"]

    assert re.search(r'name="claims_in_id_token" value="1" checked', form.text)
    assert (without["claims_in_id_token"], with_them["claims_in_id_token"]) == (False, True)
    assert "none: userinfo has them" in shown.text


async def test_secrets_are_rotated_two_at_a_time_and_deleted(
    owner: DashboardVisitor, register: Registry
) -> None:
    client = await register()
    only = await owner.get(path_of(client))
    [first] = set(re.findall(r"sec_\w+", only.text))
    alone = await owner.post(f"{path_of(client)}/secrets/{first}/delete")
    rotated = await owner.post(f"{path_of(client)}/secrets")
    both = await owner.get(path_of(client))
    removed = await owner.post(f"{path_of(client)}/secrets/{first}/delete")
    rest = await owner.get(path_of(client))

    assert alone.status_code == 409
    assert re.search(r"mos_\w+", rotated.text)
    assert "the old secret works as well" in rotated.text
    assert len(set(re.findall(r"sec_\w+", both.text))) == 2
    assert removed.status_code == 303
    assert first not in rest.text


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (CALLBACK, "It matches:"),
        ("http://app.example/callback", "The scheme differs: https is registered, http was sent."),
        ("https://app.example/callback/", "The slash at the end differs"),
        ("https://app.example:8443/callback", "The port differs: none is registered, 8443"),
        ("https://App.example/callback", "upper and lower case: app.example and App.example"),
        ("https%3A%2F%2Fapp.example%2Fcallback", "It matches:"),
        ("https://app.example/callback#x", "It can&#39;t be registered as it is:"),
        ("https://app.example/other", "Register it as it was sent"),
    ],
)
async def test_the_checker_names_the_difference(
    owner: DashboardVisitor, register: Registry, sent: str, said: str
) -> None:
    client = await register()
    shown = await owner.get(path_of(client), redirect_uri=sent)

    assert shown.status_code == 200
    assert said in shown.text


async def test_the_checker_runs_nothing_that_was_pasted(
    owner: DashboardVisitor, register: Registry
) -> None:
    client = await register()
    shown = await owner.get(path_of(client), redirect_uri=f"https://app.example/{HOSTILE}")

    assert "<script>alert" not in shown.text
    assert "{{7*7}}" in shown.text


async def test_sign_ins_are_listed_with_the_reasons_of_those_that_failed(
    owner: DashboardVisitor, register: Registry, ann: Visitor
) -> None:
    client = await register()
    empty = await owner.get(f"{path_of(client)}/sign-ins")
    await ann.code(client)
    await ann.authorize(client, response_type="token")
    listed = await owner.get(f"{path_of(client)}/sign-ins")

    assert "No sign-ins yet" in empty.text
    assert "Signed in" in listed.text
    assert f"/subscribers/{ann.subscriber.subscriber_id}" in listed.text
    assert "Response type not supported" in listed.text
    assert "<code>unsupported_response_type</code>" in listed.text


async def test_sign_ins_are_on_pages(
    owner: DashboardVisitor, register: Registry, ann: Visitor, clock: Any
) -> None:
    client = await register()
    for _ in range(51):
        # So many failures a minute are recorded.
        clock.advance(3)
        await ann.authorize(client, response_type="token")
    first = await owner.get(f"{path_of(client)}/sign-ins")
    [cursor] = re.findall(r"sign-ins\?cursor=(\w+)", first.text)
    second = await owner.get(f"{path_of(client)}/sign-ins", cursor=cursor)

    assert first.text.count("unsupported_response_type") == 50
    assert second.text.count("unsupported_response_type") == 1


async def test_logout_tokens_are_listed(
    owner: DashboardVisitor, register: Registry, ann: Visitor
) -> None:
    plain, told = (
        await register(),
        await register(name="Wiki", backchannel_logout_uri="https://app.example/logout"),
    )
    await ann.tokens(told)
    waiting = await owner.get(f"{path_of(told)}/logouts")
    await ann.take_back(told)
    listed = await owner.get(f"{path_of(told)}/logouts")

    assert (
        "This client is not notified of sign-outs"
        in (await owner.get(f"{path_of(plain)}/logouts")).text
    )
    assert "No sign-outs yet" in waiting.text
    assert "Pending" in listed.text


async def test_a_viewer_looks_on_and_an_agent_sees_no_clients(
    owner: DashboardVisitor, register: Registry, service: Service
) -> None:
    client = await register()
    viewer = await visitor(service, owner.project_id, "viewer")
    agent = await visitor(service, owner.project_id, "agent")
    shown = await viewer.get(path_of(client))
    refused = [
        (await viewer.post(path, NEW)).status_code
        for path in (
            "/oidc/new",
            f"{path_of(client)}/edit",
            f"{path_of(client)}/secrets",
            f"{path_of(client)}/delete",
        )
    ]

    assert shown.status_code == 200
    assert "Rotate the secret" not in shown.text
    assert refused == [403] * 4
    assert (await agent.get("/oidc")).status_code == 403
    for made in (viewer, agent):
        await made.client.aclose()


async def test_a_client_of_another_project_is_not_found(
    owner: DashboardVisitor, register: Registry, make_tenant: Any, service: Service
) -> None:
    client = await register()
    other = await visitor(service, (await make_tenant(service, "News")).project.project_id)
    answers = [
        await other.get(path_of(client)),
        await other.get(f"{path_of(client)}/sign-ins"),
        await other.get(f"{path_of(client)}/logouts"),
        await other.post(f"{path_of(client)}/secrets"),
        await other.post(f"{path_of(client)}/delete"),
    ]

    assert [answer.status_code for answer in answers] == [404] * 5
    await other.client.aclose()


async def test_the_pages_speak_russian(owner: DashboardVisitor, register: Registry) -> None:
    client = await register()
    shown = await owner.client.get(
        owner.url(path_of(client)),
        params={"redirect_uri": "https://app.example/callback/"},
        headers={"Accept-Language": "ru"},
    )

    assert "Разница в косой черте на конце" in shown.text
    assert "Адреса возврата" in shown.text
