"""Limits of an address count a customer's whole network of IPv6, as a stranger has all of its addresses."""

from typing import Any

import pytest

from msgsvc_devkit.fixtures import ServiceFactory
from tests.faults.fuzzing import call
from tests.hostile.place import furnish

#: Pages with a limit of an address, more requests than that, and the limit where it is not the default.
LIMITED = {
    "/code/{token}": (31, {}),
    "/qr/{channel}/{payload}.svg": (4, {"qr_per_minute_per_address": 3}),
}


@pytest.mark.parametrize("path", LIMITED)
async def test_neighbours_in_one_network_have_one_limit(
    make_service: ServiceFactory, make_tenant: Any, path: str
) -> None:
    requests, limits = LIMITED[path]
    place = await furnish(make_service, make_tenant, limits=limits)

    async def ask(number: int, client: str) -> int:
        # A code that was drawn already is not counted.
        url = place.path(path, channel="messenger_a", payload=f"start-{number}")
        return (await call(place.service.app, "GET", url, b"", (), b"", client=client)).status

    statuses = [await ask(each, f"2001:db8:0:1::{each:x}") for each in range(requests)]
    other = await ask(requests, "2001:db8:0:2::1")

    assert statuses == [200] * (requests - 1) + [429]
    assert other == 200
