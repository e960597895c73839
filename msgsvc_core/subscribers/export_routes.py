"""GET /v1/subscribers/export."""

from msgsvc_core.api.context import Context
from msgsvc_core.api.csv_response import csv_response
from msgsvc_core.api.endpoint import Response, Router
from msgsvc_core.api.exports import Exports
from msgsvc_core.billing import BillingGate
from msgsvc_core.db import Database
from msgsvc_core.kernel.clock import Clock, to_rfc3339
from msgsvc_core.subscribers.contacts.service import VerifiedContacts
from msgsvc_core.subscribers.export import EXAMPLE, to_csv
from msgsvc_core.subscribers.models import SubscriberFilters
from msgsvc_core.subscribers.service import Subscribers

router = Router(area="subscribers")


@router.get(
    "/v1/subscribers/export", holds_connection=False, media_type="text/csv", example=EXAMPLE
)
async def export_subscribers(
    ctx: Context,
    query: SubscriberFilters,
    db: Database,
    exports: Exports,
    subscribers: Subscribers,
    contacts: VerifiedContacts,
    billing: BillingGate,
    clock: Clock,
) -> Response:
    """Streams the project's subscribers as CSV, newest first, for a spreadsheet.

    UTF-8 with a byte order mark, commas, lines that end with CR LF. Tags and permissions are joined by
    commas, attributes are JSON. `phone` and `email` are those that were verified, e.g. by a messenger. A cell
    that a spreadsheet would take for a formula begins with an apostrophe.
    """
    await billing.check_export(ctx.project_id)
    pieces = to_csv(db, subscribers, contacts, ctx.project_id, query)
    day = to_rfc3339(clock.now_ms()).partition("T")[0]
    return await csv_response(exports, ctx.project_id, pieces, f"subscribers-{day}.csv")
