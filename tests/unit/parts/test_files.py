"""Files that people send and projects upload, and those of messages."""

import io
from collections.abc import AsyncIterator

import pytest

from msgsvc_core.channels.failures import DeliveryError, LocalFailure, Reason
from msgsvc_core.channels.updates import ChannelUser, MessageReceived, ReceivedFile
from msgsvc_core.content.outgoing import Media
from msgsvc_core.db import Tx
from msgsvc_core.files.fetching import JOB as FETCH_JOB
from msgsvc_core.files.models import StoredFile
from msgsvc_core.files.purging import JOB as PURGE_JOB
from msgsvc_core.files.service import FileGone
from msgsvc_core.files.store import CHUNK_BYTES
from msgsvc_core.kernel.errors import NotFound, PayloadTooLarge, ValidationFailed
from msgsvc_devkit import MemoryCore, memory_core
from msgsvc_devkit.contexts import InboundInTest
from msgsvc_devkit.core import PROJECT

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 100
PDF = b"%PDF-" + b"x" * CHUNK_BYTES
SMALL = {
    "max_image_bytes": 200,
    "max_document_bytes": 1000,
    "files_per_person": 2,
    "address_hours": 24,
}


@pytest.fixture
async def core() -> AsyncIterator[MemoryCore]:
    async with memory_core(media=SMALL) as core:
        yield core


@pytest.fixture
async def roomy() -> AsyncIterator[MemoryCore]:
    """With the limits that there are by default."""
    async with memory_core() as core:
        yield core


async def kept(core: MemoryCore, content: bytes = PNG, filename: str = "cat.png") -> StoredFile:
    """A file that the project has uploaded."""
    async with core.db.transaction() as tx:
        return await core.files.add(tx, PROJECT, filename=filename, content=io.BytesIO(content))


async def read(core: MemoryCore, file: StoredFile) -> list[bytes]:
    return [chunk async for chunk in core.files.content(file)]


async def test_a_file_is_what_it_holds_and_not_what_it_is_called(core: MemoryCore) -> None:
    file = await kept(core, PNG, "../notes")

    assert (file.type, file.mime_type, file.filename) == ("image", "image/png", "notes.png")
    assert await read(core, file) == [PNG]


async def test_a_large_file_is_kept_in_chunks(roomy: MemoryCore) -> None:
    chunks = await read(roomy, await kept(roomy, PDF, "a.pdf"))

    assert [len(chunk) for chunk in chunks] == [CHUNK_BYTES, 5]
    assert b"".join(chunks) == PDF


async def test_what_is_empty_or_too_large_or_a_page_is_not_kept(core: MemoryCore, tx: Tx) -> None:
    files = core.files

    with pytest.raises(ValidationFailed, match="empty"):
        await files.add(tx, PROJECT, filename="a.png", content=io.BytesIO())
    with pytest.raises(PayloadTooLarge, match="1000 bytes"):
        await files.add(tx, PROJECT, filename="a.txt", content=io.BytesIO(b"x" * 1001))
    with pytest.raises(ValidationFailed):
        await files.add(tx, PROJECT, filename="a.txt", content=io.BytesIO(b"<html><script>"))
    assert await tx.fetch_val("SELECT COUNT(*) FROM core_files") == 0


def update_with(core: MemoryCore, tx: Tx, *files: ReceivedFile) -> InboundInTest:
    user = ChannelUser("1", "Anna")
    update = MessageReceived(update_id="1", chat_id="chat 1", user=user, text="", files=files)
    return core.inbound(tx, update)


async def test_what_people_send_is_fetched_as_far_as_their_quota_goes(
    core: MemoryCore, tx: Tx
) -> None:
    await core.person(tx)
    before = (ReceivedFile("document", "ref before"),)
    await core.files.receive(update_with(core, tx, *before), PROJECT, "sub_1", before)
    large = ReceivedFile("image", "ref 0", size=201)
    sent = (large, *(ReceivedFile("document", f"ref {number}") for number in (1, 2)))
    noted = await core.files.receive(update_with(core, tx, *sent), PROJECT, "sub_1", sent)

    assert [file.status for file in noted] == ["failed", "pending", "failed"]
    assert "200 bytes" in noted[0].reason
    assert "more than 2 files" in noted[2].reason
    fetched = [job.payload["file_id"] for job in await core.jobs_named(tx, FETCH_JOB)]
    assert fetched[1:] == [noted[1].file_id]
    # With some platforms, its place is all one needs to read it.
    sources = [await source_of(tx, file) for file in noted]
    assert [source is None for source in sources] == [True, False, True]
    assert "ref 1" not in str(sources[1])


