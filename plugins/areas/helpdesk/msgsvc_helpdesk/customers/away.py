"""The message to customers who write while the desk is closed."""

from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.i18n import in_language
from msgsvc_helpdesk import store
from msgsvc_helpdesk.models import Ticket
from msgsvc_helpdesk.service_levels.business_hours import BusinessHours
from msgsvc_helpdesk.service_levels.desk_hours import DeskHours
from msgsvc_helpdesk.service_levels.hours_models import business_hours


class AwayMessages:
    """What customers of all projects are told outside business hours."""

    def __init__(self, *, clock: Clock, hours: DeskHours, default_lang: str) -> None:
        self._clock = clock
        self._hours = hours
        self._default_lang = default_lang

    async def claim(self, tx: Tx, ticket: Ticket, lang: str) -> str | None:
        """The text for the customer of a locked ticket who has just written; None while the desk is open,
        if the project has no text, or if this ticket has had it since the desk closed."""
        settings = await self._hours.settings(tx, ticket.project_id)
        if settings.away_message is None:
            return None
        hours, now_ms = business_hours(settings), self._clock.now_ms()
        if hours.is_open(now_ms) or not is_due(hours, ticket.away_told_at_ms, now_ms):
            return None
        # Not `updated_at_ms`: nobody did anything.
        told = {"away_told_at_ms": now_ms}
        await store.update(tx, ticket.project_id, ticket.ticket_id, told)
        return in_language(settings.away_message, lang, self._default_lang)


def is_due(hours: BusinessHours, told_at_ms: int | None, now_ms: int) -> bool:
    """Whether the desk, which is closed now, has been open since it was told that it is closed."""
    if told_at_ms is None:
        return True
    opened_ms = hours.next_opening(told_at_ms)
    return opened_ms is not None and opened_ms < now_ms
