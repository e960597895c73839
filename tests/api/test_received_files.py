"""Files that people send: noted with the message, then fetched from the messenger by a job."""

from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import (
    ChannelUser,
    DeliveryError,
    InboundContext,
    InboundRule,
    MessageReceived,
    Reason,
    ReceivedFile,
)
from msgsvc_core.db import Tx
from msgsvc_core.files import Files, StoredFile, fetching, store
from msgsvc_core.files.fetching import FileFetcher
from msgsvc_core.jobs.contract import Job
from msgsvc_core.plugins.context import PluginContext
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_core.subscribers.erasure import AGAIN_AFTER_S
from msgsvc_devkit import FakeClock, RecordingChannel, settled
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.file_host import MP4, PDF, PNG
from tests.api.subscribing import Subscribe

MEDIA: dict[str, Any] = {
    "max_image_bytes": 600_000,
    "max_video_bytes": 900_000,
    "max_document_bytes": 800_000,
}
REF = "the-platform's-own-reference"


class Album:
    """A plugin that takes people's files, and notes what it is told of them."""

    def __init__(self) -> None:
        self.files: list[StoredFile] = []
        self.told: list[StoredFile] = []
        #: Raised by the hook, one a call.
        self.failures: list[Exception] = []

    @hookimpl
    def create_plugin(self, context: PluginContext) -> "AlbumPlugin":
        return AlbumPlugin(self, context.files)


class AlbumPlugin:
    def __init__(self, album: Album, files: Files) -> None:
        self._album = album
        self._files = files

    @hookimpl
    def register_inbound(self) -> list[InboundRule]:
        return [InboundRule("message", self._take)]

    async def _take(self, ctx: InboundContext) -> None:
        update = ctx.update
        assert isinstance(update, MessageReceived)
        subscriber = await ctx.tx.fetch_one(
            "SELECT project_id, subscriber_id FROM core_subscribers WHERE user_id = :user_id",
            {"user_id": update.user.user_id},
        )
        assert subscriber is not None
        self._album.files += await self._files.receive(
            ctx, subscriber["project_id"], subscriber["subscriber_id"], update.files
        )

    @hookimpl
    async def on_file_fetched(self, tx: Tx, file: StoredFile) -> None:
        if self._album.failures:
            raise self._album.failures.pop(0)
        self._album.told.append(await self._files.get(tx, file.project_id, file.file_id))


@pytest.fixture
def album() -> Album:
    return Album()


@pytest.fixture
async def service(make_service: ServiceFactory, album: Album) -> Service:
    return await make_service(media=MEDIA, extra_plugins=[("album", album)])


class Sending:
    """Ann sends one file; returns what the plugin was told of it in the end."""

    def __init__(self, service: Service, channel: RecordingChannel, album: Album) -> None:
        self._service, self._channel, self._album = service, channel, album

    async def __call__(self, content: bytes | None, **file: Any) -> StoredFile:
        await self.begin(content, **file)
        await settled(self._service)
        assert len(self._album.told) == 1
        return self._album.told[0]

    async def begin(self, content: bytes | None, **file: Any) -> StoredFile:
        if content is not None:
            self._channel.contents[REF] = content
        received = ReceivedFile(**{"type": "document", "file_ref": REF, **file})
        await self._service.inbound.receive(
            "messenger_a",
            MessageReceived(
                update_id="files-1",
                chat_id="chat-Ann",
                user=ChannelUser("user-Ann", "Ann"),
                text="",
                files=(received,),
            ),
        )
        return self._album.files[-1]


@pytest.fixture
def sending(service: Service, channel: RecordingChannel, album: Album, ann: str) -> Sending:
    return Sending(service, channel, album)


async def read(client: httpx2.AsyncClient, file: StoredFile) -> httpx2.Response:
    return await client.get(f"/v1/files/{file.file_id}/content")


@pytest.mark.parametrize(
    ("content", "said", "kind", "name"),
    [
        (PNG, {"type": "image"}, "image", "image.png"),
        (PNG, {"type": "document", "filename": "scan.png"}, "document", "scan.png"),
        (MP4 + bytes(850_000), {"type": "video"}, "video", "video.mp4"),
        (PDF, {"type": "image", "filename": "bill.pdf"}, "document", "bill.pdf"),
        (b"Hi", {"filename": "../a\\b/note.txt"}, "document", "note.txt"),
    ],
    ids=["picture", "picture as a file", "video", "no picture", "path"],
)
async def test_a_file_is_pending_until_it_is_fetched_and_then_what_it_contains(
    sending: Sending,
    client: httpx2.AsyncClient,
    album: Album,
    content: bytes,
    said: dict[str, Any],
    kind: str,
    name: str,
) -> None:
    file = await sending(content, **said)

    assert album.files[0].status == "pending"
    assert (file.status, file.type, file.filename) == ("ready", kind, name)
    assert (await read(client, file)).content == content


