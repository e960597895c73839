"""The inbox: a project's tickets, filtered and counted."""

from msgsvc_core.api.pagination import next_cursor
from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import HOUR_MS, MINUTE_MS, Clock
from msgsvc_core.kernel.errors import BadRequest
from msgsvc_core.kernel.values import value_object, whole_number
from msgsvc_helpdesk import inbox_store, store
from msgsvc_helpdesk.models import InboxQuery, Ticket
from msgsvc_helpdesk.service_levels.clocks import SlaClocks
from msgsvc_helpdesk.settings import HelpdeskSettings

#: Beyond it tickets are "many": a page never counts them all.
MOST_COUNTED = 100

#: Milliseconds after which an unchanged list is rendered again, because it shows waiting times.


@value_object
class Counts:
    """Number of waiting tickets, each at most `MOST_COUNTED`."""

    open: int
    pending: int
    snoozed: int
    unassigned: int
    mine: int
    overdue: int
    #: Of any status, past the due time of a target.
    missed: int


class Inbox:
    """The inboxes of all projects."""

    def __init__(
        self,
        *,
        clock: Clock,
        sla: SlaClocks,
        settings: HelpdeskSettings,
    ) -> None:
        self._clock = clock
        self._sla = sla
        self._settings = settings

    async def page(
        self, tx: Tx, project_id: str, query: InboxQuery
    ) -> tuple[list[Ticket], str | None]:
        """A page, what was said last first unless `sort` says otherwise, and the cursor of the next. Raises
        `BadRequest`."""
        due = await self._sla.due_within(tx, project_id, query.due)
        if query.sort != "activity":
            listed = query.as_list(query.sort)
            return listed.cut(
                await store.list_page(
                    tx, project_id, listed, listed.fetch_limit, due, merged=False
                ),
                listed.place_of,
            )
        after = _read_after(query.after)
        found = await inbox_store.list_page(tx, project_id, query, after, query.fetch_limit, due)
        page = found[: query.limit]
        if len(found) <= query.limit:
            return page, None
        return page, next_cursor(f"{page[-1].last_message_at_ms}_{page[-1].ticket_id}")

    async def counts(self, tx: Tx, project_id: str, member_id: str | None) -> Counts:
        """`mine` are those of `member_id`; `overdue` those waiting longer than `unanswered_hours`, or past a
        target."""
        counted = await inbox_store.count_by(
            tx,
            project_id,
            self.overdue_since_ms(),
            self._clock.now_ms(),
            member_id,
            MOST_COUNTED,
        )
        return Counts(**counted)

    async def marker(self, tx: Tx, project_id: str) -> str:
        """Another one as soon as a ticket has changed, and each minute: a cheap question."""
        minute = self._clock.now_ms() // MINUTE_MS
        return f"{await inbox_store.changed_at(tx, project_id)}-{minute}"

    def overdue_since_ms(self) -> int:
        """Customers who have waited since then or earlier are overdue."""
        return self._clock.now_ms() - self._settings.unanswered_hours * HOUR_MS


def _read_after(after: str | None) -> tuple[int, str] | None:
    if after is None:
        return None
    written, _, ticket_id = after.partition("_")
    at_ms = whole_number(written)
    if at_ms is None or not ticket_id:
        raise BadRequest("not one that this service gave", field="cursor")
    return at_ms, ticket_id
