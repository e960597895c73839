"""/v1/broadcast."""

from msgsvc_broadcasts.clicks import Clicks
from msgsvc_broadcasts.drafts import DraftTests
from msgsvc_broadcasts.errors import WinnerAlreadyChosen
from msgsvc_broadcasts.experiments import Experiments
from msgsvc_broadcasts.links import Links
from msgsvc_broadcasts.models import (
    SOURCE,
    BroadcastAccepted,
    BroadcastAnswer,
    BroadcastChannels,
    BroadcastId,
    BroadcastList,
    BroadcastQuery,
    BroadcastRecipientAnswer,
    BroadcastRecipientList,
    ButtonClicks,
    CreateBroadcastBody,
    LinkClicks,
    RecipientQuery,
    SendBroadcastTestBody,
)
from msgsvc_broadcasts.service import Broadcasts
from msgsvc_broadcasts.variants import BroadcastVariants, ChooseWinnerBody
from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Router
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import (
    BadRequest,
    BillingBlocked,
    Conflict,
    NotFound,
    SubscriberNotFound,
)
from msgsvc_core.mailings import Mailing
from msgsvc_core.mailings.service import Mailings
from msgsvc_core.messages.answers import QueuedMessageAnswer

router = Router(area="broadcasts", description="One message to many subscribers.", group="sending")


@router.post("/v1/broadcast", status=202, shows_secrets=False, errors=(BillingBlocked, NotFound))
async def broadcast(
    ctx: Context, body: CreateBroadcastBody, broadcasts: Broadcasts
) -> BroadcastAccepted:
    """Sends a message to an audience of up to 100,000 subscribers, in the background.

    The audience is resolved when the broadcast starts. Texts may contain variables of each recipient:
    `first_name`, `username`, `lang`, `tags`, `attributes.<name>`. `broadcast.completed` is emitted when
    all recipients are processed.

    With `variants`, a part of the audience gets one of them each; the winner of the `experiment` goes to
    the rest.
    """
    return await broadcasts.start(ctx.tx, ctx.project_id, body)


@router.post(
    "/v1/broadcast/test",
    status=202,
    shows_secrets=False,
    errors=(BillingBlocked, NotFound, SubscriberNotFound),
)
async def send_broadcast_test(
    ctx: Context, body: SendBroadcastTestBody, drafts: DraftTests
) -> QueuedMessageAnswer:
    """Sends the message of a broadcast to one subscriber, to see it before all others do.

    It has the values of that subscriber, and is a message like those of `POST /v1/send`: it is listed and
    charged as one, and belongs to no broadcast.
    """
    message = await drafts.send(ctx.tx, ctx.project_id, body, body.subscriber_id)
    return QueuedMessageAnswer(message_id=message.message_id)


@router.get("/v1/broadcast", errors=(BadRequest,))
async def list_broadcasts(
    ctx: Context, query: BroadcastQuery, mailings: Mailings, clock: Clock
) -> BroadcastList:
    """Lists the project's broadcasts, newest first. Scheduled ones are found by their id."""
    found = await mailings.page(
        ctx.tx, ctx.project_id, SOURCE, query.status, query.begin("job"), query.fetch_limit
    )
    page, following = query.cut(found, lambda mailing: mailing.job_id)
    return BroadcastList(
        data=[_answer(mailings, clock, each) for each in page], next_cursor=following
    )


@router.get("/v1/broadcast/{job_id}", errors=(NotFound,))
async def get_broadcast(
    ctx: Context,
    job_id: BroadcastId,
    mailings: Mailings,
    broadcasts: Broadcasts,
    links: Links,
    clicks: Clicks,
    clock: Clock,
) -> BroadcastAnswer:
    """Shows the progress of a broadcast, the estimated time left, and clicks on its links and buttons.

    This endpoint and those below also accept the `job_id` of `scheduled.sent` and `recurring.sent`.
    """
    mailing = await broadcasts.get(ctx.tx, ctx.project_id, job_id)
    opened = await links.count(ctx.tx, ctx.project_id, job_id)
    pressed = await clicks.count(ctx.tx, ctx.project_id, job_id)
    clicked = {
        "links": [LinkClicks(url=url, people=people) for url, people in opened.items()],
        "buttons": [ButtonClicks(data=data, people=people) for data, people in pressed.items()],
    }
    return _answer(mailings, clock, mailing).model_copy(update=clicked)


@router.post("/v1/broadcast/{job_id}/cancel", shows_secrets=False, errors=(Conflict, NotFound))
async def cancel_broadcast(
    ctx: Context, job_id: BroadcastId, mailings: Mailings, broadcasts: Broadcasts, clock: Clock
) -> BroadcastAnswer:
    """Cancels a broadcast. Deliveries in progress are completed.

    `broadcast.cancelled` is emitted when no delivery is in progress any more; `finished_at` is null
    until then. Recipients who were not sent to count as `skipped`.
    """
    await broadcasts.get(ctx.tx, ctx.project_id, job_id)
    return _answer(mailings, clock, await mailings.cancel(ctx.tx, ctx.project_id, job_id))


