"""Imports of people: a file, how far it is, and what was refused of it."""

import asyncio

from msgsvc_core.api.exports import Exports
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.api.validation import validate
from msgsvc_core.channels.registry import Channels
from msgsvc_core.dashboard import Download, PageContext, Redirect, Render
from msgsvc_core.db import Database
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.subscribers.imports import PeopleImports
from msgsvc_core.subscribers.imports.models import ImportParts
from msgsvc_dashboard.accounts.audit import Audit
from msgsvc_dashboard.people import labels
from msgsvc_dashboard.people.declared import subscriber_pages as pages
from msgsvc_dashboard.people.filters import older, read_filters

#: Bytes of a form with a file: the most that `limits.import_bytes` can be, and the other fields.
UPLOAD_BYTES = 104_857_600 + 16_384


@pages.get("/subscribers/imports", access="customers:read")
async def import_list(page: PageContext, imports: PeopleImports, channels: Channels) -> Render:
    query, refused = read_filters(page, PageQuery)
    found = await imports.page(page.tx, page.project_id, query)
    shown, cursor = query.cut(found, lambda one: one.import_id)
    return Render(
        "imports.html",
        {
            "imports": shown,
            "refused": refused,
            "words": labels,
            "channels": [channel.name for channel in channels.list_for_project(page.project_id)],
            "most_mib": imports.most_bytes / 1_048_576,
            "next": older(page, "/subscribers/imports", cursor),
        },
    )


@pages.post(
    "/subscribers/imports",
    access="project:write",
    form_page=import_list,
    upload_bytes=UPLOAD_BYTES,
    holds_connection=False,
    title=lambda _: _("Import started"),
)
async def start_import(
    page: PageContext, imports: PeopleImports, db: Database, audit: Audit
) -> Redirect:
    """A large file is read for seconds, without a transaction."""
    form = page.form
    given = {
        "channel": form.text("channel") or None,
        "consent": form.text("consent"),
        "same_bot": form.checked("same_bot"),
        "mapping": form.text("mapping").strip() or None,
        "dry_run": form.checked("dry_run"),
    }
    query = validate(ImportParts, given)
    file = form.file("file")
    if file is None:
        raise ValidationFailed("choose a file", field="file")
    content = await asyncio.to_thread(file.file.read, imports.most_bytes + 1)
    prepared = await imports.prepare(page.project_id, content, query)
    async with db.transaction() as tx:
        started = await imports.start(tx, prepared)
        await audit.write(
            tx,
            "subscribers.start_import",
            project_id=page.project_id,
            account_id=page.viewer.account_id,
            detail={
                "import_id": started.import_id,
                "rows": started.total,
                "dry_run": started.dry_run,
            },
            ip=page.ip,
        )
    return Redirect(page.url(f"/subscribers/imports/{started.import_id}"))


@pages.get("/subscribers/imports/{import_id}", access="customers:read")
async def one_import(page: PageContext, imports: PeopleImports) -> Render:
    found = await imports.get(page.tx, page.project_id, page.params["import_id"])
    template = "import_state.html" if page.fragment == "state" else "import.html"
    return Render(template, {"found": found, "words": labels})


@pages.get(
    "/subscribers/imports/{import_id}/report", access="project:write", holds_connection=False
)
async def import_report(
    page: PageContext, imports: PeopleImports, db: Database, exports: Exports
) -> Download:
    import_id = page.params["import_id"]
    async with db.read() as tx:
        # Before the response begins.
        await imports.get(tx, page.project_id, import_id)
    pieces = imports.report(db, page.project_id, import_id)
    return Download(exports.start(page.project_id, pieces), f"{import_id}.csv")


@pages.post(
    "/subscribers/imports/{import_id}/cancel",
    access="project:write",
    form_page=one_import,
    title=lambda _: _("Import cancelled"),
)
async def cancel_import(page: PageContext, imports: PeopleImports) -> Redirect:
    import_id = page.params["import_id"]
    found = await imports.cancel(page.tx, page.project_id, import_id)
    page.note(import_id=import_id, reached=found.reached)
    return Redirect(
        page.url(f"/subscribers/imports/{import_id}"),
        notice=page._("Cancelled. What was done stays."),
    )
