"""The SQL that requests of devices and backchannel requests have in common."""

from typing import Literal

from msgsvc_core.db import Tx
from msgsvc_oidc.protocol.polling import POLL_LEEWAY_MS, SLOW_DOWN_S, PolledRequest, PolledStatus

Table = Literal["oidc_device_requests", "oidc_ciba_requests"]

_KEY = "project_id = :project_id AND request_id = :request_id"


async def record_poll(tx: Tx, table: Table, request: PolledRequest, *, now_ms: int) -> int | None:
    """Records a poll of a pending request. None if it came in its time; else the interval in seconds, which
    has grown. Of concurrent polls one is in its time."""
    params = {**_key_of(request), "now_ms": now_ms}
    in_time = await tx.execute(
        f"UPDATE {table} SET polled_at_ms = :now_ms WHERE {_KEY} AND status = 'pending'"
        " AND polled_at_ms + interval_s * 1000 <= CAST(:due_ms AS BIGINT)",
        {**params, "due_ms": now_ms + POLL_LEEWAY_MS},
    )
    if in_time:
        return None
    grown: int | None = await tx.fetch_val(
        f"UPDATE {table} SET polled_at_ms = :now_ms, interval_s = interval_s + {SLOW_DOWN_S}"
        f" WHERE {_KEY} AND status = 'pending' RETURNING interval_s",
        params,
    )
    return request.interval_s if grown is None else grown


async def move(
    tx: Tx, table: Table, request: PolledRequest, before: PolledStatus, after: PolledStatus
) -> bool:
    """Moves a request on. False if it is not in that state any more: of concurrent calls one gets it."""
    return bool(
        await tx.execute(
            f"UPDATE {table} SET status = :after WHERE {_KEY} AND status = :before",
            {**_key_of(request), "before": before, "after": after},
        )
    )


def _key_of(request: PolledRequest) -> dict[str, str]:
    return {"project_id": request.project_id, "request_id": request.request_id}
