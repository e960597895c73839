"""/v1/drips."""

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Router
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.kernel.errors import (
    BadRequest,
    Conflict,
    InvalidExternalId,
    MutuallyExclusiveIdentifiers,
    NotFound,
    SubscriberNotFound,
)
from msgsvc_drip.models import (
    CreateDripBody,
    DripAnswer,
    DripId,
    DripList,
    EnrollInDripBody,
    EnrollmentAnswer,
    EnrollmentId,
    EnrollmentList,
    EnrollmentQuery,
    UpdateDripBody,
)
from msgsvc_drip.service import Drips

router = Router(
    area="drips",
    description="Drip campaigns: messages in steps, after what a subscriber did.",
    group="sending",
)


@router.post(
    "/v1/drips",
    status=201,
    errors=(Conflict, NotFound),
    shows_secrets=False,
    audited=lambda _: _("Campaign created"),
)
async def create_drip(ctx: Context, body: CreateDripBody, drips: Drips) -> DripAnswer:
    """Creates a drip campaign: its trigger and its steps."""
    return DripAnswer.of(await drips.create(ctx.tx, ctx.project_id, body))


@router.get("/v1/drips", errors=(BadRequest,))
async def list_drips(ctx: Context, query: PageQuery, drips: Drips) -> DripList:
    """Lists the project's drip campaigns, newest first."""
    found = await drips.page(ctx.tx, ctx.project_id, query.begin("drp"), query.fetch_limit)
    page, following = query.cut(found, lambda chain: chain.drip_id)
    return DripList(data=[DripAnswer.of(chain) for chain in page], next_cursor=following)


@router.get("/v1/drips/{drip_id}", errors=(NotFound,))
async def get_drip(ctx: Context, drip_id: DripId, drips: Drips) -> DripAnswer:
    """Shows the newest version of a drip campaign."""
    return DripAnswer.of(await drips.get(ctx.tx, ctx.project_id, drip_id))


@router.patch("/v1/drips/{drip_id}", errors=(NotFound,), audited=lambda _: _("Campaign changed"))
async def update_drip(
    ctx: Context, drip_id: DripId, body: UpdateDripBody, drips: Drips
) -> DripAnswer:
    """Changes a drip campaign; omitted fields stay unchanged.

    New `steps`, `timezone` or `stop_on` create a new version for new enrollments; active enrollments finish
    the version they started. A new trigger, name or `reentry` takes effect at once.
    """
    return DripAnswer.of(await drips.update(ctx.tx, ctx.project_id, drip_id, body))


@router.delete(
    "/v1/drips/{drip_id}", status=204, errors=(NotFound,), audited=lambda _: _("Campaign deleted")
)
async def delete_drip(ctx: Context, drip_id: DripId, drips: Drips) -> None:
    """Deletes a drip campaign and its enrollments; queued messages are still sent."""
    await drips.delete(ctx.tx, ctx.project_id, drip_id)


@router.post(
    "/v1/drips/{drip_id}/pause",
    errors=(NotFound,),
    shows_secrets=False,
    audited=lambda _: _("Campaign paused"),
)
async def pause_drip(ctx: Context, drip_id: DripId, all_drips: Drips) -> DripAnswer:
    """Pauses a drip campaign: no step is sent, and nobody is enrolled."""
    drips = all_drips
    return DripAnswer.of(await drips.set_status(ctx.tx, ctx.project_id, drip_id, "paused"))


@router.post(
    "/v1/drips/{drip_id}/resume",
    errors=(NotFound,),
    shows_secrets=False,
    audited=lambda _: _("Campaign resumed"),
)
async def resume_drip(ctx: Context, drip_id: DripId, all_drips: Drips) -> DripAnswer:
    """Resumes a drip campaign. Remaining delays count from now."""
    drips = all_drips
    return DripAnswer.of(await drips.set_status(ctx.tx, ctx.project_id, drip_id, "active"))


@router.post(
    "/v1/drips/{drip_id}/enroll",
    status=201,
    errors=(
        Conflict,
        InvalidExternalId,
        MutuallyExclusiveIdentifiers,
        NotFound,
        SubscriberNotFound,
    ),
    shows_secrets=False,
)
async def enroll_in_drip(
    ctx: Context, drip_id: DripId, body: EnrollInDripBody, all_drips: Drips
) -> EnrollmentAnswer:
    """Enrolls a subscriber in a drip campaign, whatever its trigger."""
    drips = all_drips
    return EnrollmentAnswer.of(await drips.enroll(ctx.tx, ctx.project_id, drip_id, body))


@router.get("/v1/drips/{drip_id}/enrollments", errors=(BadRequest, NotFound))
async def list_drip_enrollments(
    ctx: Context, drip_id: DripId, query: EnrollmentQuery, drips: Drips
) -> EnrollmentList:
    """Lists the enrollments of a drip campaign, newest first."""
    found = await drips.enrollments(ctx.tx, ctx.project_id, drip_id, query)
    page, following = query.cut(found, lambda enrollment: enrollment.enrollment_id)
    return EnrollmentList(
        data=[EnrollmentAnswer.of(enrollment) for enrollment in page], next_cursor=following
    )


@router.get("/v1/drips/enrollments/{enrollment_id}", errors=(NotFound,))
async def get_enrollment(
    ctx: Context, enrollment_id: EnrollmentId, all_drips: Drips
) -> EnrollmentAnswer:
    """Shows an enrollment: the progress of one person. Events have its `enrollment_id`."""
    drips = all_drips
    return EnrollmentAnswer.of(await drips.get_enrollment(ctx.tx, ctx.project_id, enrollment_id))


@router.post(
    "/v1/drips/enrollments/{enrollment_id}/pause",
    errors=(Conflict, NotFound),
    shows_secrets=False,
)
async def pause_enrollment(
    ctx: Context, enrollment_id: EnrollmentId, all_drips: Drips
) -> EnrollmentAnswer:
    """Pauses one enrollment."""
    drips = all_drips
    return EnrollmentAnswer.of(await drips.pause(ctx.tx, ctx.project_id, enrollment_id))


@router.post(
    "/v1/drips/enrollments/{enrollment_id}/resume",
    errors=(Conflict, NotFound),
    shows_secrets=False,
)
async def resume_enrollment(
    ctx: Context, enrollment_id: EnrollmentId, all_drips: Drips
) -> EnrollmentAnswer:
    """Resumes one enrollment; the remaining delay counts from now."""
    drips = all_drips
    return EnrollmentAnswer.of(await drips.resume(ctx.tx, ctx.project_id, enrollment_id))


@router.post(
    "/v1/drips/enrollments/{enrollment_id}/cancel",
    errors=(Conflict, NotFound),
    shows_secrets=False,
)
async def cancel_enrollment(
    ctx: Context, enrollment_id: EnrollmentId, all_drips: Drips
) -> EnrollmentAnswer:
    """Cancels one enrollment."""
    drips = all_drips
    return EnrollmentAnswer.of(await drips.cancel(ctx.tx, ctx.project_id, enrollment_id))
