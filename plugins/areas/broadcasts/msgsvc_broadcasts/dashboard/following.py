"""Pages of broadcasts: list, progress, recipients, and actions such as pause and cancel."""

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from msgsvc_broadcasts.dashboard.composing import previews
from msgsvc_broadcasts.models import BroadcastQuery, RecipientQuery
from msgsvc_broadcasts.service import SOURCE, Broadcasts
from msgsvc_core.api.validation import validate
from msgsvc_core.dashboard import Nav, PageContext, Pages, Redirect, Render
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.mailings import Mailing, MailingMessage
from msgsvc_core.mailings.service import Mailings
from msgsvc_core.messages.previews import Preview
from msgsvc_core.messages.service import Messages
from msgsvc_core.subscribers.service import Subscribers

#: Broadcasts on the overview.
_ON_CARD = 4

#: Failed recipients that are looked at to say what failed: the newest ones.
_MOST_REASONS = 500


def declare(pages: Pages) -> None:
    """Registers these pages."""
    nav = Nav("Broadcasts", icon="megaphone", group="sending", order=10)
    pages.get("/broadcasts", access="project:read", nav=nav)(listed)
    pages.get("/broadcasts/{job_id}", access="project:read")(broadcast)
    pages.get("/broadcasts/{job_id}/progress", access="project:read")(progress)
    pages.get("/broadcasts/{job_id}/recipients", access="project:read")(recipients)
    pages.post("/broadcasts/{job_id}/pause", access="project:write", form_page=broadcast)(pause)
    pages.post("/broadcasts/{job_id}/resume", access="project:write", form_page=broadcast)(resume)
    pages.post("/broadcasts/{job_id}/cancel", access="project:write", form_page=broadcast)(cancel)
    pages.post("/broadcasts/{job_id}/resend", access="project:write", form_page=broadcast)(resend)
    pages.card(access="project:read", order=40)(card)


async def listed(page: PageContext, mailings: Mailings) -> Render:
    """All broadcasts, newest first."""
    query = validate(
        BroadcastQuery,
        {name: page.query[name] for name in ("status", "cursor") if page.query.get(name)},
    )
    found = await mailings.page(
        page.tx, page.project_id, SOURCE, query.status, query.after, query.fetch_limit
    )
    rows, following = query.cut(found, lambda mailing: mailing.job_id)
    more = page.url("/broadcasts", status=query.status, cursor=following) if following else ""
    return Render(
        "list.html", {"rows": [_row(each) for each in rows], "more": more, "status": query.status}
    )


async def card(page: PageContext, mailings: Mailings) -> Render:
    """The latest broadcasts, including running ones."""
    found = await mailings.page(page.tx, page.project_id, SOURCE, None, None, _ON_CARD)
    return Render("card.html", {"rows": [_row(each) for each in found]})


async def broadcast(
    page: PageContext, broadcasts: Broadcasts, mailings: Mailings, messages: Messages, clock: Clock
) -> Render:
    """One broadcast: message, audience, progress and failures."""
    values = await _progress(page, broadcasts, clock)
    mailing: Mailing = values["mailing"]
    failed = await mailings.recipients(page.tx, mailing, "failed", None, _MOST_REASONS)
    reasons = Counter(each.reason or "unknown" for each in failed)
    unknown = await mailings.recipients(page.tx, mailing, "unknown", None, 1)
    return Render(
        "broadcast.html",
        {
            **values,
            "shown": await _shown(page, mailings, messages, mailing),
            "audience": mailing.shown_audience,
            "reasons": reasons.most_common(),
            "looked_at": len(failed) if len(failed) == _MOST_REASONS else 0,
            "can_resend": bool(unknown)
            and mailing.finished_at_ms is not None
            and not await mailings.was_resent(page.tx, mailing),
            "until_ms": mailings.recipients_until_ms(mailing),
        },
    )


async def progress(page: PageContext, broadcasts: Broadcasts, clock: Clock) -> Render:
    """A fragment with the progress, polled while it is running."""
    return Render("progress.html", await _progress(page, broadcasts, clock))


async def recipients(
    page: PageContext, broadcasts: Broadcasts, mailings: Mailings, subscribers: Subscribers
) -> Render:
    """The recipients and their outcomes."""
    mailing = await _mailing(page, broadcasts)
    query = validate(
        RecipientQuery,
        {name: page.query[name] for name in ("status", "cursor") if page.query.get(name)},
    )
    found = await mailings.recipients(
        page.tx, mailing, query.status, query.after, query.fetch_limit
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
            "more": page.url(here, status=query.status, cursor=following) if following else "",
        },
    )


async def pause(page: PageContext, mailings: Mailings) -> Redirect:
    return await _change(page, mailings.pause, page._("Paused."))


async def resume(page: PageContext, mailings: Mailings) -> Redirect:
    return await _change(page, mailings.resume, page._("Resumed."))


async def cancel(page: PageContext, mailings: Mailings) -> Redirect:
    return await _change(page, mailings.cancel, page._("The broadcast is cancelled."))


async def resend(page: PageContext, broadcasts: Broadcasts) -> Redirect:
    """Starts a broadcast to the recipients with an unknown outcome."""
    job_id = page.params["job_id"]
    taken = await broadcasts.resend_unknown(page.tx, page.project_id, job_id)
    page.note(broadcast=taken.job_id, resend_of=job_id)
    return Redirect(
        page.url(f"/broadcasts/{taken.job_id}"), notice=page._("The broadcast is being sent.")
    )


async def _shown(
    page: PageContext, mailings: Mailings, messages: Messages, mailing: Mailing
) -> list[tuple[str, list[Preview]]]:
    """How it looks; nothing of it where today's limits would not let it be sent any more."""
    try:
        message = validate(MailingMessage, mailing.to_message(), languages=None)
        return await previews(page, mailings, messages, message, mailing.audience.get("channels"))
    except ApiError as error:
        if error.status >= 500:
            raise
        return []


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
