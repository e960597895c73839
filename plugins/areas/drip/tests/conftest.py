"""A service with the plugin, people of one project, and chains for them."""

from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import ChannelUser
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, Sent, settled
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_drip import plugin

#: For `make_service`: whenever the time has passed, steps are looked for.
WITH_DRIP: dict[str, Any] = {"extra_plugins": [("drip", plugin)], "drip": {"look_s": 0.001}}

MINUTE, HOUR, DAY = 60, 3600, 24 * 3600


def steps_of(*texts: str, **delay: int) -> list[dict[str, Any]]:
    """Steps with these texts, an hour apart unless told otherwise."""
    return [{"delay": delay or {"hours": 1}, "message": {"text": text}} for text in texts]


@dataclass
class Shop:
    """A project with people in it, on a service that can be stopped and started again."""

    service: Service
    tenant: Tenant
    clock: FakeClock
    people: int = field(default=0)

    @property
    def client(self) -> httpx2.AsyncClient:
        return self.tenant.client

    @property
    def project_id(self) -> str:
        return self.tenant.project.project_id

    async def person(self, name: str = "Ann", **given: Any) -> str:
        """Subscribes somebody new; returns their id."""
        self.people += 1
        async with self.service.db.transaction() as tx:
            subscriber = await self.service.subscribers.ensure(
                tx,
                self.project_id,
                "messenger_a",
                ChannelUser(f"user-{self.people}", name, None, given.pop("lang", "en")),
                f"chat-{name}",
                source=given.pop("source", "api"),
                **given,
            )
        return subscriber.subscriber_id

    async def call(self, path: str, method: str = "POST", **body: Any) -> Any:
        """What a call under `/v1` answers."""
        extra = {"json": body} if body or method != "GET" else {}
        answer = await self.client.request(method, f"/v1{path}", **extra)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    async def chain(self, *texts: str, **given: Any) -> str:
        """A chain of these texts, an hour apart, that is begun by hand; returns its id."""
        body = {
            "name": "Welcome",
            "trigger": {"on": "manual"},
            "steps": steps_of(*texts),
            **given,
        }
        return str((await self.call("/drips", **body))["drip_id"])

    async def enroll(self, drip_id: str, subscriber_id: str) -> str:
        answer = await self.call(f"/drips/{drip_id}/enroll", subscriber_id=subscriber_id)
        return str(answer["enrollment_id"])

    async def enrollments(self, drip_id: str, **query: str) -> list[dict[str, Any]]:
        """Who is, or was, in a chain, the first one first."""
        answer = await self.client.get(f"/v1/drips/{drip_id}/enrollments", params=query)
        return list(reversed(answer.json()["data"]))

    async def after(self, seconds: float) -> list[str]:
        """Lets time pass, and all that is due then be done; returns all texts sent so far."""
        await settled(self.service)
        self.clock.advance(seconds)
        await settled(self.service)
        return self.texts()

    def sent(self) -> list[Sent]:
        """All that this service has sent."""
        channel = self.service.channels["messenger_a"]
        assert isinstance(channel, RecordingChannel)
        return channel.sent

    def texts(self, name: str | None = None) -> list[str]:
        """The texts sent by this service, to all or to one."""
        return [
            sent.message.text
            for sent in self.sent()
            if name is None or sent.chat_id == f"chat-{name}"
        ]

    async def told(self, *names: str) -> list[dict[str, Any]]:
        """The events of these names, oldest first, without the person's fields."""
        feed = (await self.client.get("/v1/events?limit=100")).json()["data"]
        kept = ("drip_id", "enrollment_id", "step", "message_id")
        return [
            {"event": one["event"], **{name: one["data"][name] for name in kept}}
            for one in reversed(feed)
            if one["event"] in names
        ]


def refusal(answer: httpx2.Response) -> tuple[int, str]:
    """Status and code of an error."""
    return answer.status_code, answer.json()["code"]


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(**WITH_DRIP)


@pytest.fixture
async def shop(service: Service, tenant: Tenant, clock: FakeClock) -> Shop:
    return Shop(service, tenant, clock)
