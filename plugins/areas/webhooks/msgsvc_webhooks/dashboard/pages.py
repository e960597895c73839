"""Pages: webhooks, the events for them, one webhook with its delivery log, one delivery."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.api.validation import validate
from msgsvc_core.dashboard import ListWalk, Nav, PageContext, Pages, Redirect, Render
from msgsvc_core.kernel.clock import DAY_MS, HOUR_MS, Clock, to_rfc3339
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_webhooks.dashboard.catalogue import EventCatalogue
from msgsvc_webhooks.dashboard.labels import failure, state_of, statuses, what_happened
from msgsvc_webhooks.dashboard.verifying import Verification
from msgsvc_webhooks.models import (
    CreateWebhookBody,
    DeliveryQuery,
    ReplayWebhookBody,
    UpdateWebhookBody,
    Webhook,
)
from msgsvc_webhooks.replays import Replays
from msgsvc_webhooks.service import Webhooks

#: Milliseconds of the times that a replay offers, and their names.
REPLAYS = (("1", HOUR_MS), ("24", DAY_MS), ("168", 7 * DAY_MS))

#: Deliveries among which the last failure of a webhook is looked for: those before it wait for their turn.
LATEST = 10

#: Filters of the delivery log.
FILTERS = ("status", "event")

pages = Pages("webhooks", package="msgsvc_webhooks.dashboard", styles=("webhooks.css",))


@pages.get(
    "/webhooks",
    access="project:read",
    nav=Nav("Webhooks", icon="webhook", group="developers", order=20),
)
async def webhooks(page: PageContext, all_webhooks: Webhooks) -> Render:
    found = await all_webhooks.page(
        page.tx, page.project_id, None, PageQuery(limit=100).fetch_limit
    )
    failures = {
        each.webhook_id: await _last_failure(page, all_webhooks, each.webhook_id)
        for each in found
        if each.failing_since_ms is not None
    }
    return Render(
        "webhooks.html",
        {
            "webhooks": found,
            "failures": failures,
            "most": all_webhooks.settings.endpoints_per_project,
        },
    )


@pages.get("/webhooks/new", access="project:write")
async def new_webhook(page: PageContext, catalogue: EventCatalogue) -> Render:
    groups = catalogue.groups(page._)
    return Render("edit.html", {"webhook": None, "groups": groups, **_chosen(page)})


@pages.post(
    "/webhooks/new",
    access="project:write",
    form_page=new_webhook,
    title=lambda _: _("Webhook created"),
)
async def create_webhook(
    page: PageContext,
    all_webhooks: Webhooks,
    catalogue: EventCatalogue,
    verification: Verification,
) -> Render:
    body = validate(CreateWebhookBody, _typed(page, catalogue))
    webhook, secret = await all_webhooks.create(page.tx, page.project_id, body)
    page.note(webhook_id=webhook.webhook_id)
    values = {"webhook": webhook, "secret": secret, "old_until_ms": None}
    return Render("secret.html", {**values, "snippets": verification.snippets()})


@pages.get("/webhooks/events", access="project:read")
async def webhook_events(page: PageContext, catalogue: EventCatalogue) -> Render:
    return Render("events.html", {"groups": catalogue.groups(page._)})


@pages.get("/webhooks/{webhook_id}", access="project:read")
async def webhook(
    page: PageContext,
    all_webhooks: Webhooks,
    catalogue: EventCatalogue,
    verification: Verification,
) -> Render:
    webhook_id = page.params["webhook_id"]
    found = await all_webhooks.get(page.tx, page.project_id, webhook_id)
    query = validate(DeliveryQuery, _asked(page.query))
    walk = ListWalk(page, f"/webhooks/{webhook_id}", FILTERS)
    logged = await all_webhooks.deliveries(
        page.tx, page.project_id, webhook_id, query, ascending=walk.ascending
    )
    shown = walk.cut(logged, query.limit, lambda entry: entry[0].delivery_id)
    # The list that refreshes itself is a part of the page.
    template = "deliveries.html" if page.fragment == "deliveries" else "webhook.html"
    return Render(
        template,
        {
            "webhook": found,
            "deliveries": [
                (
                    each,
                    state_of(page._, each),
                    what_happened(page._, each, tries),
                    tries[-1].error if tries else None,
                )
                for each, tries in shown
            ],
            "walk": walk,
            "query": query,
            "statuses": statuses(page._),
            "event_choices": [
                ("", page._("all")),
                *((name, name) for name in catalogue.names()),
            ],
            "snippets": verification.snippets(),
        },
    )


@pages.get("/webhooks/{webhook_id}/edit", access="project:write")
async def edit_webhook(
    page: PageContext, all_webhooks: Webhooks, catalogue: EventCatalogue
) -> Render:
    found = await all_webhooks.get(page.tx, page.project_id, page.params["webhook_id"])
    groups = catalogue.groups(page._)
    return Render("edit.html", {"webhook": found, "groups": groups, **_chosen(page, found)})


@pages.post(
    "/webhooks/{webhook_id}/edit",
    access="project:write",
    form_page=edit_webhook,
    title=lambda _: _("Webhook changed"),
)
async def change_webhook(
    page: PageContext, all_webhooks: Webhooks, catalogue: EventCatalogue
) -> Redirect:
    body = validate(UpdateWebhookBody, _typed(page, catalogue))
    return await _changed(page, all_webhooks, body, page._("Saved."))


@pages.post(
    "/webhooks/{webhook_id}/status", access="project:write", title=lambda _: _("Webhook changed")
)
async def set_webhook_status(page: PageContext, all_webhooks: Webhooks) -> Redirect:
    # What is not there is missing, whatever was asked of it.
    await all_webhooks.get(page.tx, page.project_id, page.params["webhook_id"])
    body = validate(UpdateWebhookBody, {"status": page.form.text("status")})
    on = body.status == "active"
    return await _changed(
        page, all_webhooks, body, page._("Enabled.") if on else page._("Disabled.")
    )


@pages.post(
    "/webhooks/{webhook_id}/test", access="project:write", title=lambda _: _("Webhook tested")
)
async def test_webhook(page: PageContext, all_webhooks: Webhooks) -> Redirect:
    webhook_id = page.params["webhook_id"]
    delivery = await all_webhooks.send_test(page.tx, page.project_id, webhook_id)
    return Redirect(page.url(f"/webhooks/deliveries/{delivery.delivery_id}"))


@pages.post(
    "/webhooks/{webhook_id}/secret",
    access="project:write",
    title=lambda _: _("Webhook secret rotated"),
)
async def rotate_webhook_secret(
    page: PageContext, all_webhooks: Webhooks, verification: Verification
) -> Render:
    webhook_id = page.params["webhook_id"]
    secret, until_ms = await all_webhooks.rotate_secret(page.tx, page.project_id, webhook_id)
    found = await all_webhooks.get(page.tx, page.project_id, webhook_id)
    values = {"webhook": found, "secret": secret, "old_until_ms": until_ms}
    return Render("secret.html", {**values, "snippets": verification.snippets()})


@pages.post(
    "/webhooks/{webhook_id}/replay", access="project:write", title=lambda _: _("Events replayed")
)
async def replay_webhook(page: PageContext, clock: Clock, replays: Replays) -> Redirect:
    webhook_id = page.params["webhook_id"]
    back_ms = dict(REPLAYS).get(page.form.text("hours"), REPLAYS[0][1])
    since_ms = clock.now_ms() - back_ms
    body = validate(ReplayWebhookBody, {"since": to_rfc3339(since_ms)})
    answer = await replays.start(page.tx, page.project_id, webhook_id, body)
    notice = page._.ngettext(
        "Replaying: {count} event is checked, and delivered again if it did not arrive.",
        "Replaying: {count} events are checked, and delivered again if they did not arrive.",
        answer.events,
    )
    return Redirect(page.url(f"/webhooks/{webhook_id}"), notice)


@pages.post(
    "/webhooks/{webhook_id}/delete", access="project:write", title=lambda _: _("Webhook deleted")
)
async def delete_webhook(page: PageContext, all_webhooks: Webhooks) -> Redirect:
    await all_webhooks.delete(page.tx, page.project_id, page.params["webhook_id"])
    return Redirect(page.url("/webhooks"), page._("Deleted."))


@pages.get("/webhooks/deliveries/{delivery_id}", access="project:read")
async def webhook_delivery(page: PageContext, all_webhooks: Webhooks) -> Render:
    delivery_id = page.params["delivery_id"]
    delivery, tries = await all_webhooks.delivery(page.tx, page.project_id, delivery_id)
    values = {
        "delivery": delivery,
        # The last one first: that is what somebody looks for.
        "attempts": list(reversed(list(enumerate(tries, start=1)))),
        "said": what_happened(page._, delivery, tries),
        "state": state_of(page._, delivery),
        "payload": json.dumps(json.loads(delivery.body), ensure_ascii=False, indent=2),
        "failure": partial(failure, page._),
    }
    return Render("state.html" if page.fragment == "state" else "delivery.html", values)


@pages.post(
    "/webhooks/deliveries/{delivery_id}/redeliver",
    access="project:write",
    form_page=webhook_delivery,
    title=lambda _: _("Event redelivered"),
)
async def redeliver(page: PageContext, all_webhooks: Webhooks) -> Redirect:
    delivery_id = page.params["delivery_id"]
    await all_webhooks.redeliver(page.tx, page.project_id, delivery_id)
    return Redirect(page.url(f"/webhooks/deliveries/{delivery_id}"), page._("Redelivering."))


async def _last_failure(page: PageContext, all_webhooks: Webhooks, webhook_id: str) -> str:
    """One sentence about the newest delivery that was tried; empty if none of the latest was."""
    query = DeliveryQuery(limit=LATEST)
    logged = await all_webhooks.deliveries(page.tx, page.project_id, webhook_id, query)
    return next((what_happened(page._, each, tries) for each, tries in logged if tries), "")


async def _changed(
    page: PageContext, all_webhooks: Webhooks, body: UpdateWebhookBody, notice: str
) -> Redirect:
    webhook_id = page.params["webhook_id"]
    await all_webhooks.update(page.tx, page.project_id, webhook_id, body)
    return Redirect(page.url(f"/webhooks/{webhook_id}"), notice)


def _chosen(page: PageContext, webhook: Webhook | None = None) -> dict[str, Any]:
    """The events and the whole groups that are ticked: as they were typed, or as they are."""
    if page.error is not None:
        typed = page.form.text("which") == "some"
        return {
            "some": typed,
            "chosen": page.form.texts("events"),
            "whole": page.form.texts("groups"),
        }
    chosen = list(webhook.events) if webhook is not None else []
    return {"some": bool(chosen), "chosen": chosen, "whole": []}


def _typed(page: PageContext, catalogue: EventCatalogue) -> dict[str, Any]:
    every = page.form.text("which") != "some"
    chosen = catalogue.chosen(page.form.texts("events"), page.form.texts("groups"))
    if not every and not chosen:
        # None would be all of them.
        raise ValidationFailed(page._("Choose at least one event, or all."))
    return {
        "url": page.form.text("url").strip(),
        "description": page.form.text("description").strip() or None,
        "events": [] if every else chosen,
    }


def _asked(query: Mapping[str, str]) -> dict[str, str]:
    """What was asked for, without filters that were left empty and what is none."""
    return {name: query[name] for name in (*FILTERS, "cursor") if query.get(name)}
