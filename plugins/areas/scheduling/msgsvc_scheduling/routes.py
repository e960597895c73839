"""/v1/scheduled."""

from collections.abc import Sequence

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Router
from msgsvc_core.kernel.errors import (
    BadRequest,
    Conflict,
    InvalidExternalId,
    MutuallyExclusiveIdentifiers,
    NotFound,
    SubscriberNotFound,
)
from msgsvc_core.mailings.service import Mailings
from msgsvc_scheduling.models import (
    Record,
    ScheduledAnswer,
    ScheduledId,
    ScheduledList,
    ScheduledQuery,
    ScheduleMessageBody,
    UpdateScheduledBody,
)
from msgsvc_scheduling.service import Scheduling

router = Router(
    area="scheduling",
    description="Messages that are sent later, once or repeatedly.",
    group="sending",
)


@router.post(
    "/v1/scheduled",
    status=201,
    errors=(
        Conflict,
        InvalidExternalId,
        MutuallyExclusiveIdentifiers,
        NotFound,
        SubscriberNotFound,
    ),
)
async def schedule_message(
    ctx: Context, body: ScheduleMessageBody, scheduling: Scheduling, mailings: Mailings
) -> ScheduledAnswer:
    """Schedules a message to one subscriber or an audience.

    It is validated now, and again at its time, when the template is rendered and the audience is
    resolved. `scheduled.sent` is emitted when it is queued for delivery.
    """
    return await _answer(ctx, mailings, await scheduling.create(ctx.tx, ctx.project_id, body))


@router.get("/v1/scheduled", errors=(BadRequest,))
async def list_scheduled(
    ctx: Context, query: ScheduledQuery, scheduling: Scheduling, mailings: Mailings
) -> ScheduledList:
    """Lists the project's scheduled messages, newest first."""
    found = await scheduling.page(
        ctx.tx, ctx.project_id, "scheduled", query.status, query.begin("sch"), query.fetch_limit
    )
    page, following = query.cut(found, lambda record: record.record_id)
    return ScheduledList(data=await _answers(ctx, mailings, page), next_cursor=following)


@router.get("/v1/scheduled/{scheduled_id}", errors=(NotFound,))
async def get_scheduled(
    ctx: Context, scheduled_id: ScheduledId, scheduling: Scheduling, mailings: Mailings
) -> ScheduledAnswer:
    """Shows a scheduled message, also for a while after it has finished."""
    record = await scheduling.get(ctx.tx, ctx.project_id, scheduled_id, "scheduled")
    return await _answer(ctx, mailings, record)


@router.patch("/v1/scheduled/{scheduled_id}", errors=(Conflict, NotFound, SubscriberNotFound))
async def update_scheduled(
    ctx: Context,
    scheduled_id: ScheduledId,
    body: UpdateScheduledBody,
    scheduling: Scheduling,
    mailings: Mailings,
) -> ScheduledAnswer:
    """Changes the message or the time of one that is still scheduled."""
    record = await scheduling.update(ctx.tx, ctx.project_id, scheduled_id, body)
    return await _answer(ctx, mailings, record)


@router.post("/v1/scheduled/{scheduled_id}/cancel", errors=(Conflict, NotFound))
async def cancel_scheduled(
    ctx: Context, scheduled_id: ScheduledId, scheduling: Scheduling, mailings: Mailings
) -> ScheduledAnswer:
    """Cancels one that is still scheduled."""
    record = await scheduling.cancel(ctx.tx, ctx.project_id, scheduled_id, "scheduled")
    return await _answer(ctx, mailings, record)


async def _answer(ctx: Context, mailings: Mailings, record: Record) -> ScheduledAnswer:
    [answer] = await _answers(ctx, mailings, [record])
    return answer


async def _answers(
    ctx: Context, mailings: Mailings, records: Sequence[Record]
) -> list[ScheduledAnswer]:
    """With how far those are that were sent to an audience."""
    deliveries = await mailings.progress(
        ctx.tx, ctx.project_id, [record.job_id for record in records]
    )
    return [ScheduledAnswer.of(record, deliveries.get(record.job_id)) for record in records]
