"""Limits of the questions that one person is asked by other plugins."""

from msgsvc_auth import store
from msgsvc_auth.settings import AuthSettings
from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import RateLimitProject
from msgsvc_core.limits import StoredHits

#: Seconds of the window in which questions are counted.
WINDOW_S = 3600


class QuestionLimits:
    """Keeps a person from being worn down until they press Yes (MITRE ATT&CK T1621), and from being flooded.

    Counted in the transaction that asks, as sessions are (decision 0003).
    """

    def __init__(self, *, clock: Clock, settings: AuthSettings) -> None:
        self._clock = clock
        self._hits = StoredHits(clock)
        self._settings = settings

    async def count(self, tx: Tx, project_id: str, subscriber_id: str) -> None:
        """Takes a slot of the subscriber's hour.

        Raises `RateLimitProject`; roll back the transaction then.
        """
        key = f"auth.questions:{project_id}:{subscriber_id}"
        # First, for it makes concurrent questions to the same person wait for each other.
        window = await self._hits.hit(tx, key, self._settings.questions_per_hour, WINDOW_S)
        if not window.allowed:
            raise RateLimitProject(
                "more than {limit} questions to one subscriber in {seconds} s (the setting"
                " auth.{setting})",
                limit=window.limit,
                seconds=WINDOW_S,
                setting="questions_per_hour",
                retry_after_s=window.retry_after_s,
            )
        now_ms, limit = self._clock.now_ms(), self._settings.questions_pending
        ends = await store.list_pending_question_ends(tx, project_id, subscriber_id, now_ms=now_ms)
        if len(ends) >= limit:
            # Whose end leaves a place free.
            free_ms = ends[len(ends) - limit]
            raise RateLimitProject(
                "{limit} questions wait for this subscriber's answer (the setting auth.{setting})",
                limit=limit,
                setting="questions_pending",
                retry_after_s=-((now_ms - free_ms) // 1000),
            )
