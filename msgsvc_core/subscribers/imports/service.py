"""Imports of people: taken from a file, run slice by slice, and reported."""

import asyncio
import zlib
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Mapping, Sequence

from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.db import Database, Tx
from msgsvc_core.db.retention import RetentionRule
from msgsvc_core.events import Events
from msgsvc_core.jobs import Job, JobContext, JobQueue, JobSpec, NewJob
from msgsvc_core.jobs.contract import BULK, Stopping
from msgsvc_core.kernel.clock import DAY_MS, Clock
from msgsvc_core.kernel.csv import BOM, escape_formula, lines
from msgsvc_core.kernel.errors import Conflict, NotFound, PayloadTooLarge
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.kernel.json import from_json, to_json
from msgsvc_core.security import SecretBox
from msgsvc_core.security.sealed import SealedColumn
from msgsvc_core.subscribers.imports import store
from msgsvc_core.subscribers.imports.models import (
    Ended,
    ImportCode,
    ImportFinished,
    ImportNote,
    ImportOptions,
    ImportParts,
    ImportRow,
    PeopleImport,
    PreparedImport,
)
from msgsvc_core.subscribers.imports.parsing import PeopleFile, read_mapping
from msgsvc_core.subscribers.imports.rows import RowImporter

JOB = "subscriber.import"

FINISHED = "import.finished"

#: Files that a process reads at a time: each takes its bytes of memory twice.
READ_AT_ONCE = 2

#: Slices after which the job goes to the end of its lane, so that others get their turn.
STEPS = 50

#: Slices whose notes are read, and sent, at a time.
CHUNK = 20

REPORT_COLUMNS = ("line", "outcome", "reason")

_KEY = ("project_id", "import_id", "place")

#: The rows of files, until they are taken in.
SLICES = SealedColumn(
    table="core_import_slices",
    column="content",
    key=_KEY,
    bound_to=_KEY,
    holds="{count} slice(s) of imports that run",
    if_lost="their imports fail; upload the files again",
    is_lasting=False,
)

#: The lines of reports, in which there may be what a file had in its cells.
NOTES = SealedColumn(
    table="core_import_notes",
    column="content",
    key=_KEY,
    bound_to=_KEY,
    holds="{count} part(s) of reports of imports",
    if_lost="the reports can't be read any more; the imports are done",
)


def retention_rule(*, import_days: int) -> RetentionRule:
    """Imports go with all that belongs to them."""
    return RetentionRule("core_imports", "created_at_ms", import_days * DAY_MS)


