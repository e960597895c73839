"""/v1/recurring."""

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
from msgsvc_scheduling.models import Record
from msgsvc_scheduling.recurring import (
    CreateRecurringBody,
    RecurringAnswer,
    RecurringId,
    RecurringList,
    RecurringQuery,
    UpdateRecurringBody,
)
from msgsvc_scheduling.service import Scheduling

router = Router(area="scheduling")


@router.post(
    "/v1/recurring",
    status=201,
    errors=(
        Conflict,
        InvalidExternalId,
        MutuallyExclusiveIdentifiers,
        NotFound,
        SubscriberNotFound,
    ),
)
async def create_recurring(
    ctx: Context, body: CreateRecurringBody, scheduling: Scheduling, mailings: Mailings
) -> RecurringAnswer:
    """Creates a recurring message, by cron or at an interval, in the local time of a time zone.

    A local time skipped by a daylight saving change is replaced by the next existing minute; of a
    repeated one, the first is used. `recurring.sent` is emitted for each run.
    """
    record = await scheduling.create_recurring(ctx.tx, ctx.project_id, body)
    return await _answer(ctx, mailings, record)


@router.get("/v1/recurring", errors=(BadRequest,))
async def list_recurring(
    ctx: Context, query: RecurringQuery, scheduling: Scheduling, mailings: Mailings
) -> RecurringList:
    """Lists the project's recurring messages, newest first."""
    found = await scheduling.page(
        ctx.tx, ctx.project_id, "recurring", query.status, query.begin("rec"), query.fetch_limit
    )
    page, following = query.cut(found, lambda record: record.record_id)
    return RecurringList(data=await _answers(ctx, mailings, page), next_cursor=following)


@router.get("/v1/recurring/{recurring_id}", errors=(NotFound,))
async def get_recurring(
    ctx: Context, recurring_id: RecurringId, scheduling: Scheduling, mailings: Mailings
) -> RecurringAnswer:
    """Shows a recurring message: its next run, and the result of the last one."""
    record = await scheduling.get(ctx.tx, ctx.project_id, recurring_id, "recurring")
    return await _answer(ctx, mailings, record)


@router.patch("/v1/recurring/{recurring_id}", errors=(Conflict, NotFound, SubscriberNotFound))
async def update_recurring(
    ctx: Context,
    recurring_id: RecurringId,
    body: UpdateRecurringBody,
    scheduling: Scheduling,
    mailings: Mailings,
) -> RecurringAnswer:
    """Changes the message or the schedule, until it has finished."""
    record = await scheduling.update_recurring(ctx.tx, ctx.project_id, recurring_id, body)
    return await _answer(ctx, mailings, record)


@router.post("/v1/recurring/{recurring_id}/pause", errors=(Conflict, NotFound))
async def pause_recurring(
    ctx: Context, recurring_id: RecurringId, scheduling: Scheduling, mailings: Mailings
) -> RecurringAnswer:
    """Pauses it. Runs that fall due during the pause are skipped."""
    return await _answer(
        ctx, mailings, await scheduling.pause(ctx.tx, ctx.project_id, recurring_id)
    )


@router.post("/v1/recurring/{recurring_id}/resume", errors=(Conflict, NotFound))
async def resume_recurring(
    ctx: Context, recurring_id: RecurringId, scheduling: Scheduling, mailings: Mailings
) -> RecurringAnswer:
    """Resumes it with the next run from now."""
    return await _answer(
        ctx, mailings, await scheduling.resume(ctx.tx, ctx.project_id, recurring_id)
    )


@router.post("/v1/recurring/{recurring_id}/cancel", errors=(Conflict, NotFound))
async def cancel_recurring(
    ctx: Context, recurring_id: RecurringId, scheduling: Scheduling, mailings: Mailings
) -> RecurringAnswer:
    """Cancels it. Messages already queued are still sent."""
    record = await scheduling.cancel(ctx.tx, ctx.project_id, recurring_id, "recurring")
    return await _answer(ctx, mailings, record)


async def _answer(ctx: Context, mailings: Mailings, record: Record) -> RecurringAnswer:
    [answer] = await _answers(ctx, mailings, [record])
    return answer


async def _answers(
    ctx: Context, mailings: Mailings, records: Sequence[Record]
) -> list[RecurringAnswer]:
    """With how far those are that were sent to an audience."""
    deliveries = await mailings.progress(
        ctx.tx, ctx.project_id, [record.job_id for record in records]
    )
    return [RecurringAnswer.of(record, deliveries.get(record.job_id)) for record in records]
