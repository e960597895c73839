"""The guide on embedding: each of its programs runs as it is printed, and sends a message."""

import importlib
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette

from msgsvc_core.service import Service
from msgsvc_devkit import settled
from msgsvc_devkit.services import SECRET_KEY
from tests.e2e.guide_blocks import blocks_of
from tests.e2e.test_messages_guide import GUIDES

GUIDE = GUIDES / "embed.md"
README = Path(__file__).parents[2] / "README.md"

DJANGO_SETTINGS = """
ROOT_URLCONF = "shop.urls"
SECRET_KEY = "only for this test"
ALLOWED_HOSTS = ["*"]
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The guide's files in a folder, from which they can be imported."""
    for block in blocks_of(GUIDE):
        if block.language == "python" and block.what:
            assert f"`{block.what}`" in block.before, f"line {block.line}: name {block.what} before"
            path = tmp_path / block.what
            path.parent.mkdir(exist_ok=True)
            path.write_text(block.code, encoding="utf-8")
    (tmp_path / "shop" / "settings.py").write_text(DJANGO_SETTINGS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("MSGSVC_SECRET_KEYS", f'["{SECRET_KEY}"]')
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in {"shop", "fastapi_shop", "starlette_shop"}:
            del sys.modules[name]


@asynccontextmanager
async def running(app: Starlette) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8080") as client,
    ):
        yield client


async def subscribe(service: Service, customer: str) -> None:
    """Has a customer open a link of the shop in the sandbox, which is pressing Start."""
    (project, *_) = await service.projects.list()
    _, key = await service.projects.create_key(project.project_id, "test")
    transport = httpx2.ASGITransport(app=service.app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8080") as api:
        made = await api.post(
            "/v1/subscribers/links",
            json={"external_id": customer},
            headers={"Authorization": f"Bearer {key}"},
        )
        person = await api.post("/sandbox/api/people", json={"name": customer.title()})
        opened = await api.post(
            f"/sandbox/api/people/{person.json()['person_id']}/open",
            json={"link": made.json()["links"]["messenger_a"]},
        )
    assert opened.is_success, opened.text


async def statuses(service: Service) -> list[str]:
    await settled(service)
    async with service.db.read() as tx:
        rows = await tx.fetch_all("SELECT status FROM core_messages ORDER BY message_id")
    return [row["status"] for row in rows]


@pytest.mark.parametrize("module", ["fastapi_shop", "starlette_shop"])
async def test_a_mounted_service_sends_what_the_application_asks(
    programs: Path, module: str
) -> None:
    shop: Any = importlib.import_module(module)

    async with running(shop.app) as client:
        await subscribe(shop.service, "ann")
        shipped = await client.post("/orders/17/ship/ann")
        described = await client.get("/msgsvc/openapi.json")
        sent = await statuses(shop.service)

    assert shipped.json()["message_id"].startswith("msg_")
    assert described.status_code == 200
    assert sent == ["sent"]


async def test_the_lines_of_the_readme_are_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (block,) = [block for block in blocks_of(README) if block.language == "python"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MSGSVC_SECRET_KEYS", f'["{SECRET_KEY}"]')
    program: dict[str, Any] = {}
    exec(block.code, program)  # noqa: S102 - the code is that of our README, which users run

    async with running(program["app"]) as client:
        ready = await client.get("/msgsvc/readyz")

    assert ready.status_code == 200


async def test_django_sends_from_asynchronous_and_synchronous_views(programs: Path) -> None:
    asgi: Any = importlib.import_module("shop.asgi")

    async with running(asgi.application) as client:
        await subscribe(asgi.service, "ann")
        shipped = await client.post("/orders/17/ship/ann")
        refunded = await client.post("/orders/17/refund/ann")
        described = await client.get("/msgsvc/openapi.json")
        sent = await statuses(asgi.service)

    assert [each.json()["message_id"][:4] for each in (shipped, refunded)] == ["msg_", "msg_"]
    assert described.status_code == 200
    assert sent == ["sent", "sent"]


async def test_a_forgotten_lifespan_is_named(programs: Path) -> None:
    shop: Any = importlib.import_module("starlette_shop")
    transport = httpx2.ASGITransport(app=shop.app)

    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8080") as client:
        answer = await client.get(
            "/msgsvc/v1/project", headers={"Authorization": f"Bearer msk_{'0' * 43}"}
        )

    assert answer.status_code == 503
    assert "the service is not started" in answer.json()["error"]
