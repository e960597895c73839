"""A service with the plugin, a project of it, and forms."""

from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import ChannelUser
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_forms import plugin

from .orders import ORDER, made
from .talker import Talker

#: For `make_service`.
WITH_FORMS: dict[str, Any] = {"extra_plugins": [("forms", plugin)]}

NAME = {"key": "name", "type": "text", "label": {"en": "Name", "ru": "Имя"}, "required": True}


@dataclass
class Desk:
    """A project with forms."""

    service: Service
    tenant: Tenant
    clock: FakeClock

    @property
    def client(self) -> httpx2.AsyncClient:
        return self.tenant.client

    @property
    def project_id(self) -> str:
        return self.tenant.project.project_id

    async def try_form(self, *fields: dict[str, Any], **given: Any) -> httpx2.Response:
        """What the call to make a form answers."""
        body = {"slug": "contact", "title": "Contact", "fields": list(fields) or [NAME], **given}
        return await self.client.post("/v1/forms", json=body)

    async def form(self, *fields: dict[str, Any], **given: Any) -> dict[str, Any]:
        """A form of these fields, or of a name alone, that asks no time to be filled in."""
        answer = await self.try_form(*fields, **{"min_fill_seconds": 0, **given})
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json()
        return made

    async def change(self, form: dict[str, Any], **given: Any) -> dict[str, Any]:
        answer = await self.client.patch(f"/v1/forms/{form['form_id']}", json=given)
        assert answer.is_success, answer.text
        changed: dict[str, Any] = answer.json()
        return changed

    async def submissions(self, form: dict[str, Any], **query: Any) -> list[dict[str, Any]]:
        """Newest first."""
        path = f"/v1/forms/{form['form_id']}/submissions"
        answer = await self.client.get(path, params=query)
        assert answer.is_success, answer.text
        found: list[dict[str, Any]] = answer.json()["data"]
        return found

    async def person(self, name: str, **given: Any) -> str:
        """Subscribes somebody; returns their id."""
        async with self.service.db.transaction() as tx:
            subscriber = await self.service.subscribers.ensure(
                tx,
                self.project_id,
                "messenger_a",
                ChannelUser(f"user-{name}", name, None, given.pop("lang", "en")),
                f"chat-{name}",
                source="api",
                **given,
            )
        return subscriber.subscriber_id

    def texts(self, name: str) -> list[str]:
        """What was sent to somebody."""
        channel = self.service.channels["messenger_a"]
        assert isinstance(channel, RecordingChannel)
        return [sent.message.text for sent in channel.sent if sent.chat_id == f"chat-{name}"]

    async def told(self) -> list[dict[str, Any]]:
        """The data of all events `form.submitted`, oldest first."""
        feed = (await self.client.get("/v1/events?limit=100")).json()["data"]
        return [one["data"] for one in reversed(feed) if one["event"] == "form.submitted"]


def refusal(answer: httpx2.Response) -> tuple[int, str]:
    """Status and code of an error."""
    return answer.status_code, answer.json()["code"]


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(**WITH_FORMS)


@pytest.fixture
async def desk(service: Service, tenant: Tenant, clock: FakeClock) -> Desk:
    return Desk(service, tenant, clock)


@pytest.fixture
def ann(service: Service) -> Talker:
    """Somebody in a chat with `messenger_a`."""
    return Talker(service)


@pytest.fixture
async def order(tenant: Tenant) -> str:
    """The id of the form `ORDER`."""
    return await made(tenant, ORDER)