@router.post("/v1/broadcast/{job_id}/pause", shows_secrets=False, errors=(Conflict, NotFound))
async def pause_broadcast(
    ctx: Context, job_id: BroadcastId, mailings: Mailings, broadcasts: Broadcasts, clock: Clock
) -> BroadcastAnswer:
    """Pauses a running broadcast. Deliveries in progress are completed."""
    await broadcasts.get(ctx.tx, ctx.project_id, job_id)
    return _answer(mailings, clock, await mailings.pause(ctx.tx, ctx.project_id, job_id))


@router.post("/v1/broadcast/{job_id}/resume", shows_secrets=False, errors=(Conflict, NotFound))
async def resume_broadcast(
    ctx: Context, job_id: BroadcastId, mailings: Mailings, broadcasts: Broadcasts, clock: Clock
) -> BroadcastAnswer:
    """Resumes a paused broadcast."""
    await broadcasts.get(ctx.tx, ctx.project_id, job_id)
    return _answer(mailings, clock, await mailings.resume(ctx.tx, ctx.project_id, job_id))


@router.post(
    "/v1/broadcast/{job_id}/resend-unknown",
    status=202,
    shows_secrets=False,
    errors=(BillingBlocked, Conflict, NotFound),
)
async def resend_broadcast_to_unknown(
    ctx: Context, job_id: BroadcastId, broadcasts: Broadcasts
) -> BroadcastAccepted:
    """Resends a finished broadcast to the recipients whose outcome is unknown.

    Recipients with the status `unknown` are never retried automatically. The result is a separate
    broadcast, which can be requested once.
    """
    return await broadcasts.resend_unknown(ctx.tx, ctx.project_id, job_id)


@router.get("/v1/broadcast/{job_id}/variants", errors=(NotFound,))
async def get_broadcast_variants(
    ctx: Context, job_id: BroadcastId, broadcasts: Broadcasts, experiments: Experiments
) -> BroadcastVariants:
    """Compares the variants of a broadcast: who got each, and how many of them clicked.

    After `recipients_until` the figures are those of the choice, or zero without one.
    """
    mailing = await broadcasts.get(ctx.tx, ctx.project_id, job_id)
    return BroadcastVariants(variants=await experiments.figures(ctx.tx, mailing))


@router.get("/v1/broadcast/{job_id}/channels", errors=(NotFound,))
async def get_broadcast_channels(
    ctx: Context, job_id: BroadcastId, broadcasts: Broadcasts
) -> BroadcastChannels:
    """Tells by which channel of its route a broadcast reached how many people.

    After `recipients_until` all figures are zero.
    """
    mailing = await broadcasts.get(ctx.tx, ctx.project_id, job_id)
    return BroadcastChannels(channels=await broadcasts.by_channel(ctx.tx, mailing))


@router.post(
    "/v1/broadcast/{job_id}/winner",
    shows_secrets=False,
    errors=(Conflict, NotFound, WinnerAlreadyChosen),
)
async def choose_broadcast_winner(
    ctx: Context,
    job_id: BroadcastId,
    body: ChooseWinnerBody,
    mailings: Mailings,
    experiments: Experiments,
    clock: Clock,
) -> BroadcastAnswer:
    """Chooses the variant that goes to the rest of the audience, at once.

    It ends an experiment early, or decides a `manual` one. Nobody gets two variants: deliveries in progress
    are completed. `broadcast.winner_chosen` is emitted.
    """
    mailing = await experiments.choose(ctx.tx, ctx.project_id, job_id, body.variant, "api")
    return _answer(mailings, clock, mailing)


@router.get("/v1/broadcast/{job_id}/recipients", errors=(BadRequest, NotFound))
async def list_broadcast_recipients(
    ctx: Context,
    job_id: BroadcastId,
    query: RecipientQuery,
    mailings: Mailings,
    broadcasts: Broadcasts,
) -> BroadcastRecipientList:
    """Lists the recipients of a broadcast and the outcome for each.

    The list is empty before the broadcast starts and after `recipients_until`. Erased subscribers are
    not listed.
    """
    mailing = await broadcasts.get(ctx.tx, ctx.project_id, job_id)
    found = await mailings.recipients(
        ctx.tx, mailing, query.status, query.begin("sub"), query.fetch_limit, query.reason
    )
    page, following = query.cut(found, lambda recipient: recipient.subscriber_id)
    return BroadcastRecipientList(
        data=[BroadcastRecipientAnswer.of(each, mailing) for each in page], next_cursor=following
    )


def _answer(mailings: Mailings, clock: Clock, mailing: Mailing) -> BroadcastAnswer:
    until_ms = mailings.recipients_until_ms(mailing)
    return BroadcastAnswer.of(mailing, clock.now_ms(), until_ms)
