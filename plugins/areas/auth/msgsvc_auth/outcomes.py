"""How recent sign-ins went, from the sessions themselves: nothing is counted for it beside them."""

from statistics import median

from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import DAY_MS, Clock
from msgsvc_core.kernel.values import value_object

#: The latest sessions that are looked at.
MOST_LOOKED_AT = 1000


@value_object
class Outcomes:
    """Of the sign-ins of the last 24 hours, at most `MOST_LOOKED_AT`, those that have ended.

    `seconds` is the median from the session's start to the confirmation; None without a confirmed one.
    """

    ended: int
    confirmed: int
    seconds: float | None


class SignInOutcomes:
    """Of all projects."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock

    async def recent(self, tx: Tx, project_id: str) -> Outcomes:
        now_ms = self._clock.now_ms()
        rows = await tx.fetch_all(
            "SELECT created_at_ms, confirmed_at_ms, status, expires_at_ms FROM auth_sessions"
            " WHERE project_id = :project_id AND created_at_ms >= :since_ms"
            " ORDER BY created_at_ms DESC, session_id DESC LIMIT :most",
            {"project_id": project_id, "since_ms": now_ms - DAY_MS, "most": MOST_LOOKED_AT},
        )
        waits = [row["status"] == "pending" and row["expires_at_ms"] > now_ms for row in rows]
        taken_ms = [
            row["confirmed_at_ms"] - row["created_at_ms"]
            for row in rows
            if row["confirmed_at_ms"] is not None
        ]
        return Outcomes(
            ended=len(rows) - sum(waits),
            confirmed=len(taken_ms),
            seconds=median(taken_ms) / 1000 if taken_ms else None,
        )
