"""`service.files`: files of users and projects, and the URLs at which messengers read them.

A plugin that refers to a file calls `retain`; files that nothing retains are deleted after
`media.loose_hours`.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import IO

from msgsvc_core.channels.inbound import InboundContext
from msgsvc_core.channels.updates import ReceivedFile
from msgsvc_core.config.sections import MediaSettings
from msgsvc_core.content.file_types import HEAD_BYTES
from msgsvc_core.content.outgoing import Media, MediaType
from msgsvc_core.db import Database, Tx
from msgsvc_core.files import addresses, fetching, purging, store
from msgsvc_core.files.kinds import LargeImages, TooLarge, Unfit, check_size, recognise
from msgsvc_core.files.models import StoredFile
from msgsvc_core.files.names import safe_name, with_suffix
from msgsvc_core.jobs.contract import NewJob
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import DAY_MS, Clock
from msgsvc_core.kernel.errors import NotFound, PayloadTooLarge, ValidationFailed
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.security import SecretBox

#: Prefix of file ids.
PREFIX = "fil"

#: The window of `media.files_per_person`.


class FileGone(Exception):
    """A file was removed while being read."""


class Files:
    """Files of all projects, in chunks in the database, so that every machine has them.

    No method keeps more than a chunk of a file in memory.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        db: Database,
        secrets: SecretBox,
        settings: MediaSettings,
        jobs: JobQueue,
        base_url: str,
    ) -> None:
        self._clock = clock
        self._db = db
        self._secrets = secrets
        self._jobs = jobs
        self._settings = settings
        #: Prefix of file URLs.
        self._root = f"{base_url}/files/"

    # ---- incoming -------------------------------------------------------------------------------

    async def add(
        self,
        tx: Tx,
        project_id: str,
        *,
        filename: str,
        content: IO[bytes],
        subscriber_id: str | None = None,
        declared_type: MediaType | None = None,
        large_images: LargeImages = "documents",
    ) -> StoredFile:
        """Stores the content, read from its start; its type is detected, see `recognise`.

        Raises `ValidationFailed` for an empty file, or HTML with another extension, and `PayloadTooLarge` for
        more bytes than `media.max_<type>_bytes`.
        """
        size = content.seek(0, 2)
        content.seek(0)
        name = safe_name(filename, "file")
        try:
            kind, mime_type = recognise(
                self._settings,
                name,
                content.read(HEAD_BYTES),
                size,
                declared_type=declared_type,
                large_images=large_images,
            )
        except TooLarge as error:
            raise PayloadTooLarge.because(error, field="file") from None
        except Unfit as error:
            raise ValidationFailed.because(error, field="file") from None
        file = StoredFile(
            file_id=new_id(PREFIX),
            project_id=project_id,
            subscriber_id=subscriber_id,
            type=kind,
            filename=with_suffix(name, mime_type),
            mime_type=mime_type,
            size=size,
            status="ready",
            reason="",
            created_at_ms=self._clock.now_ms(),
        )
        await store.insert(tx, file)
        content.seek(0)
        for number, chunk in enumerate(iter(lambda: content.read(store.CHUNK_BYTES), b"")):
            await store.insert_chunk(tx, project_id, file.file_id, number, chunk)
        return file

    async def receive(
        self,
        ctx: InboundContext,
        project_id: str,
        subscriber_id: str,
        files: Sequence[ReceivedFile],
    ) -> list[StoredFile]:
        """Records the files of an update in its transaction; a job downloads them after the commit.

        They are `pending`, or `failed` if the messenger reports one as too large, or the user has sent too
        many recently. The hook `on_file_fetched` reports the outcome of pending ones.
        """
        room = await self._remaining_quota(ctx.tx, project_id, subscriber_id) if files else 0
        noted = []
        for received in files:
            file = self._insert(project_id, subscriber_id, received)
            source = None
            if file.status == "pending" and room <= 0:
                limit = self._settings.files_per_person
                reason = f"more than {limit} files of one person in 24 hours"
                file = replace(file, status="failed", reason=reason)
            if file.status == "pending":
                room -= 1
                source = fetching.seal(self._secrets, ctx.channel, received)
                await self._jobs.enqueue(ctx.tx, fetching.job(file, ctx.channel))
            await store.insert(ctx.tx, file, source)
            noted.append(file)
        return noted

    async def _remaining_quota(self, tx: Tx, project_id: str, subscriber_id: str) -> int:
        """How many more files may be downloaded for a person now."""
        since_ms = self._clock.now_ms() - DAY_MS
        sent = await store.count_of_person(tx, project_id, subscriber_id, since_ms)
        return self._settings.files_per_person - sent

    def _insert(self, project_id: str, subscriber_id: str, received: ReceivedFile) -> StoredFile:
        file = StoredFile(
            file_id=new_id(PREFIX),
            project_id=project_id,
            subscriber_id=subscriber_id,
            type=received.type,
            filename=safe_name(received.filename, fetching.NAMELESS[received.type]),
            mime_type=received.mime_type or "application/octet-stream",
            size=max(0, received.size or 0),
            status="pending",
            reason="",
            created_at_ms=self._clock.now_ms(),
        )
        try:
            check_size(self._settings, received.type, file.size)
        except TooLarge as error:
            return replace(file, status="failed", reason=str(error))
        return file

    # ---- lookup ---------------------------------------------------------------------------------

    async def get(self, source: Tx | Database, project_id: str, file_id: str) -> StoredFile:
        """Raises `NotFound`."""
        async with _asking(source) as tx:
            file = await store.find(tx, project_id, file_id)
        if file is None:
            raise NotFound("there is no file {file_id}", file_id=file_id)
        return file

    async def get_many(
        self, source: Tx | Database, project_id: str, file_ids: Sequence[str]
    ) -> list[StoredFile]:
        """The project's files that exist, in the order of `file_ids`."""
        if not file_ids:
            return []
        async with _asking(source) as tx:
            found = await store.get_many(tx, project_id, file_ids)
        by_id = {file.file_id: file for file in found}
        return [by_id[file_id] for file_id in dict.fromkeys(file_ids) if file_id in by_id]

    async def retain(self, tx: Tx, project_id: str, file_ids: Sequence[str]) -> None:
        """Keeps these files until they are removed, because something refers to them."""
        if file_ids:
            await store.retain(tx, project_id, file_ids)

    async def remove(self, tx: Tx, project_id: str, file_ids: Sequence[str]) -> None:
        """Removes files in any state; the content of many files is deleted by a job."""
        if not await purging.remove(tx, project_id, file_ids):
            await self._jobs.enqueue(tx, NewJob(purging.JOB))

    # ---- outgoing -------------------------------------------------------------------------------

    async def content(self, file: StoredFile) -> AsyncIterator[bytes]:
        """The content of a file that is `ready`, chunk by chunk. Raises `FileGone`."""
        for number in range(-(-file.size // store.CHUNK_BYTES)):
            async with self._db.read() as tx:
                chunk = await store.read_chunk(tx, file.project_id, file.file_id, number)
            if chunk is None:
                raise FileGone(file.file_id)
            yield chunk

    async def head(self, file: StoredFile) -> bytes:
        """Its first bytes, for type detection; empty if it was removed."""
        async with self._db.read() as tx:
            chunk = await store.read_chunk(tx, file.project_id, file.file_id, 0)
        return (chunk or b"")[:HEAD_BYTES]

    def media(self, file: StoredFile) -> Media:
        """The file as part of a message; it is read from the store, wherever the message is sent.

        Call it when the message is made: its URL is valid for `media.address_hours`.
        """
        assert file.is_ready, "only what is there can be sent"
        return Media(file.type, self.address(file)[0], file.filename)

    def address(self, file: StoredFile) -> tuple[str, int]:
        """The public URL of the file, and its expiry in Unix seconds."""
        expires_s = addresses.expiry_s(self._clock.now_ms(), self._settings.address_hours)
        signature = addresses.sign(self._secrets, file.file_id, expires_s)
        return f"{self._root}{file.file_id}/{signature}", expires_s

    def is_own_address(self, url: str) -> bool:
        """Whether the URL is one of ours, signed or not."""
        return url.startswith(self._root)

    async def at_address(self, url: str) -> StoredFile | None:
        """The file at one of our URLs; None if it was removed, or the URL has expired."""
        file_id, _, signature = url.removeprefix(self._root).partition("/")
        return await self.signed(file_id, signature)

    async def signed(self, file_id: str, signature: str) -> StoredFile | None:
        """The file with a validly signed id if it is ready, else None."""
        secrets, now_ms = self._secrets, self._clock.now_ms()
        if not addresses.is_signed(secrets, file_id, signature, now_ms):
            return None
        async with self._db.read() as tx:
            file = await store.find_signed(tx, file_id)
        return file if file is not None and file.is_ready else None


@asynccontextmanager
async def _asking(source: Tx | Database) -> AsyncIterator[Tx]:
    if isinstance(source, Database):
        async with source.read() as tx:
            yield tx
    else:
        yield source
