"""A press on a button of a project's own message becomes `button.clicked`."""

from msgsvc_core.channels.inbound import InboundContext
from msgsvc_core.channels.outbox import lane_of
from msgsvc_core.channels.updates import ButtonPressed
from msgsvc_core.content.outgoing import Button
from msgsvc_core.events import Events
from msgsvc_core.jobs import store as jobs_store
from msgsvc_core.messages import store
from msgsvc_core.messages.delivery import JOB
from msgsvc_core.messages.models import Message
from msgsvc_core.subscribers.service import Subscribers


async def button_pressed(ctx: InboundContext, *, subscribers: Subscribers, events: Events) -> None:
    """Tells the project; a button that no message of a project has is answered with a notice."""
    update = ctx.update
    assert isinstance(update, ButtonPressed)
    message = (
        await _by_ref(ctx, update)
        or await _under_way(ctx, update, subscribers)
        # Its outcome may have been written between the two.
        or await _by_ref(ctx, update)
    )
    # A messenger's client can send any data, so only what was offered counts.
    pressed = _button_of(message, update.data) if message else None
    if message is None or pressed is None:
        await ctx.answer_button(ctx._("This button no longer works."))
        return
    await ctx.answer_button()
    subscriber = await subscribers.get(ctx.tx, message.project_id, message.subscriber_id)
    await events.emit(
        ctx.tx,
        message.project_id,
        "button.clicked",
        {"message_id": message.message_id, "data": update.data, "text": pressed.text},
        subscriber=subscriber,
    )


async def _by_ref(ctx: InboundContext, update: ButtonPressed) -> Message | None:
    return await store.find_by_ref(
        ctx.tx, ctx.channel, update.chat_id, update.user.user_id, update.message_ref
    )


async def _under_way(
    ctx: InboundContext, update: ButtonPressed, subscribers: Subscribers
) -> Message | None:
    """The newest message to this person with such a button whose outcome is not written yet.

    What the platform calls a message is written for a batch at a time, and a person can be quicker.
    """
    jobs = await jobs_store.running(ctx.tx, lane_of(ctx.channel), JOB)
    keys = [(job.project_id or "", job.payload["message_id"]) for job in jobs]
    messages = [
        message
        for message in await store.find_many(ctx.tx, keys)
        if message.status == "sending" and _button_of(message, update.data)
    ]
    people = await subscribers.get_many(
        ctx.tx, [(message.project_id, message.subscriber_id) for message in messages]
    )
    theirs = [
        message
        for message in messages
        if (person := people.get((message.project_id, message.subscriber_id)))
        and (person.chat_id, person.user_id) == (update.chat_id, update.user.user_id)
    ]
    return max(theirs, key=lambda message: message.message_id, default=None)


def _button_of(message: Message, data: str) -> Button | None:
    """The button that the message has, or had until an edit that may not have reached the person."""
    shown = [message.content, *([message.shown] if message.shown else [])]
    buttons = (button for content in shown for row in content.buttons for button in row)
    return next((button for button in buttons if button.data == data), None)
