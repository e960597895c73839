"""Actions on several subscribers of the list: a tag, a file, an erasure; and how far they are."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

from msgsvc_core.api.exports import Exports
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.api.validation import validate
from msgsvc_core.dashboard import Download, PageContext, Redirect, Render
from msgsvc_core.db import Database
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Forbidden, ValidationFailed
from msgsvc_core.subscribers.bulk_actions.models import StartBulkActionBody
from msgsvc_core.subscribers.bulk_actions.service import BulkActions
from msgsvc_core.subscribers.contacts import VerifiedContacts
from msgsvc_core.subscribers.export import chosen_to_csv
from msgsvc_core.subscribers.models import SubscriberFilters
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_dashboard.people import labels
from msgsvc_dashboard.people.declared import subscriber_pages as pages
from msgsvc_dashboard.people.filters import older, read_filters
from msgsvc_dashboard.people.permissions import typed_count
from msgsvc_dashboard.people.subscribers import FILTERS, may_export, subscribers


@pages.post(
    "/subscribers/bulk",
    access="project:write",
    form_page=subscribers,
    title=lambda _: _("Bulk action started"),
)
async def start_bulk_action(
    page: PageContext,
    bulk_actions: BulkActions,
    db: Database,
    clock: Clock,
    all_subscribers: Subscribers,
    contacts: VerifiedContacts,
    exports: Exports,
) -> Redirect | Download:
    form = page.form
    filters, refused = read_filters(page, SubscriberFilters, *FILTERS)
    if refused:
        raise refused
    who, action = form.text("who"), form.text("action")
    chosen = form.texts({"page": "on_page"}.get(who, "id"))
    if who == "all" and page.query.get("query"):
        raise ValidationFailed("a search is not one of the filters", field="who")
    if who != "all" and not chosen:
        raise ValidationFailed("check one of the subscribers at least", field="who")
    page.note(bulk_action=action, who=who)
    if action == "export":
        day = datetime.fromtimestamp(clock.now_ms() / 1000, UTC)
        pieces = chosen_to_csv(db, all_subscribers, contacts, page.project_id, chosen)
        return _export(page, who, exports, pieces, f"subscribers-{day:%Y-%m-%d}.csv")
    # Not `tag`, which is a filter of the same page.
    tag = None if action == "erase" else form.text("bulk_tag").strip()
    if tag == "":
        raise ValidationFailed("give the tag", field="bulk_tag")
    about = {"all": True} if who == "all" else {"subscriber_ids": chosen}
    body = validate(StartBulkActionBody, {"action": action, "value": tag, **about})
    if who == "all" and filters != SubscriberFilters():
        body = body.model_copy(update={"all": False, "filters": filters})
    bulk = await bulk_actions.start(page.tx, page.project_id, body)
    page.note(bulk_action_id=bulk.bulk_action_id, tag=bulk.label)
    return Redirect(page.url(f"/subscribers/bulk/{bulk.bulk_action_id}"))


def _export(
    page: PageContext, who: str, exports: Exports, chosen: AsyncIterator[bytes], name: str
) -> Redirect | Download:
    """The file of those who are checked, or of the list."""
    if not may_export(page):
        raise Forbidden("CSV export needs a larger plan")
    if who != "all":
        return Download(exports.start(page.project_id, chosen), name)
    given = {name: page.query.get(name, "") for name in FILTERS}
    return Redirect(page.url("/subscribers/export", **given))


@pages.get("/subscribers/bulk", access="customers:read")
async def bulk_action_list(page: PageContext, bulk_actions: BulkActions) -> Render:
    query, refused = read_filters(page, PageQuery)
    found = await bulk_actions.page(page.tx, page.project_id, query)
    shown, cursor = query.cut(found, lambda bulk: bulk.bulk_action_id)
    return Render(
        "bulk_actions.html",
        {
            "bulk_actions": shown,
            "refused": refused,
            "words": labels,
            "next": older(page, "/subscribers/bulk", cursor),
        },
    )


@pages.get("/subscribers/bulk/{bulk_action_id}", access="customers:read")
async def bulk_action(page: PageContext, bulk_actions: BulkActions) -> Render:
    bulk = await bulk_actions.get(page.tx, page.project_id, page.params["bulk_action_id"])
    template = "bulk_action_state.html" if page.fragment == "state" else "bulk_action.html"
    return Render(template, {"bulk": bulk, "words": labels})


@pages.post(
    "/subscribers/bulk/{bulk_action_id}/confirm",
    access="project:write",
    form_page=bulk_action,
    title=lambda _: _("Bulk action confirmed"),
)
async def confirm_bulk_action(page: PageContext, bulk_actions: BulkActions) -> Redirect:
    total = typed_count(page.form.text("confirmed"))
    if total is None:
        raise ValidationFailed("type the number of subscribers to erase", field="confirmed")
    bulk_action_id = page.params["bulk_action_id"]
    bulk = await bulk_actions.confirm(page.tx, page.project_id, bulk_action_id, total)
    page.note(bulk_action=bulk.action, total=bulk.total)
    return Redirect(page.url(f"/subscribers/bulk/{bulk_action_id}"))


@pages.post(
    "/subscribers/bulk/{bulk_action_id}/cancel",
    access="project:write",
    form_page=bulk_action,
    title=lambda _: _("Bulk action cancelled"),
)
async def cancel_bulk_action(page: PageContext, bulk_actions: BulkActions) -> Redirect:
    bulk_action_id = page.params["bulk_action_id"]
    bulk = await bulk_actions.cancel(page.tx, page.project_id, bulk_action_id)
    page.note(bulk_action=bulk.action, done=bulk.done)
    return Redirect(
        page.url(f"/subscribers/bulk/{bulk_action_id}"),
        notice=page._("Cancelled. What was done stays."),
    )
