"""/v1/tickets/canned-answers and /v1/tickets/blocklist."""

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Router
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.api.types import SubscriberId
from msgsvc_core.kernel.errors import BadRequest, Conflict, NotFound, SubscriberNotFound
from msgsvc_helpdesk.blocklist import Blocklist
from msgsvc_helpdesk.canned import CannedAnswers
from msgsvc_helpdesk.canned_models import (
    CannedAnswerAnswer,
    CannedAnswerKey,
    CannedAnswerList,
    CreateCannedBody,
    UpdateCannedBody,
)
from msgsvc_helpdesk.models import BlockBody
from msgsvc_helpdesk.views import BlockedAnswer, BlockedList

router = Router(area="helpdesk")


@router.get("/v1/tickets/canned-answers", errors=(BadRequest,))
async def list_canned_answers(
    ctx: Context, query: PageQuery, canned_answers: CannedAnswers
) -> CannedAnswerList:
    """Lists the project's canned answers, newest first."""
    canned = canned_answers
    found = await canned.page(ctx.tx, ctx.project_id, query.after, query.fetch_limit)
    page, following = query.cut(found, lambda answer: answer.canned_answer_id)
    return CannedAnswerList(data=[canned.shown(one) for one in page], next_cursor=following)


@router.post("/v1/tickets/canned-answers", status=201, errors=(Conflict,), audited=True)
async def create_canned_answer(
    ctx: Context, body: CreateCannedBody, canned_answers: CannedAnswers
) -> CannedAnswerAnswer:
    """Creates a canned answer, which replies use by its key, with variables as in templates."""
    canned = canned_answers
    return canned.shown(await canned.create(ctx.tx, ctx.project_id, body))


@router.get("/v1/tickets/canned-answers/{canned_answer}", errors=(NotFound,))
async def get_canned_answer(
    ctx: Context, canned_answer: CannedAnswerKey, canned_answers: CannedAnswers
) -> CannedAnswerAnswer:
    """Shows one canned answer, by its key."""
    canned = canned_answers
    return canned.shown(await canned.get(ctx.tx, ctx.project_id, canned_answer))


@router.put("/v1/tickets/canned-answers/{canned_answer}", errors=(NotFound,), audited=True)
async def update_canned_answer(
    ctx: Context,
    canned_answer: CannedAnswerKey,
    body: UpdateCannedBody,
    canned_answers: CannedAnswers,
) -> CannedAnswerAnswer:
    """Changes a canned answer; omitted fields and messages already sent stay unchanged."""
    canned = canned_answers
    return canned.shown(await canned.update(ctx.tx, ctx.project_id, canned_answer, body))


@router.delete(
    "/v1/tickets/canned-answers/{canned_answer}", status=204, errors=(NotFound,), audited=True
)
async def delete_canned_answer(
    ctx: Context, canned_answer: CannedAnswerKey, canned_answers: CannedAnswers
) -> None:
    """Removes a canned answer."""
    await canned_answers.delete(ctx.tx, ctx.project_id, canned_answer)


@router.get("/v1/tickets/blocklist", errors=(BadRequest,))
async def list_blocked_customers(
    ctx: Context, query: PageQuery, blocklist: Blocklist
) -> BlockedList:
    """Lists subscribers whose messages open no tickets, the newest subscriber first."""
    found = await blocklist.page(ctx.tx, ctx.project_id, query.after, query.fetch_limit)
    page, following = query.cut(found, lambda blocked: blocked.subscriber_id)
    return BlockedList(data=[BlockedAnswer.of(one) for one in page], next_cursor=following)


@router.put("/v1/tickets/blocklist/{subscriber_id}", errors=(SubscriberNotFound,), audited=True)
async def block_customer(
    ctx: Context, subscriber_id: SubscriberId, body: BlockBody, all_blocklist: Blocklist
) -> BlockedAnswer:
    """Blocks a subscriber: their messages open or continue no ticket. They are not notified."""
    blocklist = all_blocklist
    return BlockedAnswer.of(await blocklist.add(ctx.tx, ctx.project_id, subscriber_id, body.reason))


@router.delete(
    "/v1/tickets/blocklist/{subscriber_id}", status=204, errors=(NotFound,), audited=True
)
async def unblock_customer(ctx: Context, subscriber_id: SubscriberId, blocklist: Blocklist) -> None:
    """Lets a subscriber's messages open tickets again."""
    await blocklist.remove(ctx.tx, ctx.project_id, subscriber_id)
