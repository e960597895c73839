"""/v1/files: what projects upload, and how files go out."""

from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import DeliveryError, Media
from msgsvc_core.files import purging
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.conftest import CheckError, Send
from tests.api.file_host import MP4, PDF, PNG

MEDIA: dict[str, Any] = {
    "max_image_bytes": 600_000,
    "max_video_bytes": 900_000,
    "max_document_bytes": 800_000,
    "address_hours": 1,
    "loose_hours": 48,
}
HTML = b"<!DOCTYPE html><script>alert(1)</script>"


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(media=MEDIA, base_url="http://msgsvc.test")


async def upload(client: httpx2.AsyncClient, name: str, content: bytes, **headers: str) -> Any:
    return await client.post("/v1/files", files={"file": (name, content)}, headers=headers)


async def stored(client: httpx2.AsyncClient, name: str, content: bytes) -> dict[str, Any]:
    answer = await upload(client, name, content)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.shared_service
@pytest.mark.parametrize(
    ("name", "content", "kind", "mime_type"),
    [
        ("cat.png", PNG, "image", "image/png"),
        ("clip.mp4", MP4, "video", "video/mp4"),
        ("bill.pdf", PDF, "document", "application/pdf"),
        ("page.html", HTML, "document", "text/html"),
        ("cat.exe", PNG, "image", "image/png"),
        ("notes.txt", b"Milk, bread", "document", "application/octet-stream"),
    ],
)
async def test_an_upload_is_what_it_contains_and_is_read_back_as_it_was(
    client: httpx2.AsyncClient, name: str, content: bytes, kind: str, mime_type: str
) -> None:
    file = await stored(client, name, content)
    read = await client.get(f"/v1/files/{file['file_id']}/content")

    assert file["type"] == kind
    assert file["mime_type"] == mime_type
    assert (file["filename"], file["size"], file["status"]) == (name, len(content), "ready")
    assert read.content == content
    assert (await client.get(f"/v1/files/{file['file_id']}")).json() == file


async def test_an_image_that_is_too_large_for_one_is_a_document_if_the_request_says_so(
    client: httpx2.AsyncClient,
) -> None:
    large = PNG + bytes(700_000)
    refused = await upload(client, "large.png", large)
    taken = await client.post(
        "/v1/files",
        data={"type": "document"},
        files={"file": ("large.png", large, "image/png")},
    )

    assert "an image may have 600000 bytes" in refused.json()["error"]
    assert (taken.status_code, taken.json()["type"]) == (201, "document")


@pytest.mark.parametrize("is_first", [True, False])
async def test_parts_stand_before_the_file_or_after_it(
    client: httpx2.AsyncClient, is_first: bool
) -> None:
    option = part("type", b"document")
    file = part('file"; filename="cat.png', PNG)
    answer = await posted(client, *((option, file) if is_first else (file, option)))

    assert (answer.status_code, answer.json()["type"]) == (201, "document")


@pytest.mark.parametrize(
    ("parts", "named"),
    [
        ([("type", b"picture")], "type: "),
        ([("kind", b"document")], "kind: "),
        ([("type", b"document"), ("type", b"document")], "body: "),
        ([("type", b"d" * 20_000)], "body: "),
        ([("type", b"\0")], "body: "),
    ],
)
async def test_a_part_that_does_not_fit_is_refused(
    client: httpx2.AsyncClient,
    check_error: CheckError,
    parts: list[tuple[str, bytes]],
    named: str,
) -> None:
    answer = await posted(
        client, *(part(name, text) for name, text in parts), part('file"; filename="cat.png', PNG)
    )

    assert answer.status_code == 400, answer.text
    assert answer.json()["error"].startswith(named)


def part(name: str, content: bytes) -> bytes:
    return b'--b\r\nContent-Disposition: form-data; name="%b"\r\n\r\n%b\r\n' % (
        name.encode(),
        content,
    )


async def posted(client: httpx2.AsyncClient, *parts: bytes) -> httpx2.Response:
    return await client.post(
        "/v1/files",
        content=b"".join(parts) + b"--b--\r\n",
        headers={"Content-Type": "multipart/form-data; boundary=b"},
    )


async def test_a_page_is_saved_and_never_shown(client: httpx2.AsyncClient) -> None:
    file = await stored(client, "Счёт.html", HTML)

    read = await client.get(f"/v1/files/{file['file_id']}/content")

    assert read.headers["Content-Type"] == "application/octet-stream"
    assert read.headers["X-Content-Type-Options"] == "nosniff"
    assert read.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert read.headers["Content-Disposition"].startswith("attachment; ")
    assert read.headers["Content-Length"] == str(len(HTML))


@pytest.mark.shared_service
@pytest.mark.parametrize(
    ("name", "content", "status"),
    [
        ("empty.txt", b"", 400),
        ("cat.png", HTML, 400),
        ("both.png", PNG + b"<script>alert(1)</script>", 400),
        ("large.pdf", PDF + bytes(850_000), 413),
        ("large.png", PNG + bytes(700_000), 413),
        ("larger.pdf", PDF + bytes(2_000_000), 413),
    ],
)
async def test_what_is_no_fit_file_is_refused(
    client: httpx2.AsyncClient, check_error: CheckError, name: str, content: bytes, status: int
) -> None:
    code = {400: "validation_failed", 413: "payload_too_large"}[status]

    fields = check_error(await upload(client, name, content), status, code)

    assert fields["error"].startswith("file: ")


