"""Changes to a ticket from its page: replies, notes, assignee, status, priority, tags, deletion."""

from datetime import datetime, timedelta
from typing import Any

from msgsvc_core.api.validation import validate
from msgsvc_core.dashboard import PageContext, Redirect, Render
from msgsvc_core.files.service import Files
from msgsvc_core.kernel.clock import Clock, to_rfc3339
from msgsvc_core.kernel.errors import Conflict, ValidationFailed
from msgsvc_core.members import Members
from msgsvc_helpdesk.dashboard.acting import who_acts
from msgsvc_helpdesk.dashboard.area import pages
from msgsvc_helpdesk.dashboard.inbox import FILTERS, TicketList
from msgsvc_helpdesk.dashboard.tickets import ticket as ticket_page
from msgsvc_helpdesk.models import (
    Actor,
    MergeTicketBody,
    ReplyToTicketBody,
    Ticket,
    UpdateTicketBody,
)
from msgsvc_helpdesk.service import Tickets

#: Bytes of an answer with its files, as of a form's; each file keeps to the limits of media too.
UPLOAD_BYTES = 60 * 1024 * 1024

#: Files of one answer: each is a message of its own.
MOST_FILES = 5

#: Newest entries in which a colleague's reply is looked for.
UNSEEN = 50

#: The part of the page that says a choice was saved, without loading the page again.
SAVED = "saved"

#: Hour of the morning until which a ticket is snoozed.
MORNING = 9


@pages.post(
    "/tickets/{ticket_id}/reply",
    access="customers:write",
    form_page=ticket_page,
    upload_bytes=UPLOAD_BYTES,
    title=lambda _: _("Ticket answered"),
)
async def reply(page: PageContext, files: Files, tickets: Tickets, members: Members) -> Redirect:
    """Replies to the customer: a text, and each file as a message after it."""
    ticket, actor = await _begun(page, tickets, members)
    await _check_seen(page, ticket, actor, tickets, members)
    parts = await _parts(page, files)
    for number, (text, file_id) in enumerate(parts, start=1):
        # What the ticket becomes, it becomes with the last of them.
        then = page.form.text("status", "pending") if number == len(parts) else "pending"
        text_format = page.form.text("format", "plain")
        body = {"text": text, "format": text_format, "file_id": file_id, "status": then}
        wanted = validate(ReplyToTicketBody, body)
        await tickets.reply(page.tx, page.project_id, ticket.ticket_id, wanted.to_reply(), actor)
    return _back(page, ticket, page._("The answer is being sent."))


@pages.post(
    "/tickets/{ticket_id}/note",
    access="customers:write",
    form_page=ticket_page,
    title=lambda _: _("Note added to a ticket"),
)
async def note(page: PageContext, tickets: Tickets, members: Members) -> Redirect:
    """Adds an internal note."""
    ticket, actor = await _begun(page, tickets, members)
    text = page.form.text("note").strip()
    if not text:
        raise ValidationFailed(page._("Write the note first."))
    wanted = validate(ReplyToTicketBody, {"text": text, "internal": True})
    await tickets.reply(page.tx, page.project_id, ticket.ticket_id, wanted.to_reply(), actor)
    return _back(page, ticket, page._("The note is saved."))


@pages.post(
    "/tickets/{ticket_id}/assign",
    access="customers:write",
    form_page=ticket_page,
    title=lambda _: _("Ticket assigned"),
)
async def assign(
    page: PageContext, tickets: Tickets, members: Members, listing: TicketList
) -> Redirect | Render:
    """Assigns the ticket to a member, to the current one (`me`), or unassigns it."""
    ticket, actor = await _begun(page, tickets, members)
    whom = page.form.text("assignee_id")
    assignee_id = actor.member_id if whom == "me" else whom or None
    wanted = await _change(page, tickets, ticket, actor, assignee_id=assignee_id)
    page.note(assignee_id=wanted.assignee_id)
    if page.fragment == SAVED:
        values = await _in_place(page, ticket, tickets, listing)
        name = values["names"].get(wanted.assignee_id) or page._("Unassigned")
        notice = page._("Saved. Assignee: {name}", name=name)
        return Render("saved.html", {**values, "notice": notice})
    notice = page._("The ticket is reassigned.")
    return _back(
        page, ticket, notice if wanted.assignee_id else page._("The ticket is unassigned.")
    )


