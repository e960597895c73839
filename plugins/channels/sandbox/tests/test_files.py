"""Files that people attach, answers, and what they change."""

import io

import httpx2
import pytest

from msgsvc_core.channels import DeliveryError, Reason
from msgsvc_core.kernel.errors import NotFound, ValidationFailed
from msgsvc_core.service import Service
from msgsvc_devkit import settled
from msgsvc_devkit.platforms.sandbox import Sandbox, SandboxPerson

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 2000


@pytest.fixture
async def talking(anna: SandboxPerson) -> SandboxPerson:
    await anna.start("messenger_a")
    return anna


async def test_a_file_is_read_back_by_its_person_and_by_the_bot_that_it_was_sent_to(
    service: Service, talking: SandboxPerson, sandbox: Sandbox, web: httpx2.AsyncClient
) -> None:
    sent = await talking.send_file("cup.png", PNG, "My cup")
    other = await sandbox.person("Bob")
    assert sent.media is not None
    file_id, into = sent.media.file_id or "", io.BytesIO()

    await service.channels["messenger_a"].fetch_file(file_id, into, len(PNG))
    own = await web.get(f"/sandbox/api/people/{talking.person_id}/files/{file_id}")
    foreign = await web.get(f"/sandbox/api/people/{other.person_id}/files/{file_id}")

    assert (sent.media.type, sent.text) == ("image", "My cup")
    assert into.getvalue() == own.content == PNG
    assert own.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert foreign.status_code == 404
    with pytest.raises(DeliveryError) as refused:
        await service.channels["messenger_b"].fetch_file(file_id, io.BytesIO(), len(PNG))
    assert refused.value.reason is Reason.INVALID_MESSAGE


@pytest.mark.parametrize("content", [b"", b"<!doctype html><script>"])
async def test_what_messengers_do_not_take_is_not_sent(
    talking: SandboxPerson, content: bytes
) -> None:
    with pytest.raises(ValidationFailed, match="file: "):
        await talking.send_file("cup.png", content)


async def test_a_deleted_person_takes_their_files_along(
    service: Service, talking: SandboxPerson, web: httpx2.AsyncClient
) -> None:
    await talking.send_file("cup.png", PNG)
    await web.delete(f"/sandbox/api/people/{talking.person_id}")

    async with service.db.read() as tx:
        assert await tx.fetch_all("SELECT file_id FROM sandbox_files") == []
        assert await tx.fetch_all("SELECT file_id FROM sandbox_file_chunks") == []


async def test_only_what_the_person_wrote_can_be_changed(
    service: Service, talking: SandboxPerson
) -> None:
    said = await talking.say("Helo")
    await settled(service)
    echo = (await talking.messages())[-1]

    changed = await talking.edit(said, "Hello")

    assert (changed.ref, changed.text) == (said.ref, "Hello")
    assert changed.edited_at_ms is not None
    with pytest.raises(NotFound):
        await talking.edit(echo, "I never said that")


async def test_a_message_that_is_not_there_is_not_answered(talking: SandboxPerson) -> None:
    with pytest.raises(NotFound):
        await talking.say("Yes", reply_to="4711")