@pytest.mark.shared_service
@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"json": {"file": "x"}}, "bad_request"),
        ({"content": b"x", "headers": {"Content-Type": "multipart/form-data"}}, "bad_request"),
        ({"files": {"other": ("a.png", PNG)}}, "validation_failed"),
        ({"files": [("file", ("a", PNG)), ("file", ("b", PNG))]}, "bad_request"),
        ({"files": {"file": ("a.png", PNG)}, "data": {"name": "b"}}, "validation_failed"),
        ({"files": {"file": ("x" * 2000, PNG)}}, "validation_failed"),
    ],
)
async def test_what_is_not_one_file_is_refused(
    client: httpx2.AsyncClient, check_error: CheckError, request_: dict[str, Any], code: str
) -> None:
    check_error(await client.post("/v1/files", **request_), 400, code)


async def test_an_upload_that_is_repeated_under_its_key_is_stored_once(
    client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    key = {"Idempotency-Key": "upload-0001"}
    first = await upload(client, "cat.png", PNG, **key)

    again = await upload(client, "cat.png", PNG, **key)
    other = await upload(client, "cat.png", PNG + b"!", **key)

    assert again.json() == first.json()
    assert again.headers["Idempotent-Replayed"] == "true"
    check_error(other, 409, "idempotency_conflict")


async def test_a_file_that_is_removed_while_it_is_asked_for_is_missing(
    service: Service, client: httpx2.AsyncClient
) -> None:
    file = (await client.post("/v1/files", files={"file": ("note.txt", b"Hi")})).json()
    # What the one who asks has found is gone when they come to read it.
    async with service.db.transaction() as tx:
        await tx.execute("DELETE FROM core_file_chunks")

    answer = await client.get(f"/v1/files/{file['file_id']}/content")

    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_whoever_has_the_signed_address_reads_the_file_until_it_expires(
    service: Service, client: httpx2.AsyncClient, clock: FakeClock
) -> None:
    file = await stored(client, "cat.png", PNG)
    transport = httpx2.ASGITransport(app=service.app)

    async with httpx2.AsyncClient(transport=transport) as stranger:
        read = await stranger.get(file["url"])
        changed = await stranger.get(file["url"][:-1] + "_")
        clock.advance(2 * 3600)
        late = await stranger.get(file["url"])

    assert (read.status_code, read.content) == (200, PNG)
    assert read.headers["Content-Type"] == "image/png"
    assert (changed.status_code, late.status_code) == (404, 404)


async def test_a_message_with_a_stored_file_is_sent_without_asking_any_host(
    service: Service, client: httpx2.AsyncClient, channel: RecordingChannel, send: Send
) -> None:
    # Nobody listens at the service's address.
    file = await stored(client, "cat.png", PNG)

    await send(media={"type": "image", "url": file["url"]})
    await settled(service)

    sent = channel.sent[-1].message.media
    assert sent is not None
    async with service.media.fetch(sent) as fetched:
        assert fetched.file.read() == PNG


@pytest.mark.parametrize("change", ["type", "signature", "gone"])
async def test_an_own_address_that_leads_to_no_such_file_fails_for_good(
    service: Service, tenant: Tenant, change: str
) -> None:
    file = await stored(tenant.client, "cat.png", PNG)
    media = Media("image", file["url"])
    if change == "type":
        media = Media("video", file["url"])
    if change == "signature":
        media = Media("image", file["url"][:-1] + "_")
    if change == "gone":
        async with service.db.transaction() as tx:
            await service.files.remove(tx, tenant.project.project_id, [file["file_id"]])

    with pytest.raises(DeliveryError, match="invalid_message"):
        await service.media.inspect(media)
    with pytest.raises(DeliveryError, match="invalid_message"):
        async with service.media.fetch(media):
            pass


@pytest.mark.both_databases
@pytest.mark.parametrize("count", [purging.AT_ONCE, 2 * purging.AT_ONCE + 1])
async def test_removed_files_are_found_no_more_and_their_content_goes_too(
    service: Service, tenant: Tenant, count: int
) -> None:
    files = [await stored(tenant.client, "cat.png", PNG) for _ in range(count + 1)]
    *removed, left = [file["file_id"] for file in files]
    async with service.db.transaction() as tx:
        await service.files.retain(tx, tenant.project.project_id, removed)
        await service.files.remove(tx, tenant.project.project_id, removed)
        found = await service.files.get_many(tx, tenant.project.project_id, [*removed, left])

    assert [file.file_id for file in found] == [left]
    assert (await tenant.client.get(f"/v1/files/{removed[0]}")).status_code == 404
    assert (await tenant.client.get(files[0]["url"])).status_code == 404
    await settled(service)
    async with service.db.read() as tx:
        for table in ("core_files", "core_file_chunks"):
            rows = await tx.fetch_all(f"SELECT file_id FROM {table}")
            assert [row["file_id"] for row in rows] == [left]


async def test_files_that_nobody_keeps_are_removed_in_time(
    service: Service, tenant: Tenant, clock: FakeClock
) -> None:
    kept, loose = [await stored(tenant.client, "cat.png", PNG) for _ in range(2)]
    async with service.db.transaction() as tx:
        await service.files.retain(tx, tenant.project.project_id, [kept["file_id"]])

    clock.advance(47 * 3600)
    await settled(service)
    before = await tenant.client.get(f"/v1/files/{loose['file_id']}")
    clock.advance(2 * 3600)
    await settled(service)

    assert before.status_code == 200
    assert (await tenant.client.get(f"/v1/files/{loose['file_id']}")).status_code == 404
    assert (await tenant.client.get(f"/v1/files/{kept['file_id']}")).status_code == 200
    async with service.db.read() as tx:
        chunks = await tx.fetch_all("SELECT file_id FROM core_file_chunks")
    assert [row["file_id"] for row in chunks] == [kept["file_id"]]
