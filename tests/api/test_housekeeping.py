"""What need not be remembered any longer is removed, and nothing else."""

from typing import Any

import httpx2

from msgsvc_core.service import Service
from msgsvc_core.testing import FakeClock, settled


async def test_events_go_back_as_far_as_the_setting_says(
    service: Service, client: httpx2.AsyncClient, clock: FakeClock, subscribe: Any
) -> None:
    await subscribe("Ann")
    clock.advance(29 * 24 * 3600)
    await settled(service)
    before = (await client.get("/v1/events")).json()["data"]

    clock.advance(2 * 24 * 3600)
    await settled(service)

    assert len(before) == 1
    assert (await client.get("/v1/events")).json()["data"] == []
