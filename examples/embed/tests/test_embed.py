"""The two shops, each behind a real server, with a service of their own."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
import uvicorn
from starlette.applications import Starlette

from examples.embed import fastapi_app, starlette_app
from msgsvc_core.channels import ChannelUser, Started
from msgsvc_core.config.settings import Settings
from msgsvc_core.plugins.loading import available_plugins
from msgsvc_core.service import Service
from msgsvc_devkit import RecordingChannel, RecordingPlugin, settled, until

BUILDERS = {"starlette": starlette_app.build, "fastapi": fastapi_app.build}

Build = Callable[..., Starlette]


@dataclass(frozen=True, slots=True)
class Shop:
    """A served shop. `client` calls it as its customers do."""

    app: Starlette
    client: httpx2.AsyncClient

    @property
    def service(self) -> Service:
        service: Service = self.app.state.service
        return service

    @property
    def texts(self) -> list[str]:
        """What the shop's messenger has shown."""
        channel = self.service.channels["messenger_a"]
        assert isinstance(channel, RecordingChannel)
        return channel.texts

    async def new_key(self) -> dict[str, str]:
        """The header with an API key for the shop's project."""
        _, secret = await self.service.projects.create_key(self.app.state.project_id, "test")
        return {"Authorization": f"Bearer {secret}"}

    async def subscribe(self, customer: str) -> None:
        """Has a customer open a link, as the shop's pages would show it."""
        answer = await self.client.post(
            "/msgsvc/v1/subscribers/links",
            json={"external_id": customer},
            headers=await self.new_key(),
        )
        payload = answer.json()["links"]["messenger_a"].partition("start=")[2]
        user = ChannelUser(f"user-{customer}", customer.title(), lang="en")
        start = Started(
            update_id=f"start-{customer}", chat_id=f"chat-{customer}", user=user, payload=payload
        )
        await self.service.inbound.receive("messenger_a", start)


@asynccontextmanager
async def served(app: Starlette) -> AsyncIterator[Shop]:
    """The application behind uvicorn on a free port, started and stopped by its lifespan."""
    server = uvicorn.Server(
        uvicorn.Config(app, port=0, lifespan="on", log_config=None, ws="none", access_log=False)
    )
    serving = asyncio.create_task(_serve(server))

    async def up() -> bool:
        if serving.done():
            serving.result()
        return server.started

    await until(up)
    host, port = server.servers[0].sockets[0].getsockname()
    try:
        async with httpx2.AsyncClient(base_url=f"http://{host}:{port}") as client:
            yield Shop(app, client)
    finally:
        server.should_exit = True
        await serving


async def _serve(server: uvicorn.Server) -> None:
    try:
        await server.serve()
    except SystemExit as error:
        # What uvicorn makes of a lifespan that failed would end the test runner as well.
        raise RuntimeError("the application did not start; its log says why") from error


def make(build: Build, database: Path, plugins: Sequence[str] = ()) -> Starlette:
    settings = Settings.model_validate(
        {
            "base_url": "http://shop.example/msgsvc",
            "database_url": f"sqlite:///{database}",
            "secret_keys": ["a-key-for-tests-only-a-key-for-tests-only"],
            "plugins": list(plugins),
            "channels": {"messenger_a": {"plugin": "recording"}},
        }
    )
    return build(settings, extra_plugins=[("recording", RecordingPlugin())])


@pytest.fixture(scope="module", params=BUILDERS)
def build(request: pytest.FixtureRequest) -> Build:
    found: Build = BUILDERS[request.param]
    return found


@pytest.fixture(scope="module")
async def shop(build: Build, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shop]:
    """A shop for all of these tests, each of which has customers of its own."""
    async with served(make(build, tmp_path_factory.mktemp("shop") / "shop.db")) as running:
        yield running


async def test_the_shops_own_route_works(shop: Shop) -> None:
    answer = await shop.client.post("/orders/17/ship/nobody")

    assert (answer.status_code, answer.json()) == (200, {"shipped": "17", "told": None})


async def test_the_api_works_under_its_path_with_a_key(shop: Shop) -> None:
    answer = await shop.client.get("/msgsvc/v1/project", headers=await shop.new_key())

    assert answer.status_code == 200
    assert answer.json()["name"] == "Shop"


async def test_the_api_answers_with_its_envelope_and_the_shop_in_its_own_way(shop: Shop) -> None:
    theirs = await shop.client.get("/msgsvc/v1/nowhere")
    own = await shop.client.get("/nowhere")

    assert (theirs.status_code, theirs.json()["code"]) == (404, "not_found")
    assert own.status_code == 404
    assert "not_found" not in own.text


async def test_addresses_that_the_service_makes_lead_into_its_path(shop: Shop) -> None:
    answer = await shop.client.post(
        "/msgsvc/v1/subscribers/links", json={}, headers=await shop.new_key()
    )
    qr = answer.json()["qr"]["messenger_a"]

    picture = await shop.client.get(qr.removeprefix("http://shop.example"))

    assert picture.headers["content-type"].startswith("image/svg+xml")


async def test_a_listener_hears_of_a_subscription_and_answers_it(shop: Shop) -> None:
    await shop.subscribe("ann")

    async def welcomed() -> bool:
        return any(text.startswith("Welcome, Ann!") for text in shop.texts)

    assert await until(welcomed)


async def test_what_is_sent_in_process_is_delivered(shop: Shop) -> None:
    await shop.subscribe("ben")

    answer = await shop.client.post("/orders/17/ship/ben")
    await settled(shop.service)

    assert answer.json()["told"].startswith("msg_")
    assert "Your order 17 is on its way." in shop.texts


@pytest.mark.skipif("sandbox" not in available_plugins(), reason="needs the sandbox plugin")
async def test_the_messenger_of_the_example_is_there_under_its_path(
    build: Build, tmp_path: Path
) -> None:
    settings = Settings.model_validate(
        {
            "database_url": f"sqlite:///{tmp_path / 'shop.db'}",
            "secret_keys": ["a-key-for-tests-only-a-key-for-tests-only"],
            "plugins": ["sandbox"],
        }
    )
    async with served(build(settings)) as shop:
        answer = await shop.client.get("/msgsvc/sandbox", follow_redirects=True)

    assert answer.status_code == 200
