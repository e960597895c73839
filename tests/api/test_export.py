"""The subscribers as CSV."""

import asyncio
import csv
import io
import tracemalloc
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from msgsvc_core.service import Service
from msgsvc_core.subscribers import export
from msgsvc_devkit import until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.conftest import CheckError, Subscribe

PATH = "/v1/subscribers/export"


def rows_of(answer: httpx2.Response) -> list[dict[str, str]]:
    assert answer.status_code == 200, answer.text
    return list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"), newline="")))


async def add_people(service: Service, tenant: Tenant, count: int) -> None:
    """People as they are in a list that grew over years."""
    async with service.db.transaction() as tx:
        await tx.insert_many(
            "core_subscribers",
            [
                {
                    "project_id": tenant.project.project_id,
                    "subscriber_id": f"sub_{number:022}",
                    "channel": "messenger_a",
                    "bot": "messenger_a",
                    "user_id": str(number),
                    "chat_id": str(number),
                    "first_name": f"Имя {number}",
                    "username": f"user_{number}",
                    "lang": "ru",
                    "external_id": f"customer-{number}",
                    "status": "active",
                    "source": "deep_link",
                    "created_at_ms": 0,
                    "last_seen_at_ms": 0,
                    "attributes": '{"city": "Москва"}',
                }
                for number in range(count)
            ],
        )


async def stream(
    service: Service, tenant: Tenant, on_piece: Callable[[int], Any] | None = None
) -> int:
    """Downloads the export as a server would have it, keeping nothing; returns its size.

    `on_piece` is given the size so far; the client goes away when it returns True.
    """
    gone = asyncio.Event()
    size = 0

    async def receive() -> dict[str, Any]:
        if not asked.done():
            asked.set_result(None)
            return {"type": "http.request", "body": b"", "more_body": False}
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        nonlocal size
        size += len(message.get("body", b""))
        if message["type"] == "http.response.body" and on_piece and on_piece(size):
            gone.set()
            await asyncio.sleep(0)  # as a send that waits for the client: others go on

    asked = asyncio.get_running_loop().create_future()
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "GET",
        "path": PATH,
        "query_string": b"",
        "headers": [(b"authorization", f"Bearer {tenant.key}".encode())],
        "client": ("127.0.0.1", 1),
    }
    await service.app(scope, receive, send)
    return size


@pytest.mark.both_databases
async def test_an_export_holds_all_that_is_known_of_a_subscriber(
    client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    ann = await subscribe("Ann", tags=["vip", "new"], external_id="customer-1")
    await client.patch(f"/v1/subscribers/{ann}", json={"attributes": {"city": "Москва"}})
    answer = await client.get(PATH)

    assert rows_of(answer) == [
        {
            "subscriber_id": ann,
            "channel": "messenger_a",
            "first_name": "Ann",
            "username": "ann",
            "lang": "en",
            "locale": "en",
            "tags": "new,vip",
            "permissions": "",
            "external_id": "customer-1",
            "phone": "",
            "email": "",
            "attributes": '{"city":"Москва"}',
            "status": "active",
            "source": "deep_link",
            "created_at": "2026-01-15T12:00:00.000Z",
            "last_seen_at": "2026-01-15T12:00:00.000Z",
        }
    ]


async def test_an_export_is_a_file_that_spreadsheets_open(
    client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    await subscribe("Аня")
    answer = await client.get(PATH)

    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert answer.headers["Content-Disposition"] == (
        'attachment; filename="subscribers-2026-01-15.csv"'
    )
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.content.startswith(b"\xef\xbb\xbfsubscriber_id,channel,first_name")
    assert answer.content.count(b"\r\n") == answer.content.count(b"\n") == 2


async def test_an_export_without_subscribers_has_its_head_alone(client: httpx2.AsyncClient) -> None:
    answer = await client.get(PATH)

    assert answer.content.decode("utf-8-sig") == ",".join(export.COLUMNS) + "\r\n"


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+7 900", "'+7 900"),
        ("-Ann-", "'-Ann-"),
        ("@ann", "'@ann"),
        ("\t=1+1", "'\t'=1+1"),
        ("\r=1+1", "'\r'=1+1"),
        ("＝1+1", "'＝1+1"),
        ("Ann;=HYPERLINK(1)", "Ann;'=HYPERLINK(1)"),
        ('=cmd|"/c calc"!A1', '\'=cmd|"/c calc"!A1'),
        ("a=b", "a=b"),
        ('Ann "A", B', 'Ann "A", B'),
    ],
)
async def test_a_cell_that_would_be_a_formula_is_made_harmless(
    service: Service, client: httpx2.AsyncClient, ann: str, name: str, cell: str
) -> None:
    async with service.db.transaction() as tx:
        await tx.execute("UPDATE core_subscribers SET first_name = :name", {"name": name})

    (row,) = rows_of(await client.get(PATH))
    assert row["first_name"] == cell


