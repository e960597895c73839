"""Files in memory."""

from collections.abc import AsyncIterator, Sequence
from typing import IO

from msgsvc_core.channels.inbound import InboundContext
from msgsvc_core.channels.updates import ReceivedFile
from msgsvc_core.config.sections import MediaSettings
from msgsvc_core.content.file_types import HEAD_BYTES
from msgsvc_core.db import Database, Tx
from msgsvc_core.files.kinds import TooLarge, Unfit, recognise
from msgsvc_core.files.models import StoredFile
from msgsvc_core.files.names import safe_name, with_suffix
from msgsvc_core.files.service import FileGone, Files
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import NotFound, PayloadTooLarge, ValidationFailed
from msgsvc_core.kernel.ids import new_id
from msgsvc_devkit.clock import FakeClock
from msgsvc_devkit.fakes.database import FakeDatabase
from msgsvc_devkit.fakes.jobs import FakeJobQueue
from msgsvc_devkit.fakes.secrets import fake_secrets


class FakeFiles(Files):
    """`stored` contains the files by id, `contents` their contents, and `kept` the ids of retained ones.
    Files that users sent stay `pending`: they are not fetched."""

    def __init__(self, *, clock: Clock | None = None) -> None:
        clock = clock or FakeClock()
        super().__init__(
            clock=clock,
            db=FakeDatabase(),
            secrets=fake_secrets(),
            settings=MediaSettings(),
            jobs=FakeJobQueue(clock),
            base_url="http://msgsvc.test",
        )
        self.stored: dict[str, StoredFile] = {}
        self.contents: dict[str, bytes] = {}
        self.kept: set[str] = set()

    async def add(
        self,
        tx: Tx,
        project_id: str,
        *,
        filename: str,
        content: IO[bytes],
        subscriber_id: str | None = None,
    ) -> StoredFile:
        content.seek(0)
        read = content.read()
        name = safe_name(filename, "file")
        try:
            kind, mime_type = recognise(MediaSettings(), name, read[:HEAD_BYTES], len(read))
        except TooLarge as error:
            raise PayloadTooLarge.because(error, field="file") from None
        except Unfit as error:
            raise ValidationFailed.because(error, field="file") from None
        file = StoredFile(
            file_id=new_id("fil"),
            project_id=project_id,
            subscriber_id=subscriber_id,
            type=kind,
            filename=with_suffix(name, mime_type),
            mime_type=mime_type,
            size=len(read),
            status="ready",
            reason="",
            created_at_ms=self._clock.now_ms(),
        )
        self.stored[file.file_id] = file
        self.contents[file.file_id] = read
        return file

    async def receive(
        self,
        ctx: InboundContext,
        project_id: str,
        subscriber_id: str,
        files: Sequence[ReceivedFile],
    ) -> list[StoredFile]:
        noted = [self._insert(project_id, subscriber_id, received) for received in files]
        self.stored |= {file.file_id: file for file in noted}
        return noted

    async def get(self, source: Tx | Database, project_id: str, file_id: str) -> StoredFile:
        found = await self.get_many(source, project_id, [file_id])
        if not found:
            raise NotFound("there is no file {file_id}", file_id=file_id)
        return found[0]

    async def get_many(
        self, source: Tx | Database, project_id: str, file_ids: Sequence[str]
    ) -> list[StoredFile]:
        found = [self.stored.get(file_id) for file_id in dict.fromkeys(file_ids)]
        return [file for file in found if file is not None and file.project_id == project_id]

    async def retain(self, tx: Tx, project_id: str, file_ids: Sequence[str]) -> None:
        self.kept |= {file.file_id for file in await self.get_many(tx, project_id, file_ids)}

    async def remove(self, tx: Tx, project_id: str, file_ids: Sequence[str]) -> None:
        for file in await self.get_many(tx, project_id, file_ids):
            del self.stored[file.file_id]
            self.contents.pop(file.file_id, None)
            self.kept.discard(file.file_id)

    async def content(self, file: StoredFile) -> AsyncIterator[bytes]:
        if file.file_id not in self.contents:
            raise FileGone(file.file_id)
        yield self.contents[file.file_id]

    async def head(self, file: StoredFile) -> bytes:
        return self.contents.get(file.file_id, b"")[:HEAD_BYTES]

    async def at_address(self, url: str) -> StoredFile | None:
        file_id = url.removeprefix(self._root).partition("/")[0]
        return await self.signed(file_id, "") if self.is_own_address(url) else None

    async def signed(self, file_id: str, signature: str) -> StoredFile | None:
        """Signatures are not checked."""
        file = self.stored.get(file_id)
        return file if file is not None and file.is_ready else None
