"""Drip campaigns: the list, one with its steps and counts, and its settings."""

from typing import Any

from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.api.validation import validate
from msgsvc_core.dashboard import Nav, PageContext, Pages, PostedForm, Redirect, Render
from msgsvc_core.dashboard.previewing import MessagePreviews, TriedMessage
from msgsvc_core.dashboard.writing import MessageChoices, MessageForm
from msgsvc_drip.dashboard.filled_in import step_of
from msgsvc_drip.definition import StepMessage
from msgsvc_drip.models import CreateDripBody, Drip, UpdateDripBody
from msgsvc_drip.service import Drips


def declare(pages: Pages) -> None:
    """Registers these pages."""
    nav = Nav("Drip campaigns", icon="chain", group="sending", order=30)
    pages.get("/drips", access="project:read", nav=nav)(listed)
    pages.get("/drips/new", access="project:write")(compose)
    pages.post(
        "/drips", access="project:write", form_page=compose, title=lambda _: _("Campaign created")
    )(create)
    pages.post("/drips/preview", access="project:write", read_only=True)(preview)
    pages.get("/drips/{drip_id}", access="project:read")(chain)
    pages.get("/drips/{drip_id}/edit", access="project:write")(edit)
    pages.post(
        "/drips/{drip_id}/edit",
        access="project:write",
        form_page=edit,
        title=lambda _: _("Campaign changed"),
    )(change)
    pages.post(
        "/drips/{drip_id}/pause",
        access="project:write",
        form_page=chain,
        title=lambda _: _("Campaign paused"),
    )(pause)
    pages.post(
        "/drips/{drip_id}/resume",
        access="project:write",
        form_page=chain,
        title=lambda _: _("Campaign resumed"),
    )(resume)
    pages.post(
        "/drips/{drip_id}/delete",
        access="project:write",
        form_page=chain,
        title=lambda _: _("Campaign deleted"),
    )(delete)


async def get(page: PageContext, drips: Drips) -> Drip:
    """The campaign in the URL. Raises `NotFound`."""
    return await drips.get(page.tx, page.project_id, page.params["drip_id"])


async def drawn(page: PageContext, drips: Drips, drip: Drip) -> dict[str, Any]:
    """Values for a campaign's steps with their counts."""
    return {"chain": drip, "counts": await drips.counts(page.tx, drip)}


async def listed(page: PageContext, drips: Drips) -> Render:
    """All campaigns, newest first."""
    query = validate(
        PageQuery, {"cursor": page.query["cursor"]} if page.query.get("cursor") else {}
    )
    found = await drips.page(page.tx, page.project_id, query.after, query.fetch_limit)
    rows, following = query.cut(found, lambda each: each.drip_id)
    more = page.url("/drips", cursor=following) if following else ""
    return Render("list.html", {"chains": rows, "more": more})


async def compose(page: PageContext, choices: MessageChoices) -> Render:
    """An empty campaign with its first step."""
    return await _form(page, choices)


async def preview(page: PageContext, previews: MessagePreviews, choices: MessageChoices) -> Render:
    """The first step on each messenger: as a fragment for htmx, otherwise with the form."""
    tried = await tried_step(page, previews)
    if page.fragment:
        return Render("step_preview.html", {"tried": tried})
    return await _form(page, choices, tried)


async def create(page: PageContext, drips: Drips) -> Redirect:
    form = page.form
    given = {**_given(form), "steps": [step_of(form)], "status": form.text("status", "paused")}
    made = await drips.create(
        page.tx, page.project_id, validate(CreateDripBody, given, languages=page.languages)
    )
    page.note(drip=made.drip_id)
    return Redirect(
        page.url(f"/drips/{made.drip_id}"),
        notice=page._("The campaign has its first step. Add the others now."),
    )


async def chain(page: PageContext, drips: Drips) -> Render:
    """One campaign with its steps and counts."""
    return Render("chain.html", await drawn(page, drips, await get(page, drips)))


async def edit(page: PageContext, drips: Drips) -> Render:
    """Triggers and exit conditions of a campaign, to edit."""
    found, given = await get(page, drips), page.form
    if not given.values:
        given = PostedForm({name: [text] for name, text in _values(found).items()})
    return Render("edit.html", {"given": given, "chain": found})


async def change(page: PageContext, drips: Drips) -> Redirect:
    drip_id = page.params["drip_id"]
    body = validate(UpdateDripBody, _given(page.form))
    await drips.update(page.tx, page.project_id, drip_id, body)
    return _moved(page, page._("The campaign is changed."))


async def pause(page: PageContext, drips: Drips) -> Redirect:
    drip_id = page.params["drip_id"]
    await drips.set_status(page.tx, page.project_id, drip_id, "paused")
    return _moved(page, page._("Paused."))


async def resume(page: PageContext, drips: Drips) -> Redirect:
    drip_id = page.params["drip_id"]
    await drips.set_status(page.tx, page.project_id, drip_id, "active")
    return _moved(page, page._("Resumed."))


async def delete(page: PageContext, drips: Drips) -> Redirect:
    found = await get(page, drips)
    await drips.delete(page.tx, page.project_id, found.drip_id)
    page.note(drip=found.drip_id, name=found.name)
    return Redirect(page.url("/drips"), notice=page._("The campaign is deleted."))


async def tried_step(page: PageContext, previews: MessagePreviews) -> TriedMessage | None:
    """How the message of a step in the form looks, on the messenger that it is for; None if it is empty."""
    written, channel = MessageForm(page.form), page.form.text("when_channel").strip()
    if not written.is_written:
        return None
    channels = [channel] if channel else None
    return await previews.tried(page, written.message(), channels, model=StepMessage)


async def _form(
    page: PageContext, choices: MessageChoices, tried: TriedMessage | None = None
) -> Render:
    offers = await choices.of(page)
    return Render(
        "compose.html", {"given": page.form, "offers": offers, "chain": None, "tried": tried}
    )


def _moved(page: PageContext, notice: str) -> Redirect:
    drip_id = page.params["drip_id"]
    page.note(drip=drip_id)
    return Redirect(page.url(f"/drips/{drip_id}"), notice=notice)


def _given(form: PostedForm) -> dict[str, Any]:
    """All of a chain but its steps, for `validate` to judge."""
    trigger: dict[str, Any] = {"on": form.text("trigger_on", "subscription")}
    if value := form.text("trigger_value").strip():
        trigger["value"] = value
    stops = (name.strip() for name in form.text("stop_on").split(","))
    return {
        "name": form.text("name").strip(),
        "trigger": trigger,
        "reentry": form.text("reentry", "never"),
        "timezone": form.text("timezone", "UTC").strip(),
        "stop_on": [name for name in stops if name],
    }


def _values(found: Drip) -> dict[str, str]:
    return {
        "name": found.name,
        "trigger_on": found.trigger_on,
        "trigger_value": found.trigger_value,
        "reentry": found.reentry,
        "timezone": found.definition.timezone,
        "stop_on": ", ".join(found.definition.stop_on),
    }