async def test_an_id_that_would_be_a_formula_is_made_harmless(
    client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    await subscribe("Ann", external_id="=1+1")

    (row,) = rows_of(await client.get(PATH))
    assert row["external_id"] == "'=1+1"


@pytest.mark.both_databases
async def test_an_export_takes_the_filters_of_the_list(
    client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    await subscribe("Ann", tags=["vip"])
    ben = await subscribe("Ben", channel="messenger_b", lang="ru", tags=["vip"])
    eve = await subscribe("Eve")
    await client.delete(f"/v1/subscribers/{eve}")

    for query, wanted in [
        ("tag=vip&lang=ru", [ben]),
        ("channel=messenger_b", [ben]),
        ("status=unsubscribed", [eve]),
        ("tag=none", []),
    ]:
        rows = rows_of(await client.get(f"{PATH}?{query}"))
        assert [row["subscriber_id"] for row in rows] == wanted, query


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("limit=10", "limit: there is no such field"),
        ("channel=nowhere", "channel: must be one of"),
        ("status=gone", "status: "),
    ],
)
async def test_an_export_that_cannot_begin_is_refused_in_the_envelope(
    client: httpx2.AsyncClient, check_error: CheckError, query: str, message: str
) -> None:
    answer = await client.get(f"{PATH}?{query}")

    assert check_error(answer, 400, "validation_failed")["error"].startswith(message)


async def test_an_export_holds_everybody_once_over_many_reads(
    service: Service, tenant: Tenant, client: httpx2.AsyncClient
) -> None:
    await add_people(service, tenant, 2 * export.CHUNK)
    ids = [row["subscriber_id"] for row in rows_of(await client.get(PATH))]

    assert ids == [f"sub_{number:022}" for number in reversed(range(2 * export.CHUNK))]


async def test_an_export_holds_no_connection_while_the_client_reads(
    make_service: ServiceFactory, make_tenant: Any
) -> None:
    # Without a runner of jobs, which looks for work now and then, as is looked for changed channels.
    service = await make_service(jobs={"runner": "none"}, own_channels={"follow_s": 3600})
    tenant = await make_tenant(service)
    await add_people(service, tenant, 3 * export.CHUNK)
    in_use = []

    def note(_size: int) -> None:
        in_use.append(service.db.usage.in_use)

    await stream(service, tenant, note)

    assert len(in_use) >= 3
    assert max(in_use) == 0


async def test_an_export_whose_client_goes_away_ends_and_leaves_nothing_open(
    service: Service, tenant: Tenant
) -> None:
    await add_people(service, tenant, 10 * export.CHUNK)
    whole = await stream(service, tenant)
    begun = await stream(service, tenant, lambda _size: True)

    assert begun < whole / 2

    async def nothing_is_open() -> bool:
        return not service.db.usage.in_use and not service.metrics.requests.in_flight

    await until(nothing_is_open)


async def traced_stream(service: Service, tenant: Tenant) -> tuple[int, int]:
    """The size of an export, and the most bytes that were allocated meanwhile."""
    tracemalloc.start()
    try:
        size = await stream(service, tenant)
        return size, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


async def test_an_export_takes_as_much_memory_for_many_as_for_few(
    make_service: ServiceFactory, make_tenant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Several chunks live at once, how many is a matter of threads: small ones weigh little beside the file.
    monkeypatch.setattr(export, "CHUNK", 100)
    # Without a runner of jobs, whose memory would be counted in.
    service = await make_service(jobs={"runner": "none"})
    tenant = await make_tenant(service)
    sizes, peaks = [], []
    for count in (5 * export.CHUNK, 50 * export.CHUNK):
        async with service.db.transaction() as tx:
            await tx.execute("DELETE FROM core_subscribers")
        await add_people(service, tenant, count)
        await stream(service, tenant)
        # The least of three: what other tests have left in the process may allocate meanwhile.
        of_each = [await traced_stream(service, tenant) for _ in range(3)]
        sizes.append(of_each[0][0])
        peaks.append(min(peak for _, peak in of_each))

    # Whoever kept the rows, or their lines alone, would take at least what was added to the file.
    assert peaks[1] - peaks[0] < (sizes[1] - sizes[0]) / 2


async def test_an_export_shows_nothing_of_another_project(
    service: Service, make_tenant: Any, subscribe: Subscribe
) -> None:
    await subscribe("Ann")
    other = await make_tenant(service, "Other")

    assert rows_of(await other.client.get(PATH)) == []