@pytest.mark.parametrize(
    ("content", "said", "why"),
    [
        (None, {}, "there is no such file"),
        (b"", {}, "it is empty"),
        (b"<html><script>", {"filename": "cat.png", "type": "image"}, "it is a page"),
        (PNG + b"<script>", {"type": "image"}, "it is a page besides"),
        (PNG + bytes(700_000), {"type": "image"}, "it is larger than 600000 bytes"),
    ],
)
async def test_a_file_that_will_not_do_fails_and_says_why(
    sending: Sending,
    client: httpx2.AsyncClient,
    content: bytes | None,
    said: dict[str, Any],
    why: str,
) -> None:
    file = await sending(content, **said)
    shown = (await client.get(f"/v1/files/{file.file_id}")).json()

    assert (file.status, shown["status"]) == ("failed", "failed")
    assert shown["reason"].startswith(why)
    assert (await read(client, file)).status_code == 409


async def test_a_file_that_is_said_to_be_too_large_is_not_asked_for(
    service: Service, sending: Sending, album: Album
) -> None:
    file = await sending.begin(PNG, type="image", size=600_001)
    await settled(service)

    assert (file.status, file.reason) == ("failed", "it is larger than 600000 bytes")
    assert album.told == []


@pytest.mark.parametrize("reason", [Reason.PLATFORM_UNAVAILABLE, Reason.RATE_LIMITED])
async def test_a_platform_that_is_away_is_asked_again_later(
    service: Service,
    channel: RecordingChannel,
    sending: Sending,
    album: Album,
    clock: FakeClock,
    reason: Reason,
) -> None:
    channel.refusals = [DeliveryError(reason, "later", 30.0)]
    await sending.begin(PNG)
    await settled(service)
    told_at_once = list(album.told)

    clock.advance(31)
    await settled(service)

    assert told_at_once == []
    assert [file.status for file in album.told] == ["ready"]


async def test_a_platform_that_stays_away_fails_the_file_in_the_end(
    service: Service, channel: RecordingChannel, sending: Sending, album: Album, clock: FakeClock
) -> None:
    channel.refusals = [DeliveryError(Reason.PLATFORM_UNAVAILABLE, "it is down")] * 20
    await sending.begin(PNG)

    for _ in range(fetching.MAX_ATTEMPTS):
        await settled(service)
        clock.advance(3600)
    await settled(service)

    assert [(file.status, file.reason) for file in album.told] == [("failed", "it is down")]
    assert len(channel.refusals) == 20 - fetching.MAX_ATTEMPTS


@pytest.mark.both_databases
async def test_a_file_whose_job_is_given_up_fails_even_if_a_plugin_can_not_be_told(
    service: Service,
    channel: RecordingChannel,
    sending: Sending,
    album: Album,
    clock: FakeClock,
    client: httpx2.AsyncClient,
) -> None:
    channel.refusals = [DeliveryError(Reason.PLATFORM_UNAVAILABLE, "later")]
    file = await sending.begin(PNG)
    await settled(service)
    async with service.db.transaction() as tx:
        await tx.execute(
            "UPDATE core_jobs SET attempts = :most WHERE name = :name",
            {"most": fetching.MAX_ATTEMPTS - 1, "name": fetching.JOB},
        )

    album.failures = [RuntimeError("the plugin is broken")] * 2
    clock.advance(60)
    await settled(service)

    shown = (await client.get(f"/v1/files/{file.file_id}")).json()
    assert (shown["status"], shown["reason"]) == ("failed", "it could not be fetched")
    assert album.failures == []


async def test_where_a_file_is_found_stands_nowhere_readable_and_is_forgotten_once_it_is_here(
    make_service: ServiceFactory, service: Service, sending: Sending, tenant: Tenant, album: Album
) -> None:
    album.failures = [RuntimeError("not yet")]
    file = await sending.begin(PNG)
    await settled(service)

    async with service.db.read() as tx:
        row = await tx.fetch_one("SELECT * FROM core_files")
        jobs = await tx.fetch_all("SELECT payload FROM core_jobs")
        source = await store.find_source(tx, file.project_id, file.file_id)

    assert row is not None
    assert REF not in str([row[name] for name in row.keys()])
    assert REF not in str([job["payload"] for job in jobs])
    assert source is not None
    assert REF in service.secrets.decrypt(source)


