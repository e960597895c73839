"""Files that people send and projects upload, and those of messages: rules built from fakes."""

import io
from typing import Any

import pytest

from msgsvc_core.channels.failures import DeliveryError, LocalFailure, Reason
from msgsvc_core.channels.updates import ChannelUser, MessageReceived, ReceivedFile
from msgsvc_core.config.sections import MediaSettings
from msgsvc_core.content.outgoing import Media
from msgsvc_core.files.fetching import JOB as FETCH_JOB
from msgsvc_core.files.media import MediaFiles
from msgsvc_core.files.models import StoredFile
from msgsvc_core.files.purging import JOB as PURGE_JOB
from msgsvc_core.files.service import FileGone, Files
from msgsvc_core.files.store import CHUNK_BYTES
from msgsvc_core.kernel.errors import NotFound, PayloadTooLarge, ValidationFailed
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeInboundContext, FakeTx, inbound_context
from tests.unit.parts.rows import NOW_MS, row_of

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 100
SMALL = MediaSettings(max_image_bytes=200, max_document_bytes=1000, files_per_person=2)


def files_of(core: FakeContext, settings: MediaSettings = SMALL) -> Files:
    return Files(
        clock=core.clock,
        db=core.db,
        secrets=core.secrets,
        settings=settings,
        jobs=core.jobs,
        base_url="https://msgsvc.example",
    )


def stored(file_id: str = "fil_1", **fields: Any) -> StoredFile:
    values: dict[str, Any] = {
        "type": "image",
        "filename": "cat.png",
        "mime_type": "image/png",
        "size": 3,
    }
    state = {"status": "ready", "reason": "", "created_at_ms": NOW_MS, "subscriber_id": None}
    return StoredFile(file_id=file_id, project_id=PROJECT, **{**values, **state, **fields})


async def test_a_file_is_what_it_holds_and_not_what_it_is_called() -> None:
    tx = FakeTx(answers=[1])
    file = await files_of(plugin_context()).add(
        tx, PROJECT, filename="../notes", content=io.BytesIO(PNG)
    )

    assert (file.type, file.mime_type, file.filename) == ("image", "image/png", "notes.png")
    assert tx.statements[0][1]["content"] == PNG


async def test_a_large_file_is_kept_in_chunks() -> None:
    content, tx = b"%PDF-" + b"x" * CHUNK_BYTES, FakeTx(answers=[1, 1])
    await files_of(plugin_context(), MediaSettings()).add(
        tx, PROJECT, filename="a.pdf", content=io.BytesIO(content)
    )

    chunks = [params["content"] for _, params in tx.statements]
    assert [len(chunk) for chunk in chunks] == [CHUNK_BYTES, 5]
    assert b"".join(chunks) == content


async def test_what_is_empty_or_too_large_or_a_page_is_not_kept() -> None:
    files, tx = files_of(plugin_context()), FakeTx()

    with pytest.raises(ValidationFailed, match="empty"):
        await files.add(tx, PROJECT, filename="a.png", content=io.BytesIO())
    with pytest.raises(PayloadTooLarge, match="1000 bytes"):
        await files.add(tx, PROJECT, filename="a.txt", content=io.BytesIO(b"x" * 1001))
    with pytest.raises(ValidationFailed):
        await files.add(tx, PROJECT, filename="a.txt", content=io.BytesIO(b"<html><script>"))
    assert tx.rows == {}


def update_of(core: FakeContext, *files: ReceivedFile) -> FakeInboundContext:
    update = MessageReceived(
        update_id="1", chat_id="c1", user=ChannelUser("1", "Ann"), text="", files=files
    )
    return inbound_context(update, channels=core.channels, outbox=core.outbox)


async def test_what_people_send_is_fetched_as_far_as_their_quota_goes() -> None:
    core = plugin_context()
    large = ReceivedFile("image", "ref 0", size=201)
    sent = (large, *(ReceivedFile("document", f"ref {number}") for number in (1, 2)))
    ctx = update_of(core, *sent)
    # One was sent before.
    ctx.tx = FakeTx(answers=[[{"count": 1}]])
    noted = await files_of(core).receive(ctx, PROJECT, "sub_1", sent)

    assert [file.status for file in noted] == ["failed", "pending", "failed"]
    assert "200 bytes" in noted[0].reason
    assert "more than 2 files" in noted[2].reason
    assert [job.payload["file_id"] for job in core.jobs.named(FETCH_JOB)] == [noted[1].file_id]
    rows = ctx.tx.rows["core_files"]
    # With some platforms, its place is all one needs to read it.
    assert [row["source"] is None for row in rows] == [True, False, True]
    assert "ref 1" not in rows[1]["source"]


