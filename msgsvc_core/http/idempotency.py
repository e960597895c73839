"""`Idempotency-Key`: the effect and the stored answer commit together (decision 0075)."""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from msgsvc_core.api.envelope import envelope
from msgsvc_core.config.settings import Settings
from msgsvc_core.db import Database, LockTimeout, Tx, UniqueViolation, WriteBatch, retry_on_deadlock
from msgsvc_core.db.retention import RetentionRule
from msgsvc_core.db.sql import array_param, in_array
from msgsvc_core.jobs.contract import JobContext, Stopping
from msgsvc_core.kernel.clock import HOUR_MS, Clock
from msgsvc_core.kernel.errors import (
    ApiError,
    IdempotencyConflict,
    SubscriberNotFound,
    TooEarly,
    ValidationFailed,
)
from msgsvc_core.kernel.values import value_object
from msgsvc_core.security.sealed import SealedColumn
from msgsvc_core.security.secret_box import DecryptionError, SecretBox

#: Characters of a key (decision 0075).
_KEY = re.compile(r"[A-Za-z0-9_-]{8,128}")

#: Seconds for which a request waits for the first one of its key.
WAIT_S = 5.0

#: Seconds between two tries to claim a key that another process is just writing.
RETRY_S = 0.25

#: Stored answers that are looked through at a time: reading an encrypted one takes some 50 µs.
FORGET_AT_ONCE = 200

#: What the keyed hashes of requests are for.
PURPOSE = "idempotency"

#: Prefix of a body that is stored unencrypted.
_READABLE = "{"

#: Statuses that are not stored although they are below 500: nothing happened, so the client may try
#: again with the same key. Whether a request's form is refused by its schema or by its handler is none of
#: the client's business, so neither's 400 is stored, nor 413 (decision 0075).
NOT_STORED = frozenset({400, 401, 402, 403, 404, 413, 425, 429})


@value_object
class StoredAnswer:
    """Status and JSON text of an answer, and whether it was given before."""

    status: int
    body: str
    replayed: bool = False
    #: Whether the body must not be readable in the database.
    is_secret: bool = True


SEALED = SealedColumn(
    table="core_idempotency",
    column="body",
    key=("project_id", "key"),
    bound_to=("project_id", "key"),
    holds="{count} stored response(s) of Idempotency-Keys",
    if_lost="nothing: a repeated request is refused until the response expires, within a day",
    is_lasting=False,
)


def retention_rule(*, hours: int) -> RetentionRule:
    """Answers are kept for so long."""
    return RetentionRule("core_idempotency", "created_at_ms", hours * HOUR_MS)


T = TypeVar("T", Tx, WriteBatch)
Work = Callable[[T], Awaitable[StoredAnswer]]
ToAnswer = Callable[[ApiError], StoredAnswer]


