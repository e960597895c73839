"""Pages of broadcasts: list, progress, recipients, and actions such as pause and cancel."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, get_args

from msgsvc_broadcasts.clicks import Clicks
from msgsvc_broadcasts.experiments import Experiments
from msgsvc_broadcasts.links import Links
from msgsvc_broadcasts.models import SOURCE, BroadcastQuery, RecipientQuery
from msgsvc_broadcasts.service import Broadcasts
from msgsvc_broadcasts.variants import BroadcastExperimentAnswer, decides_at_ms
from msgsvc_core.api.validation import validate
from msgsvc_core.dashboard import ListWalk, Nav, PageContext, Pages, Redirect, Render
from msgsvc_core.dashboard.previewing import MessagePreviews, Sample
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.kernel.i18n import in_language
from msgsvc_core.mailings import Mailing, MailingMessage
from msgsvc_core.mailings.audience import MOST_LOOKED_AT
from msgsvc_core.mailings.models import NotSent, OutcomeReason
from msgsvc_core.mailings.service import Mailings
from msgsvc_core.subscribers.service import Subscribers

#: Broadcasts on the overview.
_ON_CARD = 4

#: Filters of the list of recipients.
_FILTERS = ("status", "reason")


def declare(pages: Pages) -> None:
    """Registers these pages."""
    nav = Nav("Broadcasts", icon="megaphone", group="sending", order=10)
    pages.get("/broadcasts", access="project:read", nav=nav)(listed)
    pages.get("/broadcasts/{job_id}", access="project:read")(broadcast)
    pages.get("/broadcasts/{job_id}/progress", access="project:read")(progress)
    pages.get("/broadcasts/{job_id}/variants", access="project:read")(variants)
    pages.get("/broadcasts/{job_id}/recipients", access="project:read")(recipients)
    pages.post(
        "/broadcasts/{job_id}/pause",
        access="project:write",
        form_page=broadcast,
        title=lambda _: _("Broadcast paused"),
    )(pause)
    pages.post(
        "/broadcasts/{job_id}/resume",
        access="project:write",
        form_page=broadcast,
        title=lambda _: _("Broadcast resumed"),
    )(resume)
    pages.post(
        "/broadcasts/{job_id}/cancel",
        access="project:write",
        form_page=broadcast,
        title=lambda _: _("Broadcast cancelled"),
    )(cancel)
    pages.post(
        "/broadcasts/{job_id}/resend",
        access="project:write",
        form_page=broadcast,
        title=lambda _: _("Broadcast resent"),
    )(resend)
    pages.post(
        "/broadcasts/{job_id}/winner",
        access="project:write",
        form_page=broadcast,
        title=lambda _: _("Winner of a broadcast chosen"),
    )(winner)
    pages.card(access="project:read", order=40)(card)


async def listed(page: PageContext, mailings: Mailings) -> Render:
    """All broadcasts, newest or oldest first."""
    query = validate(
        BroadcastQuery,
        {name: page.query[name] for name in ("status", "cursor") if page.query.get(name)},
    )
    walk = ListWalk(page, "/broadcasts", ("status",))
    found = await mailings.page(
        page.tx,
        page.project_id,
        SOURCE,
        query.status,
        query.after,
        query.fetch_limit,
        ascending=walk.ascending,
    )
    rows = walk.cut(found, query.limit, lambda mailing: mailing.job_id)
    return Render(
        "list.html", {"rows": [_row(each) for each in rows], "walk": walk, "status": query.status}
    )


async def card(page: PageContext, mailings: Mailings) -> Render:
    """The latest broadcasts, including running ones."""
    found = await mailings.page(page.tx, page.project_id, SOURCE, None, None, _ON_CARD)
    return Render("card.html", {"rows": [_row(each) for each in found]})


async def broadcast(
    page: PageContext,
    broadcasts: Broadcasts,
    clicks: Clicks,
    experiments: Experiments,
    links: Links,
    mailings: Mailings,
    previews: MessagePreviews,
    clock: Clock,
) -> Render:
    """One broadcast: message, audience, progress, failures, variants, and clicks on its links and buttons."""
    values = await _progress(page, broadcasts, clock)
    mailing: Mailing = values["mailing"]
    reasons = _with_rest(mailing, await mailings.reasons(page.tx, mailing))
    unknown = [each for each in reasons if each.status == "unknown"]
    return Render(
        "broadcast.html",
        {
            **values,
            **await _variants(page, experiments, mailing),
            "by_channel": await broadcasts.recent_by_channel(page.tx, mailing, clock.now_ms())
            if mailing.steps and mailing.purged_at_ms is None
            else None,
            "messages": [
                (name, message, await _shown(page, previews, mailing, message))
                for name, message in _messages(mailing)
            ],
            "audience": mailing.shown_audience,
            "reasons": [(each, _list_url(page, mailing, each)) for each in reasons],
            "clicked": _clicked(
                page, mailing, await clicks.count(page.tx, page.project_id, mailing.job_id)
            ),
            "opened": await links.count(page.tx, page.project_id, mailing.job_id),
            "is_in_part": any(
                sum(each.count for each in reasons if each.status == status) >= MOST_LOOKED_AT
                for status in get_args(NotSent)
            ),
            "most_counted": MOST_LOOKED_AT,
            "can_resend": bool(unknown)
            and mailing.finished_at_ms is not None
            and not await mailings.was_resent(page.tx, mailing),
            "until_ms": mailings.recipients_until_ms(mailing),
        },
    )


async def progress(page: PageContext, broadcasts: Broadcasts, clock: Clock) -> Render:
    """A fragment with the progress, polled while it is running."""
    return Render("progress.html", await _progress(page, broadcasts, clock))


async def variants(
    page: PageContext, broadcasts: Broadcasts, experiments: Experiments, clock: Clock
) -> Render:
    """A fragment with the variants, polled while they are compared."""
    values = await _progress(page, broadcasts, clock)
    return Render(
        "variants.html", {**values, **await _variants(page, experiments, values["mailing"])}
    )


async def recipients(
    page: PageContext, broadcasts: Broadcasts, mailings: Mailings, subscribers: Subscribers
) -> Render:
    """The recipients and their outcomes."""
    mailing = await _mailing(page, broadcasts)
    query = validate(
        RecipientQuery,
        {name: page.query[name] for name in (*_FILTERS, "cursor") if page.query.get(name)},
    )
    found = await mailings.recipients(
        page.tx, mailing, query.status, query.after, query.fetch_limit, query.reason
    )
    rows, following = query.cut(found, lambda recipient: recipient.subscriber_id)
    keys = [(page.project_id, each.subscriber_id) for each in rows]
    people = await subscribers.get_many(page.tx, keys)
    here = f"/broadcasts/{mailing.job_id}/recipients"
    return Render(
        "recipients.html",
        {
            "mailing": mailing,
            "rows": [(each, people.get((page.project_id, each.subscriber_id))) for each in rows],
            "status": query.status,
            "reason": query.reason,
            "more": page.url(here, status=query.status, reason=query.reason, cursor=following)
            if following
            else "",
        },
    )


async def pause(page: PageContext, mailings: Mailings) -> Redirect:
    return await _change(page, mailings.pause, page._("Paused."))


async def resume(page: PageContext, mailings: Mailings) -> Redirect:
    return await _change(page, mailings.resume, page._("Resumed."))


async def cancel(page: PageContext, mailings: Mailings) -> Redirect:
    return await _change(page, mailings.cancel, page._("The broadcast is cancelled."))


async def winner(page: PageContext, experiments: Experiments) -> Redirect:
    """Chooses the variant for the rest of the audience."""
    job_id, variant = page.params["job_id"], page.form.text("variant")
    await experiments.choose(page.tx, page.project_id, job_id, variant, "member")
    page.note(broadcast=job_id, variant=variant)
    return Redirect(
        page.url(f"/broadcasts/{job_id}"),
        notice=page._("Variant {name} goes to the rest of the audience.", name=variant),
    )


async def resend(page: PageContext, broadcasts: Broadcasts) -> Redirect:
    """Starts a broadcast to the recipients with an unknown outcome."""
    job_id = page.params["job_id"]
    taken = await broadcasts.resend_unknown(page.tx, page.project_id, job_id)
    page.note(broadcast=taken.job_id, resend_of=job_id)
    return Redirect(
        page.url(f"/broadcasts/{taken.job_id}"), notice=page._("The broadcast is being sent.")
    )


def _clicked(
    page: PageContext, mailing: Mailing, people: Mapping[str, int]
) -> list[tuple[str, int]]:
    """Buttons that send data, each with the number of people who pressed it, in the order of the message.

    One whose data has variables is named by what was sent back.
    """
    texts = {
        button["data"]: in_language(button["text"], page.lang, "en")
        for _, message in _messages(mailing)
        for row in message.get("buttons") or ()
        for button in row
        if button.get("data") and ("{{" not in button["data"])
    }
    named = [(text, people.get(data, 0)) for data, text in texts.items()]
    return named + [(data, number) for data, number in people.items() if data not in texts]


def _with_rest(mailing: Mailing, reasons: list[OutcomeReason]) -> list[OutcomeReason]:
    """Also those of whom no reason is stored: not reached before a cancel, erased, or never there."""
    known = sum(each.count for each in reasons if each.status == "skipped")
    rest = mailing.skipped - known
    if mailing.finished_at_ms is None or rest <= 0 or known >= MOST_LOOKED_AT:
        return reasons
    return [*reasons, OutcomeReason("skipped", None, rest)]


def _list_url(page: PageContext, mailing: Mailing, why: OutcomeReason) -> str:
    """The recipients who did not get it for a reason; those who were skipped for any, as it is a sentence."""
    reason = why.reason if why.status != "skipped" else None
    here = f"/broadcasts/{mailing.job_id}/recipients"
    return page.url(here, status=why.status, reason=reason)


async def _shown(
    page: PageContext, previews: MessagePreviews, mailing: Mailing, written: dict[str, Any]
) -> list[Sample]:
    """How it looks; nothing of it where today's limits would not let it be sent any more."""
    try:
        message = validate(MailingMessage, written, languages=None)
        return await previews.samples(page, message, mailing.audience.get("channels"))
    except ApiError as error:
        if error.status >= 500:
            raise
        return []