@pages.post(
    "/tickets/{ticket_id}/status",
    access="customers:write",
    form_page=ticket_page,
    title=lambda _: _("Ticket changed"),
)
async def status(page: PageContext, tickets: Tickets, members: Members) -> Redirect:
    ticket, actor = await _begun(page, tickets, members)
    wanted = await _change(page, tickets, ticket, actor, status=page.form.text("status"))
    page.note(status=wanted.status)
    if wanted.status == "closed":
        return _back(page, ticket, page._("The ticket is closed."))
    return _back(page, ticket, page._("Saved."))


@pages.post(
    "/tickets/{ticket_id}/snooze",
    access="customers:write",
    form_page=ticket_page,
    title=lambda _: _("Ticket snoozed"),
)
async def snooze(page: PageContext, clock: Clock, tickets: Tickets, members: Members) -> Redirect:
    """Snoozes the ticket for a while, or until a time in the reader's time zone."""
    ticket, actor = await _begun(page, tickets, members)
    until = to_rfc3339(round(_until(page, clock).timestamp() * 1000))
    await _change(page, tickets, ticket, actor, snoozed_until=until)
    return _back(page, ticket, page._("The ticket is snoozed."))


@pages.post(
    "/tickets/{ticket_id}/priority",
    access="customers:write",
    form_page=ticket_page,
    title=lambda _: _("Ticket changed"),
)
async def priority(
    page: PageContext, tickets: Tickets, members: Members, listing: TicketList
) -> Redirect | Render:
    ticket, actor = await _begun(page, tickets, members)
    wanted = await _change(page, tickets, ticket, actor, priority=page.form.text("priority"))
    page.note(priority=wanted.priority)
    if page.fragment == SAVED:
        return Render(
            "saved.html", {**await _in_place(page, ticket, tickets, listing), "notice": ""}
        )
    return _back(page, ticket, page._("Saved."))


@pages.post(
    "/tickets/{ticket_id}/tags",
    access="customers:write",
    form_page=ticket_page,
    title=lambda _: _("Ticket changed"),
)
async def tags(page: PageContext, tickets: Tickets, members: Members) -> Redirect:
    """The tags as one text, with commas between them."""
    ticket, actor = await _begun(page, tickets, members)
    named = [tag.strip() for tag in page.form.text("tags").split(",")]
    await _change(page, tickets, ticket, actor, tags=[tag for tag in named if tag])
    return _back(page, ticket, page._("Saved."))


@pages.post(
    "/tickets/{ticket_id}/merge",
    access="customers:write",
    form_page=ticket_page,
    title=lambda _: _("Tickets merged"),
)
async def merge(page: PageContext, tickets: Tickets, members: Members) -> Redirect:
    """Moves what was said to another ticket of the customer, named by its number."""
    ticket, actor = await _begun(page, tickets, members)
    into = validate(
        MergeTicketBody, {"into": page.form.text("into").strip().removeprefix("#")}
    ).into
    merged = await tickets.merge(page.tx, page.project_id, ticket.ticket_id, into, actor)
    page.note(into=merged.ticket_id)
    return _back(page, merged, page._("The tickets are merged."))


@pages.post(
    "/tickets/{ticket_id}/delete",
    access="project:write",
    form_page=ticket_page,
    title=lambda _: _("Ticket deleted"),
)
async def delete(page: PageContext, tickets: Tickets) -> Redirect:
    ticket_id = page.params["ticket_id"]
    found = await tickets.get(page.tx, page.project_id, ticket_id)
    page.note(ticket=found.ticket_id, number=found.number)
    await tickets.delete(page.tx, page.project_id, found.ticket_id)
    notice = page._("Ticket #{number} is deleted.", number=found.number)
    return Redirect(page.url("/tickets"), notice=notice)


