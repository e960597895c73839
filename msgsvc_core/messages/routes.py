"""POST /v1/send and /v1/messages."""

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Router
from msgsvc_core.billing import MESSAGE
from msgsvc_core.kernel.errors import (
    BadRequest,
    BillingBlocked,
    Conflict,
    InvalidExternalId,
    MutuallyExclusiveIdentifiers,
    NotFound,
    SubscriberNotFound,
)
from msgsvc_core.messages.models import (
    EditBody,
    MessageAnswer,
    MessageList,
    MessageQuery,
    SendAnswer,
    SendBody,
)

router = Router(area="messages")


@router.post(
    "/v1/send",
    status=202,
    grouped=True,
    shows_secrets=False,
    errors=(
        BillingBlocked,
        SubscriberNotFound,
        NotFound,
        MutuallyExclusiveIdentifiers,
        InvalidExternalId,
        Conflict,
    ),
)
async def send(ctx: Context, body: SendBody) -> SendAnswer:
    """Queues a message to one subscriber.

    What becomes of it is told by `delivery.success` or `delivery.failed`, and by its status.
    """
    await ctx.service.billing.check(ctx.project_id, MESSAGE)
    message = await ctx.service.messages.add(ctx.unit, ctx.project_id, body)
    return SendAnswer(message_id=message.message_id)


@router.get("/v1/messages", errors=(BadRequest,))
async def list_messages(ctx: Context, query: MessageQuery) -> MessageList:
    """Lists the project's messages, newest first."""
    found = await ctx.service.messages.page(ctx.tx, ctx.project_id, query)
    page, following = query.cut(found, lambda message: message.message_id)
    return MessageList(
        data=[MessageAnswer.of(message) for message in page],
        next_cursor=following,
    )


@router.get("/v1/messages/{message_id}", errors=(NotFound,))
async def get_message(ctx: Context, message_id: str) -> MessageAnswer:
    """Shows a message and what became of it."""
    return MessageAnswer.of(await ctx.service.messages.find(ctx.tx, ctx.project_id, message_id))


@router.post("/v1/messages/{message_id}/edit", status=202, errors=(NotFound, Conflict))
async def edit_message(ctx: Context, message_id: str, body: EditBody) -> MessageAnswer:
    """Changes a message: before it is sent at once, and afterwards in the chat, where the channel can.

    `edited_at` says when people saw the change. If the messenger refuses it, `error` says why, and the
    message is again what it was.
    """
    changes = ctx.service.messages.changes
    return MessageAnswer.of(await changes.edit(ctx.tx, ctx.project_id, message_id, body))


@router.delete("/v1/messages/{message_id}", status=202, errors=(NotFound, Conflict))
async def delete_message(ctx: Context, message_id: str) -> MessageAnswer:
    """Takes a message back.

    It is skipped if it is still to be sent, and else removed from the chat, where the channel can.

    `deleted_at` says when. If the messenger refuses, `error` says why.
    """
    changes = ctx.service.messages.changes
    return MessageAnswer.of(await changes.delete(ctx.tx, ctx.project_id, message_id))
