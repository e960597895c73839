"""Downloads files that users sent from the messenger, by a job in a lane per bot."""

import asyncio
import json
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import IO

import structlog

from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.updates import ReceivedFile
from msgsvc_core.config.sections import MediaSettings
from msgsvc_core.content.file_types import HEAD_BYTES
from msgsvc_core.content.outgoing import MediaType
from msgsvc_core.db import Tx
from msgsvc_core.files import store
from msgsvc_core.files.kinds import Unfit, max_bytes, recognise
from msgsvc_core.files.models import StoredFile
from msgsvc_core.files.names import with_suffix
from msgsvc_core.jobs.contract import Job, JobContext, JobSpec, LaneSpec, NewJob, Retry, exponential
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.security.sealed import SealedColumn
from msgsvc_core.security.secret_box import DecryptionError, SecretBox

#: Called when a file has been downloaded or has failed, in that transaction.
OnFetched = Callable[[Tx, StoredFile], Awaitable[None]]

JOB = "file.fetch"

#: Separate from the bot's messages, which must not wait for a large file.
LANES = LaneSpec("files", concurrency=2)

#: Attempts per file, and the backoff between them: half an hour in total.
MAX_ATTEMPTS = 10
_BACKOFF = exponential(2.0, max_s=600.0)

#: Hours for which a platform may ask to wait, which does not count as an attempt.
PATIENCE_MS = 24 * 3600 * 1000

#: Timeout in seconds for a file of the maximum size.
TIMEOUT_S = 120.0

#: Maximum bytes of a download that are kept in memory; the rest goes to disk.
IN_MEMORY_BYTES = 1024 * 1024

#: Chunks written per transaction: 4 MiB, so that other writers don't wait long.
CHUNKS_AT_ONCE = 16

SEALED = SealedColumn(
    table="core_files",
    column="source",
    key=("project_id", "file_id"),
    holds="addresses of {count} file(s) that are still to be fetched from messengers",
    if_lost="nothing: they are marked as failed, and people send them again",
    is_lasting=False,
)

#: Names of files that have none in the messenger.
NAMELESS: Mapping[MediaType, str] = {"image": "image", "video": "video", "document": "file"}

#: Reasons without a retry: the file does not exist for this bot.
_FOR_GOOD = frozenset({Reason.INVALID_MESSAGE, Reason.CHAT_NOT_FOUND, Reason.USER_BLOCKED_BOT})

log = structlog.get_logger(__name__)


def seal(secrets: SecretBox, channel: str, received: ReceivedFile) -> str:
    """The reference of a file, encrypted: with some platforms it is all that is needed to read the file."""
    return secrets.encrypt(json.dumps({"channel": channel, "file_ref": received.file_ref}))


def job(file: StoredFile, channel: str) -> NewJob:
    return NewJob(
        JOB,
        {"file_id": file.file_id},
        lane=f"{LANES.prefix}:{channel}",
        key=file.file_id,
        project_id=file.project_id,
    )


def failed(file: StoredFile, why: str) -> StoredFile:
    return replace(file, status="failed", reason=why)


