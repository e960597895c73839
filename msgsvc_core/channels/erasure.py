"""Removes queued system messages to an erased person's chat."""

import json
from collections.abc import Sequence
from typing import Any

from msgsvc_core.channels.outbox import JOB as CALL
from msgsvc_core.db import Tx
from msgsvc_core.db.sql import array_param, in_array
from msgsvc_core.jobs.contract import JobContext


async def erase_calls(ctx: JobContext, lane: str, chat_id: str, before_ms: int) -> None:
    """Removes a lane's jobs that write to a deleted chat, created until `before_ms`."""
    async with ctx.reading() as tx:
        calls = await _find(tx, lane, chat_id, before_ms)
    if calls:
        async with ctx.transaction() as tx:
            await _delete(tx, calls)


async def _find(tx: Tx, lane: str, chat_id: str, before_ms: int) -> list[str]:
    """The ids of jobs by which a bot was to say something in a chat, made until `before_ms`."""
    rows = await tx.fetch_all(
        "SELECT job_id, payload FROM core_jobs WHERE lane = :lane AND state IN ('ready', 'dead')"
        " AND name = :name AND created_at_ms <= :before_ms AND payload LIKE :pattern",
        {"lane": lane, "name": CALL, "before_ms": before_ms, "pattern": f"%{chat_id}%"},
    )
    return [row["job_id"] for row in rows if _chat_of(row["payload"]) == chat_id]


async def _delete(tx: Tx, job_ids: Sequence[str]) -> None:
    """Removes jobs that no runner has claimed."""
    await tx.execute(
        f"DELETE FROM core_jobs WHERE {in_array('job_id', 'ids', tx.dialect)}"
        " AND state IN ('ready', 'dead')",
        {"ids": array_param(job_ids, tx.dialect)},
    )


def _chat_of(payload: str) -> Any:
    return json.loads(payload).get("chat_id")
