"""Emits `button.clicked` for a press on a button of a project's message."""

from collections.abc import Sequence
from dataclasses import replace

from msgsvc_core.channels.inbound import InboundContext
from msgsvc_core.channels.lanes import lane_of
from msgsvc_core.channels.updates import ButtonPressed
from msgsvc_core.content.outgoing import Button
from msgsvc_core.db import Tx
from msgsvc_core.events import Events
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.messages import route_store, store
from msgsvc_core.messages.delivery import JOB
from msgsvc_core.messages.models import Message
from msgsvc_core.subscribers.service import Subscribers


async def button_pressed(
    ctx: InboundContext, *, jobs: JobQueue, subscribers: Subscribers, events: Events
) -> None:
    """Emits the event; if no message of a project has the button, the user gets a notice."""
    update = ctx.update
    assert isinstance(update, ButtonPressed)
    message = (
        await _by_ref(ctx, update, subscribers)
        or await _under_way(ctx, update, jobs, subscribers)
        # Its outcome may have been written between the two queries.
        or await _by_ref(ctx, update, subscribers)
    )
    # A messenger's client can send any data, so only data of the message's buttons counts.
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


async def find_by_ref(
    tx: Tx, subscribers: Subscribers, bot: str, chat_id: str, user_id: str, message_ref: str
) -> Message | None:
    """The message to this user that has the platform's id `message_ref` in this bot's chat.

    A shared bot has one chat with a user for all projects, so the project is not known before.
    """
    messages = await store.find_by_ref(tx, bot, message_ref)
    if not messages:
        messages = await _copies_by_ref(tx, bot, message_ref)
    theirs = await _of_person(tx, subscribers, messages, chat_id, user_id)
    return theirs[0] if theirs else None


async def _copies_by_ref(tx: Tx, bot: str, message_ref: str) -> list[Message]:
    """Messages that were sent under this id at an earlier step of their route, as they were there."""
    found: list[Message] = []
    for project_id, message_id, step in await route_store.find_by_ref(tx, bot, message_ref):
        message = await store.find(tx, project_id, message_id)
        if message is not None:
            found += [
                replace(message, subscriber_id=copy.subscriber_id, channel=copy.channel, bot=bot)
                for copy in await route_store.find_copies(tx, message)
                if copy.step == step and copy.subscriber_id is not None
            ]
    return found


async def _by_ref(
    ctx: InboundContext, update: ButtonPressed, subscribers: Subscribers
) -> Message | None:
    return await find_by_ref(
        ctx.tx,
        subscribers,
        ctx.channel,
        update.chat_id,
        update.user.user_id,
        update.message_ref,
    )


async def _under_way(
    ctx: InboundContext, update: ButtonPressed, jobs: JobQueue, subscribers: Subscribers
) -> Message | None:
    """The newest message to this user with such a button whose outcome is not written yet.

    The platform's ids are written for a batch at a time, and a user can be quicker.
    """
    under_way = await jobs.running(ctx.tx, lane_of(ctx.channel), JOB)
    keys = [(job.project_id or "", job.payload["message_id"]) for job in under_way]
    messages = [
        message
        for message in await store.find_many(ctx.tx, keys)
        if message.status == "sending" and _button_of(message, update.data)
    ]
    theirs = await _of_person(ctx.tx, subscribers, messages, update.chat_id, update.user.user_id)
    return max(theirs, key=lambda message: message.message_id, default=None)


async def _of_person(
    tx: Tx, subscribers: Subscribers, messages: Sequence[Message], chat_id: str, user_id: str
) -> list[Message]:
    """Those of `messages` that were sent to a user in a chat."""
    people = await subscribers.get_many(
        tx, [(message.project_id, message.subscriber_id) for message in messages]
    )
    return [
        message
        for message in messages
        if (person := people.get((message.project_id, message.subscriber_id)))
        and (person.chat_id, person.user_id) == (chat_id, user_id)
    ]


def _button_of(message: Message, data: str) -> Button | None:
    """The message's button, or its former one before an edit that may not have reached the user."""
    shown = [message.content, *([message.shown] if message.shown else [])]
    buttons = (button for content in shown for row in content.buttons for button in row)
    return next((button for button in buttons if button.data == data), None)