async def source_of(tx: Tx, file: StoredFile) -> str | None:
    """What is stored of the place at the platform from which a file is fetched."""
    sql = "SELECT source FROM core_files WHERE file_id = :file_id"
    found: str | None = await tx.fetch_val(sql, {"file_id": file.file_id})
    return found


async def test_a_message_without_files_notes_none(core: MemoryCore, tx: Tx) -> None:
    assert await core.files.receive(update_with(core, tx), PROJECT, "sub_1", ()) == []
    assert await core.pending_jobs(tx) == []


async def test_files_are_found_in_the_order_asked_for_and_once(core: MemoryCore) -> None:
    first, second = (await kept(core)).file_id, (await kept(core)).file_id
    asked = [second, first, second, "fil_3"]
    found = await core.files.get_many(core.db, PROJECT, asked)

    assert [file.file_id for file in found] == [second, first]
    with pytest.raises(NotFound):
        await core.files.get(core.db, PROJECT, "fil_3")


async def test_many_files_are_removed_by_a_job(core: MemoryCore) -> None:
    files = [(await kept(core)).file_id for _ in range(7)]
    async with core.db.transaction() as tx:
        await core.files.remove(tx, PROJECT, files[:1])
        assert await core.pending_jobs(tx) == []
        await core.files.remove(tx, PROJECT, files[1:])

        assert len(await core.jobs_named(tx, PURGE_JOB)) == 1
    assert await core.files.get_many(core.db, PROJECT, files) == []


async def test_an_address_is_the_same_for_an_hour_and_works_for_its_days(core: MemoryCore) -> None:
    file = await kept(core)
    url, expires_s = core.files.address(file)
    core.clock.advance(3599)
    again, _ = core.files.address(file)

    assert url == again
    assert await core.files.at_address(url) == file
    core.clock.advance(expires_s - core.clock.time())
    assert await core.files.at_address(url) is None


async def test_an_address_of_one_file_opens_no_other_and_none_that_is_not_ready(
    core: MemoryCore,
) -> None:
    one, other = await kept(core), await kept(core)
    url, _ = core.files.address(one)
    assert await core.files.at_address(url.replace(one.file_id, other.file_id)) is None
    sent = (ReceivedFile("document", "ref"),)
    async with core.db.transaction() as tx:
        await core.person(tx)
        [pending] = await core.files.receive(update_with(core, tx, *sent), PROJECT, "sub_1", sent)

    assert await core.files.at_address(core.files.address(pending)[0]) is None
    assert core.files.is_own_address(url)
    elsewhere = core.config.base_url + ".evil/files/fil_1/x"
    assert not core.files.is_own_address(elsewhere)


async def test_a_file_that_is_removed_while_it_is_read_is_gone(roomy: MemoryCore) -> None:
    file = await kept(roomy, PDF, "a.pdf")
    pieces = roomy.files.content(file)

    assert await anext(pieces) == PDF[:CHUNK_BYTES]
    async with roomy.db.transaction() as tx:
        await roomy.files.remove(tx, PROJECT, [file.file_id])
    with pytest.raises(FileGone):
        await anext(pieces)


# ---- files of messages --------------------------------------------------------------------------


async def test_what_is_kept_here_is_read_without_a_network(core: MemoryCore) -> None:
    media = core.files.media(await kept(core))
    async with core.media().fetch(media) as found:
        content = found.file.read()

    assert (content, found.filename, found.mime_type) == (PNG, "cat.png", "image/png")


async def test_a_file_that_was_removed_or_is_too_large_fails_its_message_for_good(
    core: MemoryCore,
) -> None:
    small, removed = await kept(core), await kept(core)
    large = Media("image", core.files.address(await kept(core, b"x" * 201, "a.txt"))[0])
    gone = core.files.media(removed)
    async with core.db.transaction() as tx:
        await core.files.remove(tx, PROJECT, [removed.file_id])
    await core.media().inspect(core.files.media(small))

    for file, why in ((large, "larger than 200"), (gone, "is gone")):
        with pytest.raises(DeliveryError, match=why) as failed:
            await core.media().inspect(file)
        assert failed.value.reason is Reason.INVALID_MESSAGE


async def test_a_picture_that_is_none_is_not_sent_as_one(core: MemoryCore) -> None:
    text = core.files.media(await kept(core, b"just words", "notes.txt"))

    await core.media().inspect(text)
    with pytest.raises(DeliveryError):
        await core.media().inspect(Media("image", text.url))


async def test_an_address_inside_our_network_is_refused_and_says_nothing_of_a_platform(
    core: MemoryCore,
) -> None:
    try:
        with pytest.raises(DeliveryError) as refused:
            await core.media().inspect(Media("image", "http://127.0.0.1:9/cat.png"))
    finally:
        await core.media().close()

    assert refused.value.reason is Reason.INVALID_MESSAGE
    assert not isinstance(refused.value, LocalFailure)
