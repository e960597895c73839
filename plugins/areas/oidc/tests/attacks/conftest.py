"""What attackers need: a second project with a client and a person of its own."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import ChannelUser
from msgsvc_core.service import Service
from plugins.areas.oidc.tests.conftest import Registry, Visitor


@dataclass(frozen=True)
class Elsewhere:
    """Another project of the same service."""

    visitor: Visitor
    register: Registry


@pytest.fixture
async def elsewhere(
    service: Service, sign_ins: Any, make_tenant: Callable[..., Awaitable[Any]]
) -> Any:
    tenant = await make_tenant(service, "Other")
    project_id = tenant.project.project_id
    async with service.db.transaction() as tx:
        person = await service.subscribers.ensure(
            tx, project_id, "messenger_a", ChannelUser("2002", "Eve"), "chat-2002", source="auth"
        )
    transport = httpx2.ASGITransport(app=service.app, client=("198.51.100.9", 50000))
    async with httpx2.AsyncClient(transport=transport, base_url="http://msgsvc.test") as http:
        visitor = Visitor(service, http, sign_ins, person, project_id)
        yield Elsewhere(visitor, Registry(tenant.client))


@pytest.fixture
async def eve(new_visitor: Callable[..., Awaitable[Visitor]]) -> Visitor:
    """An attacker with an account and a browser of their own."""
    return await new_visitor("Eve", "6666")
