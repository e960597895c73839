"""Broadcasts with a file: one that everybody gets, and one for each."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.file_host import PDF, PNG, File, FileHost, serving

from .conftest import LIMITS, PLUGINS, AddPeople, add, counts, ended, recipients, shown, take

MEDIA: dict[str, Any] = {"allow_cidrs": ("127.0.0.0/8",), "check_wait_s": 10}

DAY_S = 24 * 3600


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(extra_plugins=PLUGINS, limits=LIMITS, media=MEDIA)


@pytest.fixture
async def host() -> AsyncIterator[FileHost]:
    async for host in serving():
        yield host


def image(url: str) -> dict[str, str]:
    return {"type": "image", "url": url}


async def test_file_of_all_is_asked_for_once_and_sent_to_everybody(
    client: httpx2.AsyncClient, people: AddPeople, channel: RecordingChannel, host: FileHost
) -> None:
    await people(300)
    url = host.put("x.png")

    done = await ended(client, await take(client, media=image(url)))

    assert counts(done) == (300, 0, 0, 300)
    assert host.asked == ["x.png"]
    assert {sent.message.media.url for sent in channel.sent if sent.message.media} == {url}


@pytest.mark.parametrize(
    ("file", "why"),
    [(None, "404"), (File(PDF), "no image"), (File(PNG, status=403), "403")],
    ids=["missing", "no image", "forbidden"],
)
async def test_file_of_all_that_will_not_do_fails_everybody_and_nobody_is_called(
    client: httpx2.AsyncClient,
    people: AddPeople,
    channel: RecordingChannel,
    host: FileHost,
    file: File | None,
    why: str,
) -> None:
    await people(3)
    url = host.put("x.png", file) if file else f"{host.url}/x.png"

    job_id = await take(client, media=image(url))
    done = await ended(client, job_id)

    assert (done["status"], counts(done)) == ("completed", (0, 3, 0, 3))
    assert channel.sent == []
    failed = await recipients(client, job_id, status="failed")
    assert {each["reason"] for each in failed} == {"invalid_message"}
    assert why in failed[0]["error"]


async def test_host_that_is_away_is_asked_again_before_anybody_is_sent_to(
    service: Service,
    client: httpx2.AsyncClient,
    people: AddPeople,
    channel: RecordingChannel,
    host: FileHost,
    clock: FakeClock,
) -> None:
    await people(3)
    url = host.put("x.png", File(status=503))

    job_id = await take(client, media=image(url))
    await settled(service)
    waiting = await shown(client, job_id)
    host.put("x.png")
    clock.advance(5)
    done = await ended(client, job_id)

    assert (waiting["status"], counts(waiting)[:3]) == ("running", (0, 0, 0))
    assert counts(done) == (3, 0, 0, 3)
    assert len(channel.sent) == 3


async def test_files_of_each_are_looked_at_for_each(
    service: Service, tenant: Tenant, channel: RecordingChannel, host: FileHost, clock: FakeClock
) -> None:
    for number, path in enumerate(("a.png", "b.png", "c.png")):
        attributes = f'{{"card": "{path}"}}'
        await add(service, tenant, 1, first=number, attributes=attributes)
    host.put("a.png")
    host.put("b.png", File(PDF))
    host.put("c.png", File(status=503))
    url = f'{host.url}/{{{{ attributes.card | default("none.png") }}}}'

    job_id = await take(tenant.client, media=image(url))
    await settled(service)
    clock.advance(2)
    await settled(service)
    host.put("c.png")
    clock.advance(10)
    done = await ended(tenant.client, job_id)

    assert counts(done) == (2, 1, 0, 3)
    sent = {each.message.media.url for each in channel.sent if each.message.media}
    assert sent == {f"{host.url}/a.png", f"{host.url}/c.png"}
    [failed] = await recipients(tenant.client, job_id, status="failed")
    assert (failed["subscriber_id"], failed["reason"]) == ("sub_a0000001", "invalid_message")
    assert "no image" in failed["error"]


async def test_many_files_of_each_come_to_an_end(
    service: Service, client: httpx2.AsyncClient, people: AddPeople, host: FileHost
) -> None:
    await people(1500)
    for number in range(1500):
        host.put(f"P{number}.png")
    url = f"{host.url}/{{{{ first_name }}}}.png"

    done = await ended(client, await take(client, media=image(url)))

    assert counts(done) == (1500, 0, 0, 1500)
    assert len(host.asked) == 1500
