"""`Idempotency-Key`: the effect and the stored answer commit together (API, "Idempotency")."""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from msgsvc_core.clock import Clock
from msgsvc_core.db import Database, LockTimeout, Tx
from msgsvc_core.errors import ApiError, IdempotencyConflict, TooEarly, ValidationFailed
from msgsvc_core.security.secret_box import SecretBox

#: Characters of a key (interface spec, section 4).
_KEY = re.compile(r"[A-Za-z0-9_-]{8,128}")

#: Seconds for which a request waits for the first one of its key.
WAIT_S = 5.0

#: Statuses that are not stored although they are below 500: nothing happened, so the client may try
#: again with the same key.
_NOT_STORED = frozenset({401, 403, 425, 429})


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """Status and JSON text of an answer, and whether it was given before."""

    status: int
    body: str
    replayed: bool = False


class _Gate:
    """A key's lock in this process, dropped with its last user."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0


class Idempotency:
    """Runs a request's work at most once for each key of a project."""

    def __init__(self, db: Database, clock: Clock, secrets: SecretBox, *, keep_hours: int) -> None:
        self._db = db
        # An answer may hold a secret that is shown once, so answers are encrypted at rest.
        self._secrets = secrets
        self._clock = clock
        self._keep_ms = keep_hours * 3600 * 1000
        self._running: dict[tuple[str, str], _Gate] = {}

    async def run(
        self,
        project_id: str,
        key: str,
        fingerprint: str,
        work: Callable[[Tx], Awaitable[StoredAnswer]],
        to_answer: Callable[[ApiError], StoredAnswer],
    ) -> StoredAnswer:
        """The answer of `work`, or the stored one if the key was used for the same request.

        `to_answer` renders an error of `work` that is stored like a success; its effects are undone.
        Raises `IdempotencyConflict` for another request, `TooEarly` while the first one runs.
        """
        async with self._alone(project_id, key):
            try:
                async with self._db.transaction() as tx:
                    await tx.wait_for_locks(WAIT_S)
                    if await self._reserve(tx, project_id, key, fingerprint):
                        answer = await self._work(tx, work, to_answer)
                        await self._store(tx, project_id, key, answer)
                        return answer
                    return await self._replay(tx, project_id, key, fingerprint)
            except LockTimeout as error:
                raise _still_running() from error

    @asynccontextmanager
    async def _alone(self, project_id: str, key: str) -> AsyncIterator[None]:
        """Keeps requests of one key apart in this process; the row does so across processes."""
        gate = self._running.setdefault((project_id, key), _Gate())
        gate.users += 1
        try:
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

    async def _reserve(self, tx: Tx, project_id: str, key: str, fingerprint: str) -> bool:
        now_ms = self._clock.now_ms()
        params = {"project_id": project_id, "key": key}
        await tx.execute(
            "DELETE FROM core_idempotency WHERE project_id = :project_id AND key = :key"
            " AND created_at_ms < :oldest_ms",
            {**params, "oldest_ms": now_ms - self._keep_ms},
        )
        return bool(
            await tx.execute(
                "INSERT INTO core_idempotency (project_id, key, fingerprint, created_at_ms)"
                " VALUES (:project_id, :key, :fingerprint, :now_ms) ON CONFLICT DO NOTHING",
                {**params, "fingerprint": fingerprint, "now_ms": now_ms},
            )
        )

    async def _work(
        self,
        tx: Tx,
        work: Callable[[Tx], Awaitable[StoredAnswer]],
        to_answer: Callable[[ApiError], StoredAnswer],
    ) -> StoredAnswer:
        try:
            async with tx.savepoint():
                return await work(tx)
        except ApiError as error:
            if error.status >= 500 or error.status in _NOT_STORED:
                raise
            return to_answer(error)

    async def _store(self, tx: Tx, project_id: str, key: str, answer: StoredAnswer) -> None:
        await tx.execute(
            "UPDATE core_idempotency SET status = :status, body = :body"
            " WHERE project_id = :project_id AND key = :key",
            {
                "project_id": project_id,
                "key": key,
                "status": answer.status,
                "body": self._secrets.encrypt(answer.body),
            },
        )

    async def _replay(self, tx: Tx, project_id: str, key: str, fingerprint: str) -> StoredAnswer:
        row = await tx.fetch_one(
            "SELECT fingerprint, status, body FROM core_idempotency"
            " WHERE project_id = :project_id AND key = :key",
            {"project_id": project_id, "key": key},
        )
        if row is None:
            raise _still_running()
        if row["fingerprint"] != fingerprint:
            raise IdempotencyConflict(
                "Idempotency-Key: used before with another method, path or body"
            )
        return StoredAnswer(row["status"], self._secrets.decrypt(row["body"]), replayed=True)


def check_key(key: str) -> str:
    """Raises `ValidationFailed` for a malformed key."""
    if not _KEY.fullmatch(key):
        raise ValidationFailed("Idempotency-Key: must be 8-128 characters of A-Z a-z 0-9 _ -")
    return key


def fingerprint_of(method: str, path: str, body: bytes) -> str:
    """What must be equal for a request to be the same one."""
    digest = hashlib.sha256(body).hexdigest()
    return f"{method} {path} {digest}"


def _still_running() -> TooEarly:
    return TooEarly("the first request with this Idempotency-Key is still running", retry_after_s=1)