async def _parts(page: PageContext, all_files: Files) -> list[tuple[str, str | None]]:
    """The messages of an answer: text, and id of the file that goes with it. Raises `ValidationFailed`."""
    text, files = page.form.text("text").strip(), page.form.files.get("files", ())
    if len(files) > MOST_FILES:
        raise ValidationFailed(page._("Send at most {most} files at once.", most=MOST_FILES))
    if not text and not files:
        raise ValidationFailed(page._("Write an answer, or choose a file."))
    parts: list[tuple[str, str | None]] = []
    for posted in files:
        file = await all_files.add(
            page.tx, page.project_id, filename=posted.filename, content=posted.file
        )
        parts.append((text or file.filename, file.file_id))
        text = ""
    return parts or [(text, None)]


async def _begun(page: PageContext, tickets: Tickets, members: Members) -> tuple[Ticket, Actor]:
    """The ticket of the URL, and the acting member. Raises `NotFound`, `Forbidden`."""
    found = await tickets.get(page.tx, page.project_id, page.params["ticket_id"])
    page.note(ticket=found.ticket_id)
    member = await who_acts(page, members)
    return found, Actor("agent", member.member_id)


async def _change(
    page: PageContext, tickets: Tickets, ticket: Ticket, actor: Actor, **changes: Any
) -> UpdateTicketBody:
    """Changes the ticket as the API does; returns the changes. Raises `ValidationFailed`."""
    wanted = validate(UpdateTicketBody, changes)
    await tickets.update(page.tx, page.project_id, ticket.ticket_id, wanted.to_update(), actor)
    return wanted


async def _check_seen(
    page: PageContext, ticket: Ticket, actor: Actor, tickets: Tickets, members: Members
) -> None:
    """Raises `Conflict` if a colleague has replied since the page was read: the page is shown again with
    that reply, and sending once more sends this one too."""
    seen = page.form.text("seen")
    if not seen:
        return
    # Two replies at the same moment: the second one sees the first.
    await page.tx.lock(f"replies to {ticket.ticket_id}")
    newest = await tickets.entries(page.tx, page.project_id, ticket.ticket_id, None, UNSEEN)
    unseen = [
        entry
        for entry in newest
        if entry.entry_id > seen
        and entry.author == "agent"
        and not entry.internal
        and entry.member_id != actor.member_id
    ]
    if unseen:
        ids = [unseen[0].member_id or ""]
        member = (await members.get_many(page.tx, page.project_id, ids)).get(ids[0])
        who = member.name if member else page._("A colleague")
        text = page._(
            "{name} has replied meanwhile, see above. Send again if yours is still needed.",
            name=who,
        )
        raise Conflict(text)


async def _in_place(
    page: PageContext, ticket: Ticket, tickets: Tickets, listing: TicketList
) -> dict[str, Any]:
    """What the head of the ticket's page shows after a change."""
    changed = await tickets.get(page.tx, page.project_id, ticket.ticket_id)
    return {**await listing.listed(page, ticket.ticket_id), "ticket": changed}


def _back(page: PageContext, ticket: Ticket, notice: str) -> Redirect:
    kept = {name: page.query.get(name, "") for name in FILTERS}
    if page.form.text("to") == "list":
        return Redirect(page.url("/tickets", **kept), notice=notice)
    return Redirect(page.url(f"/tickets/{ticket.ticket_id}", **kept), notice=notice)


def _until(page: PageContext, clock: Clock) -> datetime:
    """When the ticket comes back. Raises `ValidationFailed`."""
    now = datetime.fromtimestamp(clock.now_ms() / 1000, page.timezone)
    chosen = page.form.text("for")
    if chosen == "hour":
        return now + timedelta(hours=1)
    days = {"tomorrow": 1, "days": 3, "week": 7}.get(chosen)
    if days is not None:
        return (now + timedelta(days=days)).replace(hour=MORNING, minute=0, second=0, microsecond=0)
    try:
        return datetime.fromisoformat(page.form.text("snoozed_until")).replace(tzinfo=page.timezone)
    except ValueError:
        raise ValidationFailed(page._("Choose how long to snooze the ticket.")) from None
