"""A messenger that holds calls back, so that a broadcast is in the middle for as long as a test wants."""

import asyncio
from collections import deque
from typing import Any

import httpx2

from msgsvc_core.channels import Channel, ChannelIdentity, ChannelKind, OutgoingMessage
from msgsvc_core.channels.outbound.gate import MAX_IN_FLIGHT
from msgsvc_core.config.sections import Section
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_devkit import RecordingChannel, until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant

from .conftest import LIMITS, PLUGINS, add, take

PEOPLE = 600


class Gate(RecordingChannel):
    """Lets `free` calls through, and holds the others until `open`."""

    def __init__(self, identity: ChannelIdentity) -> None:
        super().__init__(identity)
        self.begun = 0
        self.free = 0
        self._is_open = False
        self._held: deque[asyncio.Event] = deque()

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        self.begun += 1
        if self.begun > self.free and not self._is_open:
            self._held.append(asyncio.Event())
            await self._held[-1].wait()
        return await super().send(chat_id, message)

    def open(self) -> None:
        self._is_open = True
        self.release(len(self._held))

    def release(self, count: int) -> None:
        """Lets the first of the held calls through."""
        for _ in range(count):
            self._held.popleft().set()

    def shut(self, after: int) -> None:
        """Holds all but the next calls again."""
        self._is_open = False
        self.free = self.begun + after


class GatePlugin:
    """Brings the kind of messenger `gate`."""

    @hookimpl
    def register_channel_kinds(self) -> list[ChannelKind]:
        def create(_context: Any, identity: ChannelIdentity, _settings: Section) -> Channel:
            return Gate(identity)

        return [ChannelKind("gate", Section, create)]


async def gated(make_service: ServiceFactory, **more: Any) -> Service:
    """A service whose messenger_a is a `Gate`; as many are in flight as if it had answered quickly before."""
    channels = {"messenger_a": {"plugin": "gate"}}
    jobs = {"min_in_flight": MAX_IN_FLIGHT, **more.pop("jobs", {})}
    plugins = [*PLUGINS, ("gate", GatePlugin())]
    return await make_service(
        extra_plugins=plugins, channels=channels, limits=LIMITS, jobs=jobs, **more
    )


def gate_of(service: Service) -> Gate:
    found = service.channels["messenger_a"]
    assert isinstance(found, Gate)
    return found


async def begun(gate: Gate, count: int) -> None:
    """Waits until so many calls have begun."""

    async def is_so() -> bool:
        return gate.begun >= count

    await until(is_so)


async def under_way(service: Service, tenant: Tenant, gate: Gate, **body: Any) -> str:
    """A broadcast to `PEOPLE` of which 50 have it, and others are in the platform's hands."""
    gate.free = 50
    await add(service, tenant, PEOPLE)
    job_id = await take(tenant.client, **body)
    await begun(gate, 200)
    return job_id


async def post(client: httpx2.AsyncClient, job_id: str, what: str) -> httpx2.Response:
    return await client.post(f"/v1/broadcast/{job_id}/{what}")