class _KeyLock:
    """A key's lock in this process, dropped with its last user."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0


class Idempotency:
    """Runs a request's work at most once for each idempotency key of a project."""

    def __init__(self, db: Database, clock: Clock, secrets: SecretBox, *, keep_hours: int) -> None:
        self._db = db
        # An answer may hold a secret that is shown once, so answers are encrypted at rest.
        self._secrets = secrets
        self._clock = clock
        self._keep_ms = keep_hours * HOUR_MS
        self._running: dict[tuple[str, str], _KeyLock] = {}

    async def run(
        self,
        project_id: str,
        key: str,
        fingerprints: Sequence[str],
        work: Work[Tx],
        to_answer: ToAnswer,
    ) -> StoredAnswer:
        """The answer of `work`, or the stored one if the key was used for the same request.

        `to_answer` renders an error of `work` that is stored like a success; its effects are undone,
        unless the error keeps its writes.
        Raises `IdempotencyConflict` for another request, `TooEarly` while the first one runs.
        """
        # What is waited for one another and for the database, together.
        until_s = self._db.write_deadline()

        async def answered() -> StoredAnswer:
            async with self._db.transaction(until_s=until_s) as tx:
                await tx.wait_for_locks(WAIT_S)
                if await self._reserve(tx, project_id, key, fingerprints):
                    answer = await self._work(tx, work, to_answer)
                    await self._store(tx, project_id, key, answer)
                    return answer
                return await self._replay(tx, project_id, key, fingerprints)

        async with self._alone(project_id, key):
            try:
                return await retry_on_deadlock(answered)
            except LockTimeout as error:
                raise _still_running() from error

    async def run_grouped(
        self,
        project_id: str,
        key: str,
        fingerprints: Sequence[str],
        work: Work[WriteBatch],
        to_answer: ToAnswer,
    ) -> StoredAnswer:
        """Like `run`, for work that only adds to a unit.

        The work is done before anybody looks at the key: its effect is the unit, and that is written
        only if the key's row is new. So the usual case, a key never used, takes no question of its own.
        """
        until_s = self._db.write_deadline()
        async with self._alone(project_id, key):
            waited_until = asyncio.get_running_loop().time() + WAIT_S
            while True:
                try:
                    unit, answer = await self._prepare(work, to_answer)
                except ApiError:
                    # What was answered before holds, whatever has changed since.
                    if known := await self.recall(project_id, key, fingerprints):
                        return known
                    raise
                unit.require_new(
                    "core_idempotency",
                    {
                        "project_id": project_id,
                        "key": key,
                        "fingerprint": fingerprints[0],
                        "created_at_ms": self._clock.now_ms(),
                        "status": answer.status,
                        "body": self._sealed(project_id, key, answer),
                    },
                    key=("project_id", "key"),
                )
                try:
                    await self._db.write(unit, until_s=until_s)
                except UniqueViolation:
                    async with self._db.transaction(until_s=until_s) as tx:
                        if not await self._delete_if_expired(tx, project_id, key):
                            return await self._replay(tx, project_id, key, fingerprints)
                except LockTimeout:
                    # Another process is just writing the same key.
                    if asyncio.get_running_loop().time() > waited_until:
                        raise _still_running() from None
                    # Each try holds up the batch it is in for a moment.
                    await asyncio.sleep(RETRY_S)
                else:
                    return answer

    async def recall(
        self, project_id: str, key: str, fingerprints: Sequence[str]
    ) -> StoredAnswer | None:
        """The stored answer of a request that can't be worked on now; None for a key that is free.

        Raises `IdempotencyConflict` if the key was used for another request.
        """
        async with self._db.read() as tx:
            oldest_ms = self._clock.now_ms() - self._keep_ms
            known = await tx.fetch_val(
                "SELECT COUNT(*) AS known FROM core_idempotency WHERE project_id = :project_id"
                " AND key = :key AND created_at_ms >= :oldest_ms",
                {"project_id": project_id, "key": key, "oldest_ms": oldest_ms},
            )
            return await self._replay(tx, project_id, key, fingerprints) if known else None

    async def _prepare(
        self, work: Work[WriteBatch], to_answer: ToAnswer
    ) -> tuple[WriteBatch, StoredAnswer]:
        """What is to be written, and the answer; an error that is stored like one has no effect."""
        unit = WriteBatch()
        try:
            return unit, await work(unit)
        except ApiError as error:
            return WriteBatch(), to_answer(_storable(error))

    @asynccontextmanager
    async def _alone(self, project_id: str, key: str) -> AsyncIterator[None]:
        """Keeps requests of one key apart in this process; the row does so across processes."""
        gate = self._running.setdefault((project_id, key), _KeyLock())
        gate.users += 1
        try:
            if gate.users == 1:
                await gate.lock.acquire()
            else:
                try:
                    async with asyncio.timeout(WAIT_S):
                        await gate.lock.acquire()
                except TimeoutError:
                    raise _still_running() from None
            try:
                yield
            finally:
                gate.lock.release()
        finally:
            gate.users -= 1
            if not gate.users:
                del self._running[project_id, key]

    async def _reserve(
        self, tx: Tx, project_id: str, key: str, fingerprints: Sequence[str]
    ) -> bool:
        await self._delete_if_expired(tx, project_id, key)
        return bool(
            await tx.execute(
                "INSERT INTO core_idempotency (project_id, key, fingerprint, created_at_ms)"
                " VALUES (:project_id, :key, :fingerprint, :now_ms) ON CONFLICT DO NOTHING",
                {
                    "project_id": project_id,
                    "key": key,
                    "fingerprint": fingerprints[0],
                    "now_ms": self._clock.now_ms(),
                },
            )
        )

    async def _delete_if_expired(self, tx: Tx, project_id: str, key: str) -> bool:
        return bool(
            await tx.execute(
                "DELETE FROM core_idempotency WHERE project_id = :project_id AND key = :key"
                " AND created_at_ms < :oldest_ms",
                {
                    "project_id": project_id,
                    "key": key,
                    "oldest_ms": self._clock.now_ms() - self._keep_ms,
                },
            )
        )

    async def _work(
        self,
        tx: Tx,
        work: Work[Tx],
        to_answer: ToAnswer,
    ) -> StoredAnswer:
        try:
            async with tx.savepoint():
                return await _kept(tx, work, to_answer)
        except ApiError as error:
            return to_answer(_storable(error))

    async def _store(self, tx: Tx, project_id: str, key: str, answer: StoredAnswer) -> None:
        await tx.execute(
            "UPDATE core_idempotency SET status = :status, body = :body"
            " WHERE project_id = :project_id AND key = :key",
            {
                "project_id": project_id,
                "key": key,
                "status": answer.status,
                "body": self._sealed(project_id, key, answer),
            },
        )

    def _sealed(self, project_id: str, key: str, answer: StoredAnswer) -> str:
        """The body as stored: readable JSON starts with JSON's own characters, an encrypted token never
        does."""
        if not answer.is_secret and answer.body.startswith(_READABLE):
            return answer.body
        return self._secrets.encrypt(answer.body, _row(project_id, key))

    async def _replay(
        self, tx: Tx, project_id: str, key: str, fingerprints: Sequence[str]
    ) -> StoredAnswer:
        row = await tx.fetch_one(
            "SELECT fingerprint, status, body FROM core_idempotency"
            " WHERE project_id = :project_id AND key = :key",
            {"project_id": project_id, "key": key},
        )
        if row is None:
            raise _still_running()
        if row["fingerprint"] not in fingerprints:
            raise IdempotencyConflict(
                "used before with another method, path or body", field="Idempotency-Key"
            )
        body = _unsealed(self._secrets, row["body"], _row(project_id, key))
        return StoredAnswer(row["status"], body, replayed=True)


