"""Retention of updates' ids and of bots' questions."""

from msgsvc_core.db.retention import RetentionRule
from msgsvc_core.kernel.clock import HOUR_MS

#: Hours for which ids of updates are kept; Telegram stores unfetched updates for 24.
UPDATE_HOURS = 48


def retention_rules(*, answer_hours: int) -> list[RetentionRule]:
    """The retention rules; a question in a chat stays open for `answer_hours`."""
    return [
        RetentionRule("core_updates", "received_at_ms", UPDATE_HOURS * HOUR_MS),
        RetentionRule("core_offers", "asked_at_ms", answer_hours * HOUR_MS),
        RetentionRule("core_start_codes", "expires_at_ms"),
    ]
