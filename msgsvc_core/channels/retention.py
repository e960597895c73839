"""How long what bots received and asked is kept."""

from msgsvc_core.db.retention import RetentionRule
from msgsvc_core.kernel.clock import HOUR_MS

#: Hours for which ids of updates are kept; Telegram keeps an unfetched update for 24.
UPDATE_HOURS = 48


def retention_rules(*, answer_hours: int) -> list[RetentionRule]:
    """What a chat was asked is open for `answer_hours`."""
    return [
        RetentionRule("core_updates", "received_at_ms", UPDATE_HOURS * HOUR_MS),
        RetentionRule("core_offers", "asked_at_ms", answer_hours * HOUR_MS),
        RetentionRule("core_start_codes", "expires_at_ms"),
    ]