async def erase_stored_answers(
    ctx: JobContext, project_id: str, subscriber_id: str, secrets: SecretBox, settings: Settings
) -> None:
    """Replaces stored responses about an erased person: a replay then reports that the subscriber does not
    exist. Raises `Stopping` when the runner shuts down."""
    after = ""
    gone = SubscriberNotFound("the subscriber of this answer was erased")
    body = bytes(envelope(gone, settings.errors_url).body).decode()
    while True:
        if ctx.stopping:
            raise Stopping
        async with ctx.reading() as tx:
            rows = await tx.fetch_all(
                "SELECT key, body FROM core_idempotency WHERE project_id = :project_id"
                " AND key > :after AND body IS NOT NULL ORDER BY key LIMIT :most",
                {"project_id": project_id, "after": after, "most": FORGET_AT_ONCE},
            )
        if not rows:
            return
        keys = [
            row["key"]
            for row in rows
            if _mentions(secrets, row["body"], _row(project_id, row["key"]), subscriber_id)
        ]
        if keys:
            async with ctx.transaction() as tx:
                await tx.execute(
                    "UPDATE core_idempotency SET status = :status, body = :body"
                    f" WHERE project_id = :project_id AND {in_array('key', 'keys', tx.dialect)}",
                    {
                        "status": gone.status,
                        "body": body,
                        "project_id": project_id,
                        "keys": array_param(keys, tx.dialect),
                    },
                )
        after = rows[-1]["key"]


def _mentions(secrets: SecretBox, stored: str, row: tuple[str, ...], text: str) -> bool:
    try:
        return text in _unsealed(secrets, stored, row)
    except DecryptionError:
        # Nobody can read it, and so it is no trace of anybody.
        return False


def _unsealed(secrets: SecretBox, stored: str, row: tuple[str, ...]) -> str:
    return stored if stored.startswith(_READABLE) else secrets.decrypt(stored, row)


def _row(project_id: str, key: str) -> tuple[str, ...]:
    """What a stored answer is bound to."""
    return "core_idempotency.body", project_id, key


def check_key(key: str, headers: Iterable[tuple[bytes, bytes]]) -> str:
    """Raises `ValidationFailed` for a malformed key, and where `headers` name another one too: which of them
    makes the request one, nobody knows."""
    sent = key.encode("latin-1")
    if any(name == b"idempotency-key" and value != sent for name, value in headers):
        raise ValidationFailed("was sent twice, with different values", field="Idempotency-Key")
    if not _KEY.fullmatch(key):
        raise ValidationFailed(
            "must be 8-128 characters of A-Z a-z 0-9 _ -", field="Idempotency-Key"
        )
    return key


def fingerprints_of(secrets: SecretBox, method: str, path: str, body: bytes) -> list[str]:
    """What must be equal for a request to be the same one, under each secret key, the current first.

    Keyed, for a body may hold what is short enough to be guessed, such as a one-time code.
    """
    digest = hashlib.sha256(body).hexdigest()
    return [f"{method} {path} {hashed}" for hashed in secrets.keyed_hashes(PURPOSE, digest)]


async def _kept(tx: Tx, work: Work[Tx], to_answer: ToAnswer) -> StoredAnswer:
    """The answer of `work`; an error that keeps its writes is one too."""
    try:
        return await work(tx)
    except ApiError as error:
        if not error.keeps_writes:
            raise
        return to_answer(_storable(error))


def _storable(error: ApiError) -> ApiError:
    """Raises an error that is not stored. One that keeps its writes, such as a wrong code that was
    counted, had an effect, which must not be repeated."""
    if error.status >= 500 or (error.status in NOT_STORED and not error.keeps_writes):
        raise error
    return error


def _still_running() -> TooEarly:
    return TooEarly("the first request with this Idempotency-Key is still running", retry_after_s=1)
