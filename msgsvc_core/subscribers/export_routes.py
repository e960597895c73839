"""GET /v1/subscribers/export."""

from collections.abc import AsyncIterator

from starlette.responses import StreamingResponse

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Response, Router
from msgsvc_core.clock import to_rfc3339
from msgsvc_core.subscribers.export import to_csv
from msgsvc_core.subscribers.models import SubscriberFilters

router = Router(area="subscribers")


@router.get("/v1/subscribers/export", holds_connection=False, media_type="text/csv")
async def export_subscribers(ctx: Context, query: SubscriberFilters) -> Response:
    """Streams the project's subscribers as CSV, newest first, for a spreadsheet.

    UTF-8 with a byte order mark, commas, lines that end with CR LF. Tags and permissions are joined by
    commas, attributes are JSON. A cell that a spreadsheet would take for a formula begins with an
    apostrophe.
    """
    pieces = to_csv(ctx.service, ctx.project_id, query)
    # What can go wrong at once goes wrong before the answer has begun.
    first = await anext(pieces)
    day = to_rfc3339(ctx.service.clock.now_ms()).partition("T")[0]
    return StreamingResponse(
        _all(first, pieces),
        media_type="text/csv; charset=utf-8",
        headers={
            "Content-Disposition": f'attachment; filename="subscribers-{day}.csv"',
            "Cache-Control": "no-store",
        },
    )


async def _all(first: bytes, others: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in others:
        yield piece