def _messages(mailing: Mailing) -> list[tuple[str, dict[str, Any]]]:
    """Each variant with its name; one message without."""
    if not mailing.variants:
        return [("", mailing.to_message())]
    return [
        (each["name"], mailing.to_message(number)) for number, each in enumerate(mailing.variants)
    ]


async def _variants(
    page: PageContext, experiments: Experiments, mailing: Mailing
) -> dict[str, Any]:
    counted = await experiments.recent_figures(page.tx, mailing, page.clock.now_ms())
    return {
        "experiment": BroadcastExperimentAnswer.of(mailing),
        "counted": counted,
        "decides_at_ms": decides_at_ms(mailing),
        "can_choose": mailing.is_testing
        and mailing.finished_at_ms is None
        and mailing.status != "cancelled",
    }


async def _change(
    page: PageContext, to: Callable[..., Awaitable[Mailing]], notice: str
) -> Redirect:
    job_id = page.params["job_id"]
    await to(page.tx, page.project_id, job_id)
    page.note(broadcast=job_id)
    return Redirect(page.url(f"/broadcasts/{job_id}"), notice=notice)


async def _mailing(page: PageContext, broadcasts: Broadcasts) -> Mailing:
    return await broadcasts.get(page.tx, page.project_id, page.params["job_id"])


async def _progress(page: PageContext, broadcasts: Broadcasts, clock: Clock) -> dict[str, Any]:
    mailing = await _mailing(page, broadcasts)
    now_ms = clock.now_ms()
    return {
        **_row(mailing),
        "eta_s": mailing.eta_seconds(now_ms),
        "goes_on": mailing.finished_at_ms is None and mailing.status != "paused",
    }


def _row(mailing: Mailing) -> dict[str, Any]:
    return {
        "mailing": mailing,
        "message": mailing.to_message(),
        "done": mailing.done if mailing.finished_at_ms is None else mailing.total,
    }