class PeopleImports:
    """`service.imports`. A file has at most `most_rows` and `most_bytes`; one import of a project runs at a
    time.

    The rows are stored encrypted, in slices. A slice is deleted in the transaction that takes in its rows, so
    that no crash loses or doubles one, and nothing of the file is left at the end.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        jobs: JobQueue,
        events: Events,
        secrets: SecretBox,
        rows: RowImporter,
        most_rows: int,
        most_bytes: int,
    ) -> None:
        self._clock = clock
        self._jobs = jobs
        self._events = events
        self._secrets = secrets
        self._rows = rows
        self._most_rows = most_rows
        self.most_bytes = most_bytes
        self._reading = asyncio.Semaphore(READ_AT_ONCE)

    @property
    def spec(self) -> JobSpec:
        return JobSpec(JOB, self.run, on_dead=self._give_up)

    async def prepare(self, project_id: str, content: bytes, query: ImportParts) -> PreparedImport:
        """Reads and checks a file, before and outside the transaction of `start`: a large one takes seconds.

        Raises `ValidationFailed` for one that can't be read, and `PayloadTooLarge`.
        """
        if len(content) > self.most_bytes:
            raise PayloadTooLarge(
                "no file may be larger than {limit} bytes", field="file", limit=self.most_bytes
            )
        if query.channel is not None:
            self._rows.check_channel(project_id, query.channel)
        mapping = read_mapping(query.mapping)
        async with self._reading:
            return await asyncio.to_thread(self._prepared, project_id, content, mapping, query)

    async def start(self, tx: Tx, prepared: PreparedImport) -> PeopleImport:
        """Begins to take in a file. Raises `Conflict` while another import of the project runs."""
        new, project_id = prepared.new, prepared.new.project_id
        await tx.lock(f"imports of {project_id}")
        if await store.has_running(tx, project_id):
            raise Conflict("another import is running; wait for its end, or cancel it")
        await store.insert(tx, new)
        await store.insert_slices(tx, project_id, new.import_id, prepared.slices)
        job = NewJob(JOB, {"import_id": new.import_id}, project_id=project_id, priority=BULK)
        await self._jobs.enqueue(tx, job)
        return new

    async def page(self, tx: Tx, project_id: str, query: PageQuery) -> list[PeopleImport]:
        """Newest first; one more than `query.limit` if there are more."""
        return await store.list_page(tx, project_id, query.begin("imp"), query.fetch_limit)

    async def get(self, tx: Tx, project_id: str, import_id: str) -> PeopleImport:
        """Raises `NotFound`, for another project's as well."""
        found = await store.find(tx, project_id, import_id)
        if found is None:
            raise NotFound("there is no import {import_id!r}", import_id=import_id)
        return found

    async def cancel(self, tx: Tx, project_id: str, import_id: str) -> PeopleImport:
        """Ends one after the slice that it is at; what is done stays, the other rows are deleted. Raises
        `Conflict` if it has ended."""
        found = await self.get(tx, project_id, import_id)
        if not await self._finish(tx, project_id, import_id, "cancelled"):
            raise Conflict("it is {status}", field="status", status=found.status)
        return await self.get(tx, project_id, import_id)

    async def report(self, db: Database, project_id: str, import_id: str) -> AsyncIterator[bytes]:
        """The report as CSV: every row that was rejected or needs attention. Raises
        `NotFound` before the first piece."""
        async with db.read() as tx:
            await self.get(tx, project_id, import_id)
        text, place = BOM + lines([REPORT_COLUMNS]), 0
        while True:
            # A connection for the query alone: the client may read slowly.
            async with db.read() as tx:
                found = await store.notes_after(tx, project_id, import_id, place, CHUNK)
            for place, sealed in found:
                opened = self._secrets.decrypt(sealed, _row_of(NOTES, project_id, import_id, place))
                text += lines(_cells(from_json(opened)))
            if text:
                yield text.encode()
            if len(found) < CHUNK:
                return
            text = ""

    async def run(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """Goes on where the last slice ended, in any process; each slice is a transaction."""
        for job in jobs:
            for _ in range(STEPS):
                if ctx.stopping:
                    raise Stopping
                if not await self._step(ctx, job):
                    break
            else:
                async with ctx.rescheduling(job, after_s=0, counts=False):
                    pass

    async def _step(self, ctx: JobContext, job: Job) -> bool:
        """Takes in the next slice; False if there is none."""
        project_id, import_id = job.project_id or "", job.payload["import_id"]
        async with ctx.holding(job) as tx:
            # First, so that a cancellation is before the slice or after it.
            work = await store.lock(tx, project_id, import_id)
            if work is None or work.status != "running":
                return False
            following = await store.next_slice(tx, project_id, import_id)
            if following is None:
                await self._finish(tx, project_id, import_id, "completed")
                return False
            place, sealed = following
            opened = self._secrets.decrypt(sealed, _row_of(SLICES, project_id, import_id, place))
            rows = _unpacked(opened)
            counts, notes = await self._rows.take_in(tx, work, rows)
            await store.finish_slice(
                tx, project_id, import_id, place, counts, self._sealed_notes(work, place, notes)
            )
            await ctx.progressed(tx, job)
            return True

    async def _give_up(self, tx: Tx, job: Job, _error: str) -> None:
        key = job.project_id or "", job.payload["import_id"]
        await self._finish(tx, *key, "failed", "job_failed")

    async def _finish(
        self, tx: Tx, project_id: str, import_id: str, status: Ended, code: ImportCode | None = None
    ) -> bool:
        """Ends one that runs and emits that, once; False if it has ended."""
        now_ms = self._clock.now_ms()
        if not await store.finish(tx, project_id, import_id, status, now_ms, code):
            return False
        ended = await self.get(tx, project_id, import_id)
        fields = {name: getattr(ended, name) for name in ImportFinished.model_fields}
        await self._events.emit(tx, project_id, FINISHED, fields)
        return True

    def _prepared(
        self, project_id: str, content: bytes, mapping: Mapping[str, str], query: ImportParts
    ) -> PreparedImport:
        file = PeopleFile(content, mapping, most=self._most_rows)
        import_id, total = new_id("imp"), 0
        slices: list[tuple[int, str]] = []
        for rows in file.slices():
            total += len(rows)
            place = rows[0].line
            sealed_for = _row_of(SLICES, project_id, import_id, place)
            slices.append((place, self._secrets.encrypt(_packed(rows), sealed_for)))
        new = PeopleImport(
            project_id=project_id,
            import_id=import_id,
            status="running",
            dry_run=query.dry_run,
            columns=file.columns,
            ignored=file.ignored,
            options=ImportOptions(
                channel=query.channel, consent=query.consent, same_bot=query.same_bot
            ),
            total=total,
            added=0,
            updated=0,
            unchanged=0,
            refused=0,
            must_start=0,
            code=None,
            created_at_ms=self._clock.now_ms(),
            finished_at_ms=None,
        )
        return PreparedImport(new, tuple(slices))

    def _sealed_notes(
        self, work: PeopleImport, place: int, notes: Sequence[ImportNote]
    ) -> str | None:
        if not notes:
            return None
        text = to_json([[each.line, each.outcome, each.reason] for each in notes])
        return self._secrets.encrypt(text, _row_of(NOTES, work.project_id, work.import_id, place))


def _row_of(column: SealedColumn, project_id: str, import_id: str, place: int) -> tuple[str, ...]:
    return column.name, project_id, import_id, str(place)


def _packed(rows: Sequence[ImportRow]) -> str:
    """A slice as it is encrypted: a tenth of its text, so that storing a large file takes little time, for
    which SQLite's other writers wait."""
    text = to_json([[each.line, each.cells] for each in rows])
    return b64encode(zlib.compress(text.encode(), level=1)).decode()


def _unpacked(packed: str) -> list[ImportRow]:
    # JSON is of a release that stored it as it is.
    text = packed if packed.startswith("[") else zlib.decompress(b64decode(packed)).decode()
    return [ImportRow(line=line, cells=cells) for line, cells in from_json(text)]


def _cells(notes: Sequence[Sequence[object]]) -> list[tuple[str, ...]]:
    return [
        (str(line), str(outcome), escape_formula(str(reason))) for line, outcome, reason in notes
    ]