class FileFetcher:
    """The job that downloads users' files from their messenger.

    `on_fetched` is awaited in the transaction that records that a file is ready or has failed.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        secrets: SecretBox,
        settings: MediaSettings,
        channels: Channels,
        on_fetched: OnFetched,
    ) -> None:
        self._clock = clock
        self._secrets = secrets
        self._settings = settings
        self._channels = channels
        self._on_fetched = on_fetched

    @property
    def spec(self) -> JobSpec:
        return JobSpec(
            JOB, self.fetch, max_attempts=MAX_ATTEMPTS, backoff=_BACKOFF, on_dead=self.on_dead
        )

    async def fetch(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """Downloads files; one that was removed or finished meanwhile is skipped."""
        for each in jobs:
            await self._fetch(ctx, each)

    async def on_dead(self, tx: Tx, job: Job, _error: str) -> None:
        """Marks the file as failed, even if a plugin's hook raises."""
        file = await store.find(tx, job.project_id or "", job.payload["file_id"])
        if file is None or file.status != "pending":
            return
        # The error may contain internal details; the log has it.
        lost = failed(file, "it could not be fetched")
        await store.finish(tx, lost)
        try:
            async with tx.savepoint():
                await self._on_fetched(tx, lost)
        except Exception:
            log.exception("file_hook_failed", file_id=file.file_id)

    async def _fetch(self, ctx: JobContext, job: Job) -> None:
        project_id, file_id = job.project_id or "", job.payload["file_id"]
        async with ctx.reading() as tx:
            file = await store.find(tx, project_id, file_id)
            sealed = await store.find_source(tx, project_id, file_id)
        if file is None or sealed is None:
            return
        with tempfile.SpooledTemporaryFile(IN_MEMORY_BYTES) as content:
            try:
                await self._download(file, sealed, content)
                fetched = self._recognised(file, content)
            except DeliveryError as error:
                await self._give_up_or_wait(ctx, job, file, error)
                return
            except Unfit as error:
                await self._finish(ctx, job, failed(file, str(error)))
                return
            if await _write(ctx, job, fetched, content):
                await self._finish(ctx, job, fetched)

    async def _download(self, file: StoredFile, sealed: str, content: IO[bytes]) -> None:
        try:
            source = json.loads(self._secrets.decrypt(sealed))
        except DecryptionError:
            raise Unfit("the secret key is gone under which its place was noted") from None
        limit = max_bytes(self._settings, file.type)
        async with self._channels.borrow(source["channel"]) as channel:
            if channel is None:
                raise Unfit("the bot that it was sent to is gone")
            try:
                async with asyncio.timeout(TIMEOUT_S):
                    await channel.fetch_file(source["file_ref"], content, limit)
            except TimeoutError:
                raise DeliveryError(
                    Reason.PLATFORM_UNAVAILABLE, f"it took more than {TIMEOUT_S:g} s"
                ) from None

    def _recognised(self, file: StoredFile, content: IO[bytes]) -> StoredFile:
        """The file with the type of its content. Raises `Unfit`."""
        size = content.seek(0, 2)
        content.seek(0)
        head = content.read(HEAD_BYTES)
        kind, mime_type = recognise(
            self._settings, file.filename, head, size, declared_type=file.type
        )
        name = with_suffix(file.filename, mime_type)
        return replace(
            file, type=kind, mime_type=mime_type, filename=name, size=size, status="ready"
        )

    async def _give_up_or_wait(
        self, ctx: JobContext, job: Job, file: StoredFile, error: DeliveryError
    ) -> None:
        if error.reason in _FOR_GOOD:
            await self._finish(ctx, job, failed(file, error.text))
            return
        asked_to_wait = error.reason is Reason.RATE_LIMITED
        age_ms = self._clock.now_ms() - job.created_at_ms
        if job.attempts >= MAX_ATTEMPTS or (asked_to_wait and age_ms > PATIENCE_MS):
            await self._finish(ctx, job, failed(file, error.text))
            return
        after_s = error.retry_after_s if asked_to_wait else None
        raise Retry(after_s or _BACKOFF(job.attempts), error.text, counts=not asked_to_wait)

    async def _finish(self, ctx: JobContext, job: Job, file: StoredFile) -> None:
        async with ctx.completing(job) as tx:
            if await store.finish(tx, file):
                await self._on_fetched(tx, file)


async def _write(ctx: JobContext, job: Job, file: StoredFile, content: IO[bytes]) -> bool:
    """Stores the content if the file is still pending; otherwise returns False."""
    content.seek(0)
    number = 0
    while number == 0 or number * store.CHUNK_BYTES < file.size:
        async with ctx.holding(job) as tx:
            if not await store.lock_pending(tx, file.project_id, file.file_id):
                return False
            if number == 0:
                # Chunks of an earlier attempt that was killed.
                await store.delete_chunks(tx, file.project_id, file.file_id)
            for _ in range(CHUNKS_AT_ONCE):
                if not (chunk := content.read(store.CHUNK_BYTES)):
                    break
                await store.insert_chunk(tx, file.project_id, file.file_id, number, chunk)
                number += 1
    return True
