"""/v1/tickets/canned-answers."""

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Router
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.kernel.errors import BadRequest, Conflict, NotFound
from msgsvc_helpdesk.canned_answers.models import (
    CannedAnswerAnswer,
    CannedAnswerKey,
    CannedAnswerList,
    CreateCannedAnswerBody,
    UpdateCannedAnswerBody,
)
from msgsvc_helpdesk.canned_answers.service import CannedAnswers

router = Router(area="helpdesk")


@router.get("/v1/tickets/canned-answers", errors=(BadRequest,))
async def list_canned_answers(
    ctx: Context, query: PageQuery, canned_answers: CannedAnswers
) -> CannedAnswerList:
    """Lists the project's canned answers, newest first."""
    canned = canned_answers
    found = await canned.page(ctx.tx, ctx.project_id, query.begin("can"), query.fetch_limit)
    page, following = query.cut(found, lambda answer: answer.canned_answer_id)
    return CannedAnswerList(data=[canned.shown(one) for one in page], next_cursor=following)


@router.post(
    "/v1/tickets/canned-answers",
    status=201,
    errors=(Conflict,),
    audited=lambda _: _("Canned answer created"),
)
async def create_canned_answer(
    ctx: Context, body: CreateCannedAnswerBody, canned_answers: CannedAnswers
) -> CannedAnswerAnswer:
    """Creates a canned answer, which replies use by its key, with variables as in templates."""
    canned = canned_answers
    return canned.shown(await canned.create(ctx.tx, ctx.project_id, body))


@router.get("/v1/tickets/canned-answers/{key}", errors=(NotFound,))
async def get_canned_answer(
    ctx: Context, key: CannedAnswerKey, canned_answers: CannedAnswers
) -> CannedAnswerAnswer:
    """Shows one canned answer, by its key."""
    canned = canned_answers
    return canned.shown(await canned.get(ctx.tx, ctx.project_id, key))


@router.patch(
    "/v1/tickets/canned-answers/{key}",
    errors=(NotFound,),
    audited=lambda _: _("Canned answer changed"),
)
async def update_canned_answer(
    ctx: Context,
    key: CannedAnswerKey,
    body: UpdateCannedAnswerBody,
    canned_answers: CannedAnswers,
) -> CannedAnswerAnswer:
    """Changes a canned answer; omitted fields and messages already sent stay unchanged."""
    canned = canned_answers
    return canned.shown(await canned.update(ctx.tx, ctx.project_id, key, body))


@router.delete(
    "/v1/tickets/canned-answers/{key}",
    status=204,
    errors=(NotFound,),
    audited=lambda _: _("Canned answer deleted"),
)
async def delete_canned_answer(
    ctx: Context, key: CannedAnswerKey, canned_answers: CannedAnswers
) -> None:
    """Removes a canned answer."""
    await canned_answers.delete(ctx.tx, ctx.project_id, key)
