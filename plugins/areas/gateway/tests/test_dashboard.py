"""The pages in the dashboard: a gateway's life, what was sent, and who may do what."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from httpx2 import AsyncClient

from msgsvc_core.service import Service
from msgsvc_devkit import RecordingChannel
from msgsvc_devkit.dashboard import Visitor, visitor
from msgsvc_devkit.fixtures import Tenant
from msgsvc_gateway import plugin
from plugins.areas.gateway.tests.conftest import PHONE, Join, Make, Post, recorded
from plugins.areas.gateway.tests.test_sending import refused

#: What somebody might try to have a page run.
HOSTILE = "<script>alert(1)</script>\"'{{7*7}}"

NEW = {"name": "Login", "sender": "novu", "channel0": "messenger_b", "channel1": "messenger_a"}


@pytest.fixture
async def service(make_service: Callable[..., Awaitable[Service]]) -> Service:
    return await make_service(plugins=("dashboard",), extra_plugins=[("gateway", plugin)])


@pytest.fixture
async def owner(service: Service, tenant: Tenant) -> AsyncIterator[Visitor]:
    made = await visitor(service, tenant.project.project_id)
    yield made
    await made.client.aclose()


async def only_gateway(client: AsyncClient) -> dict[str, Any]:
    [found] = (await client.get("/v1/gateways")).json()["data"]
    return dict(found)


def url_in(html: str) -> str:
    found = re.search(r'class="secret"[^>]*>(http[^<]+/compat/\w+/[\w-]{20,})<', html)
    assert found is not None
    return found[1]


async def test_a_gateway_is_added_and_its_url_shown_once(
    owner: Visitor, client: AsyncClient, post: Post, join: Join, first: RecordingChannel
) -> None:
    empty, form = await owner.get("/gateways"), await owner.get("/gateways/new")
    made = await owner.post("/gateways/new", NEW)
    gateway = await only_gateway(client)
    path = f"/gateways/{gateway['gateway_id']}"
    shown, listed = await owner.get(path), await owner.get("/gateways")
    await join("messenger_a", phone=PHONE)
    taken = await post({"url": url_in(made.text)}, recorded("novu"))
    after = await owner.get("/gateways")

    assert "No gateways yet" in empty.text
    assert re.search(r'name="channel1"', form.text)
    assert gateway["channels"] == ["messenger_b", "messenger_a"]
    secret = url_in(made.text).rpartition("/")[2]
    assert secret not in shown.text + listed.text
    assert "Base URL" in made.text
    assert "/compat/novu/…" in shown.text
    assert "none in a week" in listed.text
    assert taken.status_code == 200
    assert "none in a week" not in after.text
    assert "Sent" in after.text


@pytest.mark.parametrize(
    ("sender", "values"),
    [
        ("zitadel", ["/admin/v1/sms/http", "$ID/_activate", "not checked"]),
        ("logto", ["HTTP SMS", "<dt>Endpoint</dt>"]),
        ("novu", ["<dt>Id Path</dt>", "X-API-KEY"]),
        ("supabase", ["Send SMS", "/compat/supabase/…", "GOTRUE_HOOK_SEND_SMS_SECRETS"]),
        ("generic", ["/compat/generic/…", "sign_in", "402913"]),
    ],
)
async def test_how_each_sender_is_set_up(
    owner: Visitor, make: Make, sender: str, values: list[str]
) -> None:
    gateway = await make(sender)

    page = await owner.get(f"/gateways/{gateway['gateway_id']}")

    assert [value for value in values if value not in page.text] == []


@pytest.mark.both_databases
async def test_messages_are_listed_with_their_outcome(
    owner: Visitor, make: Make, post: Post, join: Join, first: RecordingChannel
) -> None:
    await join("messenger_a", phone=PHONE)
    gateway, other = await make("zitadel"), await make("logto")
    first.failures.append(refused())
    await post(gateway, recorded("zitadel-sms"))

    page = await owner.get(f"/gateways/{gateway['gateway_id']}")
    listed = await owner.get("/gateways")

    assert "+12•••••0123" in page.text
    assert PHONE not in page.text
    assert "402913" not in page.text
    assert "the person has blocked the bot" in page.text
    assert "Failed" in listed.text
    assert "none in a week" in listed.text
    assert other["gateway_id"] in listed.text


async def test_a_gateway_is_changed_and_deleted(
    owner: Visitor, make: Make, client: AsyncClient
) -> None:
    gateway = await make("zitadel")
    path = f"/gateways/{gateway['gateway_id']}"
    form = await owner.get(f"{path}/edit")
    typed = {"name": HOSTILE, "channel0": "messenger_b", "signing_key": "zitadel-key"}
    changed = await owner.post(f"{path}/edit", typed)
    signed = await only_gateway(client)
    shown, again = await owner.get(path), await owner.get(f"{path}/edit")
    await owner.post(f"{path}/edit", {"name": "X", "channel0": "messenger_b"})
    kept = await only_gateway(client)
    await owner.post(f"{path}/edit", {"name": "X", "channel0": "messenger_b", "unsigned": "1"})
    unsigned = await only_gateway(client)
    deleted = await owner.post(f"{path}/delete")

    assert "Signing key" in form.text
    assert changed.status_code == 303
    assert (signed["channels"], signed["has_signing_key"]) == (["messenger_b"], True)
    assert "<script>alert" not in shown.text + again.text
    assert "zitadel-key" not in shown.text + again.text
    assert "checked" in shown.text
    assert "not checked" not in shown.text
    assert (kept["has_signing_key"], unsigned["has_signing_key"]) == (True, False)
    assert deleted.headers["location"].endswith("/gateways")
    assert (await owner.get(path)).status_code == 404


async def test_paths_of_a_generic_gateway_are_entered_and_cleared(
    owner: Visitor, make: Make, client: AsyncClient
) -> None:
    path = f"/gateways/{(await make('generic'))['gateway_id']}"
    typed = {"name": "X", "channel0": "messenger_a"}
    form = await owner.get(f"{path}/edit")
    await owner.post(f"{path}/edit", {**typed, "path_to": " user.phone ", "path_code": "sms.otp"})
    entered, shown = await only_gateway(client), await owner.get(path)
    wrong = await owner.post(f"{path}/edit", {**typed, "path_to": "user phone"})
    await owner.post(f"{path}/edit", typed)

    assert 'name="path_to"' in form.text
    assert entered["paths"] == {"to": "user.phone", "code": "sms.otp"}
    assert "<code>sms.otp</code>" in shown.text
    assert wrong.status_code == 400
    assert "user phone" in wrong.text
    assert (await only_gateway(client))["paths"] is None


async def test_the_url_is_replaced(
    owner: Visitor, make: Make, post: Post, join: Join, first: RecordingChannel
) -> None:
    await join("messenger_a", phone=PHONE)
    old = await make("novu")
    page = await owner.post(f"/gateways/{old['gateway_id']}/url")
    new = url_in(page.text)

    answers = [await post({"url": url}, recorded("novu")) for url in (old["url"], new)]

    assert new != old["url"]
    assert "the old URL works as well" in page.text
    assert [answer.status_code for answer in answers] == [200, 200]


async def test_who_replaces_the_url_twice_is_told_which_one_ends(
    owner: Visitor, make: Make, post: Post, join: Join
) -> None:
    await join("messenger_a", phone=PHONE)
    first = await make("novu")
    page = await owner.get(f"/gateways/{first['gateway_id']}")
    second = url_in((await owner.post(f"/gateways/{first['gateway_id']}/url")).text)
    again = await owner.get(f"/gateways/{first['gateway_id']}")
    third = url_in((await owner.post(f"/gateways/{first['gateway_id']}/url")).text)

    answers = [await post({"url": url}, recorded("novu")) for url in (first["url"], second, third)]

    assert "stops working at once" not in page.text
    assert "the one before it stops working at once" in again.text
    assert "Old URL works until" in again.text
    assert [answer.status_code for answer in answers] == [404, 200, 200]


async def test_what_was_typed_is_shown_again_after_a_refusal(owner: Visitor) -> None:
    twice = await owner.post("/gateways/new", {**NEW, "name": HOSTILE, "channel1": "messenger_b"})
    none = await owner.post("/gateways/new", {"name": "", "sender": "novu"})

    assert (twice.status_code, none.status_code) == (400, 400)
    assert "is named twice" in twice.text
    assert re.search(r'value="novu" selected', twice.text)
    assert len(re.findall(r'value="messenger_b" selected', twice.text)) == 2
    assert "<script>alert" not in twice.text
    assert 'role="alert"' in none.text


async def test_who_only_reads_changes_nothing(
    service: Service, tenant: Tenant, make: Make, client: AsyncClient
) -> None:
    gateway = await make("novu")
    viewer = await visitor(service, tenant.project.project_id, "viewer")
    path = f"/gateways/{gateway['gateway_id']}"

    shown = await viewer.get(path)
    answers = [
        await viewer.post("/gateways/new", NEW),
        *[await viewer.post(f"{path}/{what}") for what in ("edit", "url", "delete")],
    ]
    await viewer.client.aclose()

    assert shown.status_code == 200
    assert f"{path}/url" not in shown.text
    assert {answer.status_code for answer in answers} == {403}
    assert (await only_gateway(client))["name"] == "novu"


async def test_changes_are_in_the_audit_log(owner: Visitor, client: AsyncClient) -> None:
    await owner.post("/gateways/new", NEW)
    gateway = await only_gateway(client)
    await owner.post(f"/gateways/{gateway['gateway_id']}/url")

    log = await owner.get("/audit")

    assert "Gateway created" in log.text
    assert "Gateway URL replaced" in log.text
    assert f"/gateways/{gateway['gateway_id']}" in log.text
    assert "/compat/" not in log.text
