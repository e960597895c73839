"""Public QR codes: drawn once, and not for whoever has too many drawn."""

from collections.abc import Awaitable, Callable

import httpx2
import pytest

from msgsvc_core.channels import pages
from msgsvc_devkit import FakeClock
from msgsvc_devkit.fixtures import ServiceFactory, Tenant


@pytest.fixture
async def anybody(
    make_service: ServiceFactory, make_tenant: Callable[..., Awaitable[Tenant]]
) -> httpx2.AsyncClient:
    service = await make_service(limits={"qr_per_minute_per_address": 3})
    return (await make_tenant(service)).client


async def test_an_address_has_only_so_many_codes_drawn(
    anybody: httpx2.AsyncClient, clock: FakeClock
) -> None:
    found = [await anybody.get(f"/qr/messenger_a/sub_{number}.svg") for number in range(4)]
    known = await anybody.get("/qr/messenger_a/sub_0.svg")
    clock.advance(61)
    later = await anybody.get("/qr/messenger_a/sub_4.svg")

    assert [each.status_code for each in found] == [200, 200, 200, 429]
    assert int(found[3].headers["Retry-After"]) > 0
    assert known.content == found[0].content
    assert later.status_code == 200


async def test_a_code_is_drawn_once(
    anybody: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []
    draw = pages.qr_svg

    def count(link: str) -> bytes:
        drawn.append(link)
        return draw(link)

    monkeypatch.setattr(pages, "qr_svg", count)
    for _ in range(10):
        answer = await anybody.get("/qr/messenger_a/sub_1.svg")
        assert answer.status_code == 200

    assert len(drawn) == 1


async def test_only_the_codes_asked_for_last_are_remembered(
    anybody: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch, clock: FakeClock
) -> None:
    monkeypatch.setattr(pages, "KNOWN_CODES", 1)
    for number in (1, 2, 1):
        await anybody.get(f"/qr/messenger_a/sub_{number}.svg")
    over = await anybody.get("/qr/messenger_a/sub_2.svg")

    assert over.status_code == 429