async def test_a_message_without_files_asks_for_no_quota() -> None:
    core = plugin_context()

    assert await files_of(core).receive(update_of(core), PROJECT, "sub_1", ()) == []


async def test_files_are_found_in_the_order_asked_for_and_once() -> None:
    rows = [row_of(stored("fil_1")), row_of(stored("fil_2"))]
    files, asked = files_of(plugin_context()), ["fil_2", "fil_1", "fil_2", "fil_3"]
    found = await files.get_many(FakeTx(answers=[rows]), PROJECT, asked)

    assert [file.file_id for file in found] == ["fil_2", "fil_1"]
    with pytest.raises(NotFound):
        await files.get(FakeTx(answers=[[]]), PROJECT, "fil_3")


async def test_many_files_are_removed_by_a_job() -> None:
    core = plugin_context()
    await files_of(core).remove(FakeTx(answers=[1]), PROJECT, ["fil_1"])
    assert core.jobs.enqueued == []
    await files_of(core).remove(FakeTx(answers=[6]), PROJECT, [f"fil_{n}" for n in range(6)])

    assert len(core.jobs.named(PURGE_JOB)) == 1


async def test_an_address_is_the_same_for_an_hour_and_works_for_its_days() -> None:
    core = plugin_context()
    files = files_of(core, MediaSettings(address_hours=24))
    url, expires_s = files.address(stored())
    core.clock.advance(3599)
    again, _ = files.address(stored())
    core.db.answers.append([row_of(stored())])

    assert url == again
    assert await files.at_address(url) == stored()
    core.clock.advance(expires_s - core.clock.time())
    # Without a look at the database, which has no answer left.
    assert await files.at_address(url) is None


async def test_an_address_of_one_file_opens_no_other_and_none_that_is_not_ready() -> None:
    core = plugin_context()
    files = files_of(core)
    url, _ = files.address(stored())

    assert await files.at_address(url.replace("fil_1", "fil_2")) is None
    core.db.answers.append([row_of(stored(status="pending"))])
    assert await files.at_address(url) is None
    assert files.is_own_address(url)
    assert not files.is_own_address("https://msgsvc.example.evil/files/fil_1/x")


async def test_a_file_that_is_removed_while_it_is_read_is_gone() -> None:
    core = plugin_context()
    core.db.answers += [[{"content": b"a" * CHUNK_BYTES}], []]
    pieces = files_of(core).content(stored(size=CHUNK_BYTES + 1))

    assert await anext(pieces) == b"a" * CHUNK_BYTES
    with pytest.raises(FileGone):
        await anext(pieces)


# ---- files of messages --------------------------------------------------------------------------


def media_of(core: FakeContext) -> MediaFiles:
    return MediaFiles(clock=core.clock, settings=SMALL, files=core.files)


async def own_file(core: FakeContext, content: bytes = PNG) -> Media:
    file = await core.files.add(FakeTx(), PROJECT, filename="cat.png", content=io.BytesIO(content))
    return core.files.media(file)


async def test_what_is_kept_here_is_read_without_a_network() -> None:
    core = plugin_context()
    async with media_of(core).fetch(await own_file(core)) as found:
        read = found.file.read()

    assert (read, found.filename, found.mime_type) == (PNG, "cat.png", "image/png")


async def test_a_file_that_was_removed_or_is_too_large_fails_its_message_for_good() -> None:
    core = plugin_context()
    media = media_of(core)
    large, gone = await own_file(core, PNG * 2), await own_file(core)
    await core.files.remove(FakeTx(), PROJECT, [list(core.files.stored)[-1]])

    for file, why in ((large, "larger than 200"), (gone, "is gone")):
        with pytest.raises(DeliveryError, match=why) as failed:
            await media.inspect(file)
        assert failed.value.reason is Reason.INVALID_MESSAGE


async def test_a_picture_that_is_none_is_not_sent_as_one() -> None:
    core = plugin_context()
    text = await own_file(core, b"just words")

    with pytest.raises(DeliveryError):
        await media_of(core).inspect(Media("image", text.url))


async def test_an_address_inside_our_network_is_refused_and_says_nothing_of_a_platform() -> None:
    media = media_of(plugin_context())
    try:
        with pytest.raises(DeliveryError) as refused:
            await media.inspect(Media("image", "http://127.0.0.1:9/cat.png"))
    finally:
        await media.close()

    assert refused.value.reason is Reason.INVALID_MESSAGE
    assert not isinstance(refused.value, LocalFailure)
