"""POST /v1/send and /v1/messages."""

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Router
from msgsvc_core.billing import MESSAGE, BillingGate
from msgsvc_core.kernel.errors import (
    BadRequest,
    BillingBlocked,
    Conflict,
    InvalidExternalId,
    MutuallyExclusiveIdentifiers,
    NotFound,
    SubscriberNotFound,
)
from msgsvc_core.messages.answers import MessageAnswer, MessageList, QueuedMessageAnswer
from msgsvc_core.messages.bodies import EditMessageBody, MessageQuery, SendBody
from msgsvc_core.messages.fields import MessageId
from msgsvc_core.messages.service import Messages

router = Router(
    area="messages",
    description="Messages to one subscriber, or to up to 500 with one request, and their delivery.",
    group="sending",
    key_purpose="send",
)


@router.post(
    "/v1/send",
    status=202,
    group_commit=True,
    shows_secrets=False,
    errors=(
        BillingBlocked,
        SubscriberNotFound,
        NotFound,
        MutuallyExclusiveIdentifiers,
        InvalidExternalId,
        Conflict,
    ),
    first_call=10,
)
async def send(
    ctx: Context, body: SendBody, billing: BillingGate, messages: Messages
) -> QueuedMessageAnswer:
    """Queues a message to one subscriber.

    The outcome is reported by `delivery.success` or `delivery.failed`, and by its status.
    """
    await billing.check(ctx.project_id, MESSAGE)
    message = await messages.add(ctx.unit, ctx.project_id, body)
    return QueuedMessageAnswer(message_id=message.message_id)


@router.get("/v1/messages", errors=(BadRequest,), first_call=60)
async def list_messages(ctx: Context, query: MessageQuery, messages: Messages) -> MessageList:
    """Lists the project's messages, newest first."""
    found = await messages.page(ctx.tx, ctx.project_id, query)
    page, following = query.cut(found, lambda message: message.message_id)
    return MessageList(
        data=[MessageAnswer.of(message) for message in page],
        next_cursor=following,
    )


@router.get("/v1/messages/{message_id}", errors=(NotFound,))
async def get_message(ctx: Context, message_id: MessageId, messages: Messages) -> MessageAnswer:
    """Shows a message and its delivery status."""
    return MessageAnswer.of(await messages.find(ctx.tx, ctx.project_id, message_id))


@router.post("/v1/messages/{message_id}/edit", status=202, errors=(NotFound, Conflict))
async def edit_message(
    ctx: Context, message_id: MessageId, body: EditMessageBody, messages: Messages
) -> MessageAnswer:
    """Edits a message: a queued one at once, a sent one in the chat where the channel supports it.

    `edited_at` is the time at which the change became visible. If the messenger refuses it, `error` has
    the reason, and the message keeps its previous content.
    """
    changes = messages.changes
    return MessageAnswer.of(await changes.edit(ctx.tx, ctx.project_id, message_id, body))


@router.delete("/v1/messages/{message_id}", status=202, errors=(NotFound, Conflict))
async def delete_message(ctx: Context, message_id: MessageId, messages: Messages) -> MessageAnswer:
    """Cancels or deletes a message.

    A queued message is skipped; a sent one is deleted from the chat if the channel supports it.
    `deleted_at` is the time of deletion. If the messenger refuses, `error` has the reason.
    """
    changes = messages.changes
    return MessageAnswer.of(await changes.delete(ctx.tx, ctx.project_id, message_id))
