"""Files that people attach: stored in chunks, shown on their pages, and passed to the bot."""

from collections.abc import AsyncIterator
from typing import IO

from msgsvc_core.channels import DeliveryError, MediaType, Reason, ReceivedFile
from msgsvc_core.config.sections import MediaSettings
from msgsvc_core.content.file_types import HEAD_BYTES
from msgsvc_core.db import Database, Tx
from msgsvc_core.files.kinds import Unfit, recognise
from msgsvc_core.files.names import safe_name
from msgsvc_core.kernel.errors import NotFound, ValidationFailed
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.kernel.values import value_object

#: Bytes of a file that are in memory at a time.
CHUNK_BYTES = 256 * 1024


@value_object
class AttachedFile:
    """What a person attached to a message for one bot."""

    file_id: str
    person_id: str
    channel: str
    filename: str
    mime_type: str
    size: int


async def attach(
    tx: Tx, settings: MediaSettings, person_id: str, channel: str, filename: str, content: IO[bytes]
) -> tuple[MediaType, AttachedFile]:
    """Stores a file. Raises `ValidationFailed` for one that messengers don't support."""
    size = content.seek(0, 2)
    content.seek(0)
    name = safe_name(filename, "file")
    try:
        kind, mime_type = recognise(settings, name, content.read(HEAD_BYTES), size)
    except Unfit as error:
        raise ValidationFailed.because(error, field="file") from None
    file = AttachedFile(new_id("fil"), person_id, channel, name, mime_type, size)
    names = ("file_id", "person_id", "channel", "filename", "mime_type", "size")
    await tx.insert("sandbox_files", {name: getattr(file, name) for name in names})
    content.seek(0)
    for number, chunk in enumerate(iter(lambda: content.read(CHUNK_BYTES), b"")):
        await tx.execute(
            "INSERT INTO sandbox_file_chunks (file_id, number, content)"
            " VALUES (:file_id, :number, :content)",
            {"file_id": file.file_id, "number": number, "content": chunk},
        )
    return kind, file


def received(kind: MediaType, file: AttachedFile) -> ReceivedFile:
    """The file as updates describe it."""
    return ReceivedFile(kind, file.file_id, file.filename, file.mime_type, file.size)


async def get(db: Database, person_id: str, file_id: str) -> AttachedFile:
    """A file of a person. Raises `NotFound`."""
    file = await _find(db, file_id)
    if file is None or file.person_id != person_id:
        raise NotFound("there is no such file")
    return file


async def fetch(db: Database, channel: str, file_id: str, into: IO[bytes], most_bytes: int) -> None:
    """Writes a file into `into` for the bot that it was sent to. Raises `DeliveryError`."""
    file = await _find(db, file_id)
    if file is None or file.channel != channel:
        raise DeliveryError(Reason.INVALID_MESSAGE, "there is no such file")
    if file.size > most_bytes:
        raise DeliveryError(Reason.INVALID_MESSAGE, f"it is larger than {most_bytes} bytes")
    async for chunk in content_of(db, file):
        into.write(chunk)


async def content_of(db: Database, file: AttachedFile) -> AsyncIterator[bytes]:
    """The content of a file, chunk by chunk; it ends early if the person was deleted meanwhile."""
    for number in range(-(-file.size // CHUNK_BYTES)):
        async with db.read() as tx:
            chunk: bytes | None = await tx.fetch_val(
                "SELECT content FROM sandbox_file_chunks"
                " WHERE file_id = :file_id AND number = :number",
                {"file_id": file.file_id, "number": number},
            )
        if chunk is None:
            return
        yield chunk


async def _find(db: Database, file_id: str) -> AttachedFile | None:
    async with db.read() as tx:
        row = await tx.fetch_one(
            "SELECT file_id, person_id, channel, filename, mime_type, size FROM sandbox_files"
            " WHERE file_id = :file_id",
            {"file_id": file_id},
        )
    return None if row is None else AttachedFile(**{name: row[name] for name in row.keys()})
