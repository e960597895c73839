"""A database that an earlier release has filled, upgraded: answers are as they were, secrets still work."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from msgsvc_core.config.settings import load_settings
from msgsvc_core.dashboard import Page
from msgsvc_core.service import Service
from msgsvc_dashboard.accounts import Accounts
from msgsvc_devkit import FakeClock, settled
from msgsvc_devkit.dashboard import Visitor
from msgsvc_devkit.databases import PostgresDatabases, SQLiteDatabases
from msgsvc_devkit.platforms.sandbox import Sandbox, SandboxPerson
from msgsvc_devkit.webhooks import WebhookReceiver
from msgsvc_sandbox.service import Messenger
from tests.dashboard.walking import NAMED, at, pages_of, parameters
from tests.process import Deployment
from tests.upgrades import filling
from tests.upgrades.answers import ask
from tests.upgrades.comparison import asked_today, compare, explanations, unexplained
from tests.upgrades.recorded import Recorded, read_recorded, recorded_database
from tests.upgrades.releases import Release, releases

Backend = SQLiteDatabases | PostgresDatabases

pytestmark = [
    pytest.mark.both_databases,
    pytest.mark.parametrize("release", releases(), ids=lambda release: release.name),
]


class Upgraded:
    """A release's database after `msgsvc migrate` of today's code; services on it start at its moment."""

    def __init__(self, recorded: Recorded, deployment: Deployment) -> None:
        self.recorded = recorded
        self._deployment = deployment

    @asynccontextmanager
    async def serving(self, *, quarantine: bool = False) -> AsyncIterator[Service]:
        settings = load_settings(self._deployment.config, env={}, quarantine=quarantine)
        self.clock = FakeClock(self.recorded.moment)
        async with Service(settings, clock=self.clock) as service:
            yield service

    @asynccontextmanager
    async def client(self, service: Service) -> AsyncIterator[httpx2.AsyncClient]:
        async with httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=service.app),
            base_url=service.settings.base_url,
            headers={"Authorization": f"Bearer {self.recorded.key}"},
        ) as client:
            yield client


def is_noted(page: Page, ids: Mapping[str, str]) -> bool:
    """Whether an id was noted for each parameter of the page."""
    names = [NAMED.get(f"{page.path} {name}", NAMED.get(name, name)) for name in parameters(page)]
    return all(name in ids or name.startswith("=") for name in names)


@pytest.fixture
async def upgraded(release: Release, backend: Backend, tmp_path: Path) -> AsyncIterator[Upgraded]:
    url = await recorded_database(release, backend, tmp_path)
    deployment = Deployment(tmp_path)
    deployment.configure(filling.CONFIGURATION, url)
    deployment.run("migrate")
    yield Upgraded(read_recorded(release, backend.name), deployment)
    await backend.give_back(url)


async def test_every_answer_is_as_it_was(upgraded: Upgraded) -> None:
    recorded = upgraded.recorded
    async with upgraded.serving(quarantine=True) as service:
        moved = {path: asked_today(path, recorded.release.name) for path in recorded.answers}
        asked = await ask(service, recorded.key, list(dict.fromkeys(moved.values())))
    today = {path: asked[now] for path, now in moved.items()}
    today |= {path: asked[path] for path in asked.keys() - moved.values()}

    differences = compare(recorded.answers, today)
    missing, unneeded = unexplained(differences, explanations(recorded.release.name))
    assert not missing
    assert not unneeded
    assert len(today) > 100
    assert [path for path, answer in today.items() if answer["status"] != 200] == []


async def test_codes_links_and_keys_of_before_are_taken(upgraded: Upgraded) -> None:
    recorded, secrets = upgraded.recorded, upgraded.recorded.secrets
    async with upgraded.serving() as service, upgraded.client(service) as client:

        async def post(path: str, **body: Any) -> httpx2.Response:
            return await client.post(path, json=body)

        signed_in = await post("/v1/auth/verify", code=secrets["code"])
        again = await post("/v1/auth/verify", code=secrets["used_code"])
        code = await post("/v1/otp/verify", otp_id=secrets["otp_id"], code=secrets["otp"])
        once = await client.post(
            "/v1/send",
            json={"external_id": "customer-1", "text": "Only once"},
            headers={"Idempotency-Key": filling.IDEMPOTENCY_KEY},
        )
        token = f"/oidc/{recorded.project_id}/token"
        grant = {"grant_type": "authorization_code", "code": "x", "redirect_uri": filling.CALLBACK}
        [client_id] = recorded.ids["client_id"]
        known = await client.post(token, data=grant, auth=(client_id, secrets["oidc_client"]))
        unknown = await client.post(token, data=grant, auth=(client_id, "another"))

    assert signed_in.status_code == 200, signed_in.text
    assert signed_in.json()["external_id"] == "customer-0"
    assert (again.status_code, again.json()["code"]) == (409, "auth_code_used")
    assert (code.status_code, code.json().get("verified")) == (200, True), code.text
    assert once.json()["message_id"] == secrets["only_once"]
    assert (known.status_code, known.json()["error"]) == (400, "invalid_grant")
    assert (unknown.status_code, unknown.json()["error"]) == (401, "invalid_client")


async def test_people_press_what_was_sent_to_them_before(upgraded: Upgraded) -> None:
    secrets = upgraded.recorded.secrets
    async with (
        upgraded.serving() as service,
        upgraded.client(service) as client,
    ):
        dan = await Sandbox.in_process(service).person("Dan")
        await dan.open(secrets["link"])
        await settled(service)
        found = await client.get("/v1/subscribers", params={"external_id": "customer-9"})
        messenger = service.get(Messenger)
        [profile] = [each for each in await messenger.people() if each.person_id == secrets["ann"]]
        ann = SandboxPerson(messenger, profile)
        await ann.open(secrets["pending_link"])
        await ann.press("Yes")
        await settled(service)
        path = f"/v1/auth/session/{secrets['pending_session']}/status"
        code = (await client.get(path)).json()["code"]
        signed_in = await client.post("/v1/auth/verify", json={"code": code})

    assert [each["tags"] for each in found.json()["data"]] == [["vip"]]
    assert signed_in.json()["external_id"] == "customer-0"


async def test_what_waited_is_done_and_signed_with_the_secret_of_before(
    upgraded: Upgraded,
) -> None:
    recorded = upgraded.recorded
    [webhook_id] = recorded.ids["webhook_id"]
    async with (
        WebhookReceiver(recorded.secrets["webhook"]) as receiver,
        upgraded.serving() as service,
        upgraded.client(service) as client,
    ):
        moved = await client.put(f"/v1/webhooks/{webhook_id}", json={"url": receiver.url})
        upgraded.clock.advance(3600)
        waited = await receiver.next("auth.completed")
        await settled(service)
        await client.post(f"/v1/webhooks/{webhook_id}/test")
        tested = await receiver.next()
        upgraded.clock.advance(300 * 24 * 3600)
        await settled(service)
        broadcast = (await client.get(f"/v1/broadcast/{recorded.ids['job_id'][-1]}")).json()
        scheduled = (await client.get(f"/v1/scheduled/{recorded.ids['scheduled_id'][0]}")).json()

    assert moved.status_code == 200, moved.text
    assert waited.data["event_id"].startswith("evt_")
    assert tested.delivery_id
    people = recorded.answers["/v1/subscribers?limit=100"]["body"]["data"]
    receivers = [each for each in people if each["status"] == "active"]
    assert (broadcast["status"], broadcast["sent"]) == ("completed", len(receivers))
    assert scheduled["status"] == "sent"


async def test_every_page_of_the_dashboard_opens(upgraded: Upgraded) -> None:
    recorded = upgraded.recorded
    ids = {name: values[0] for name, values in recorded.ids.items()}
    async with upgraded.serving(quarantine=True) as service:
        async with service.db.read() as tx:
            account = await service.get(Accounts).by_email(tx, "owner@shop.example")
        owner = Visitor(service, recorded.project_id, account.account_id)
        await owner.sign_in()
        walks = [
            at(page, recorded.project_id, ids)
            for page in pages_of(service)
            if page.method == "GET" and is_noted(page, ids)
        ]
        statuses = {walk.url: (await owner.client.get(walk.url)).status_code for walk in walks}
        await owner.client.aclose()

    assert len(statuses) > 50
    assert {url: status for url, status in statuses.items() if status not in {200, 303}} == {}


def test_a_recording_is_of_the_release_that_is_listed(release: Release) -> None:
    for database in ("sqlite", "postgresql"):
        recorded = read_recorded(release, database)

        assert recorded.answers["/v1/project"]["body"]["project_id"] == recorded.project_id
        assert json.dumps(recorded.answers).count(recorded.project_id) > 1