async def test_a_fetch_that_was_killed_half_way_leaves_nothing_of_itself(
    service: Service, sending: Sending, album: Album, clock: FakeClock, client: httpx2.AsyncClient
) -> None:
    album.failures = [RuntimeError("after its content was written")]
    content = PDF + bytes(range(256)) * 2000
    await sending.begin(content, filename="a.pdf")
    await settled(service)
    clock.advance(60)
    await settled(service)

    assert (await read(client, album.told[0])).content == content


async def test_a_file_that_is_removed_while_it_is_fetched_stays_removed(
    service: Service, sending: Sending, channel: RecordingChannel, album: Album, clock: FakeClock
) -> None:
    channel.refusals = [DeliveryError(Reason.PLATFORM_UNAVAILABLE, "later")]
    file = await sending.begin(PNG)
    await settled(service)
    async with service.db.transaction() as tx:
        await service.files.remove(tx, file.project_id, [file.file_id])

    clock.advance(60)
    await settled(service)

    assert album.told == []
    async with service.db.read() as tx:
        assert await tx.fetch_all("SELECT * FROM core_file_chunks") == []


async def test_a_file_for_a_bot_that_is_gone_fails(
    service: Service, sending: Sending, album: Album, tenant: Tenant
) -> None:
    file = StoredFile(
        file_id="fil_0000000000000000000001",
        project_id=tenant.project.project_id,
        subscriber_id=None,
        type="image",
        filename="image",
        mime_type="image/png",
        size=0,
        status="pending",
        reason="",
        created_at_ms=0,
    )
    sealed = fetching.seal(service.secrets, "gone", ReceivedFile("image", REF))
    async with service.db.transaction() as tx:
        await store.insert(tx, file, sealed)
        await service.jobs.enqueue(tx, fetching.job(file, "gone"))
    await settled(service)

    assert album.told[0].reason == "the bot that it was sent to is gone"


async def test_erasing_a_person_removes_all_their_files_kept_or_not(
    service: Service,
    sending: Sending,
    client: httpx2.AsyncClient,
    tenant: Tenant,
    clock: FakeClock,
    subscribe: Subscribe,
) -> None:
    file = await sending(PNG)
    async with service.db.transaction() as tx:
        await service.files.retain(tx, tenant.project.project_id, [file.file_id])

    await client.delete(f"/v1/subscribers/{file.subscriber_id}?erase=true")
    await settled(service)
    clock.advance(AGAIN_AFTER_S)
    await settled(service)

    async with service.db.read() as tx:
        assert await tx.fetch_all("SELECT file_id FROM core_files") == []
        assert await tx.fetch_all("SELECT file_id FROM core_file_chunks") == []


async def test_a_dead_job_of_a_file_that_is_settled_changes_nothing(
    service: Service, sending: Sending
) -> None:
    file = await sending(PNG)
    job = Job(
        job_id="job_1",
        name=fetching.JOB,
        lane="files:messenger_a",
        payload={"file_id": file.file_id},
        attempts=1,
        deliveries=1,
        created_at_ms=0,
        project_id=file.project_id,
    )
    async with service.db.transaction() as tx:
        await service.get(FileFetcher).on_dead(tx, job, "Error: x")
        after = await service.files.get(tx, file.project_id, file.file_id)

    assert after.status == "ready"


async def test_one_person_sends_no_more_files_than_a_setting_says_in_a_day(
    make_service: ServiceFactory, make_tenant: Any, album: Album, clock: FakeClock
) -> None:
    service = await make_service(
        media={**MEDIA, "files_per_person": 2}, extra_plugins=[("album", album)]
    )
    tenant = await make_tenant(service)
    ann, other = ChannelUser("user-Ann", "Ann"), ChannelUser("user-Bob", "Bob")
    async with service.db.transaction() as tx:
        for user in (ann, other):
            await service.subscribers.ensure(
                tx, tenant.project.project_id, "messenger_a", user, user.user_id, source="api"
            )
    channel = service.channels["messenger_a"]
    assert isinstance(channel, RecordingChannel)
    channel.contents[REF] = b"Hi"

    async def send(user: ChannelUser, count: int) -> list[str]:
        before = len(album.files)
        update = MessageReceived(
            update_id=f"files-{before}",
            chat_id=user.user_id,
            user=user,
            text="",
            files=(ReceivedFile("document", REF),) * count,
        )
        await service.inbound.receive("messenger_a", update)
        await settled(service)
        return [file.status for file in album.files[before:]]

    assert await send(ann, 3) == ["pending", "pending", "failed"]
    assert album.files[-1].reason == "more than 2 files of one person in 24 hours"
    assert await send(other, 1) == ["pending"]
    clock.advance(24 * 3600 - 1)
    assert await send(ann, 1) == ["failed"]
    clock.advance(2)
    assert await send(ann, 1) == ["pending"]
