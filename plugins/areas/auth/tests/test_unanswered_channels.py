"""A messenger on which people can't answer is offered for signing in nowhere."""

from typing import Any

import httpx2
import pytest

from msgsvc_auth import plugin
from msgsvc_core.channels import Capabilities
from msgsvc_core.service import Service
from msgsvc_devkit.dashboard import visitor

from .conftest import CALLBACK
from .hosted import browsing

LINK = {"slug": "shop", "name": "Shop", "callback_url": CALLBACK}


@pytest.fixture
def one_mute(service: Service) -> None:
    """People can answer on `messenger_b` alone."""
    service.channels["messenger_a"].capabilities = Capabilities(buttons="links")


@pytest.fixture
def all_mute(service: Service, one_mute: None) -> None:
    """People can answer nowhere."""
    service.channels["messenger_b"].capabilities = Capabilities(buttons="links")


async def sessions(service: Service) -> int:
    async with service.db.read() as tx:
        found: int = await tx.fetch_val("SELECT COUNT(*) AS count FROM auth_sessions")
    return found


@pytest.mark.parametrize(("path", "body"), [("session", {"state": "s"}), ("links", LINK)])
async def test_links_lead_to_the_other_messenger(
    client: httpx2.AsyncClient, one_mute: None, path: str, body: dict[str, Any]
) -> None:
    answer = await client.post(f"/v1/auth/{path}", json=body)

    assert answer.status_code == 201
    assert list(answer.json()["links"]) == list(answer.json()["qr"]) == ["messenger_b"]


@pytest.mark.parametrize(("path", "body"), [("session", {"state": "s"}), ("links", LINK)])
async def test_where_nobody_can_answer_it_is_refused_with_the_reason(
    client: httpx2.AsyncClient, all_mute: None, path: str, body: dict[str, Any]
) -> None:
    answer = await client.post(f"/v1/auth/{path}", json=body)

    assert (answer.status_code, answer.json()["code"]) == (400, "validation_failed")
    assert "people can't answer a bot on any" in answer.json()["error"]


async def test_the_hosted_page_offers_the_other_messenger(
    service: Service, client: httpx2.AsyncClient, one_mute: None
) -> None:
    await client.post("/v1/auth/links", json=LINK)

    async with browsing(service) as browser:
        page = await browser.open()

    assert page.status_code == 200
    assert browser.link("messenger_b")
    assert "messenger_a" not in page.text


async def test_the_hosted_page_begins_no_sign_in_that_nobody_can_answer(
    service: Service, client: httpx2.AsyncClient, one_mute: None
) -> None:
    await client.post("/v1/auth/links", json=LINK)

    async with browsing(service) as browser:
        page = await browser.open("/login/shop?channel=messenger_a")

    assert page.status_code == 400
    assert await sessions(service) == 0


async def test_the_owner_tries_the_sign_in_on_the_other_messenger(make_service: Any) -> None:
    service = await make_service(extra_plugins=[("auth", plugin)], plugins=("dashboard",))
    service.channels["messenger_a"].capabilities = Capabilities(buttons="links")
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    await owner.post("/sign-in/links/new", LINK)

    begun = await owner.post("/sign-in/try")
    link = await owner.get("/sign-in/links/shop")

    for shown in (begun, link):
        assert shown.status_code == 200
        assert "https://messenger_b.example/bot?start=auth_" in shown.text
        assert "https://messenger_a.example" not in shown.text
