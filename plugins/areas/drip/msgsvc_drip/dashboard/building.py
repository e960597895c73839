"""Pages for editing a campaign's steps: add, change, move and remove."""

from typing import Any

from msgsvc_core.api.validation import validate
from msgsvc_core.dashboard import PageContext, Pages, PostedForm, Redirect, Render
from msgsvc_core.dashboard.previewing import MessagePreviews, TriedMessage
from msgsvc_core.dashboard.writing import MessageChoices
from msgsvc_core.kernel.errors import Conflict, NotFound, ValidationFailed
from msgsvc_core.kernel.values import whole_number
from msgsvc_drip.dashboard.chains import chain, drawn, get, tried_step
from msgsvc_drip.dashboard.filled_in import form_of_step, step_of
from msgsvc_drip.models import Drip, UpdateDripBody
from msgsvc_drip.service import Drips

Steps = list[dict[str, Any]]


def declare(pages: Pages) -> None:
    """Registers these pages."""
    pages.get("/drips/{drip_id}/steps/new", access="project:write")(new_step)
    pages.post(
        "/drips/{drip_id}/steps/new",
        access="project:write",
        form_page=new_step,
        title=lambda _: _("Campaign changed"),
    )(add_step)
    pages.post("/drips/{drip_id}/steps/new/preview", access="project:write", read_only=True)(
        preview_new_step
    )
    pages.get("/drips/{drip_id}/steps/{number}", access="project:write")(step)
    pages.post(
        "/drips/{drip_id}/steps/{number}",
        access="project:write",
        form_page=step,
        title=lambda _: _("Campaign changed"),
    )(change_step)
    pages.post("/drips/{drip_id}/steps/{number}/preview", access="project:write", read_only=True)(
        preview_step
    )
    pages.post(
        "/drips/{drip_id}/steps/{number}/move",
        access="project:write",
        form_page=chain,
        title=lambda _: _("Campaign changed"),
    )(move_step)
    pages.post(
        "/drips/{drip_id}/steps/{number}/remove",
        access="project:write",
        form_page=chain,
        title=lambda _: _("Campaign changed"),
    )(remove_step)


async def new_step(page: PageContext, drips: Drips, choices: MessageChoices) -> Render:
    """An empty step, after another or at the beginning."""
    found = await get(page, drips)
    place = page.form.text("place") or page.query.get("place") or str(len(found.definition.steps))
    return await _form(page, choices, found, page.form, place=place)


async def preview_new_step(
    page: PageContext, drips: Drips, previews: MessagePreviews, choices: MessageChoices
) -> Render:
    """A new step on each messenger: as a fragment for htmx, otherwise with the form."""
    found, tried = await get(page, drips), await tried_step(page, previews)
    if page.fragment:
        return Render("step_preview.html", {"tried": tried})
    return await _form(page, choices, found, page.form, tried, place=page.form.text("place"))


async def add_step(page: PageContext, drips: Drips) -> Redirect | Render:
    found = await get(page, drips)
    steps, place = _steps(found), whole_number(page.form.text("place"))
    if place is None or place > len(steps):
        raise ValidationFailed("there is no such place in the campaign", field="place")
    steps.insert(place, step_of(page.form))
    return await _saved(page, drips, steps, page._("The step is added."))


async def step(page: PageContext, drips: Drips, choices: MessageChoices) -> Render:
    """A step, or its submitted values."""
    found = await get(page, drips)
    place = _place(page, found)
    given = page.form
    if not given.values:
        given = form_of_step(found.definition.steps[place])
    return await _form(page, choices, found, given, number=place + 1)


async def preview_step(
    page: PageContext, drips: Drips, previews: MessagePreviews, choices: MessageChoices
) -> Render:
    """An edited step on each messenger: as a fragment for htmx, otherwise with the form."""
    found = await get(page, drips)
    number, tried = _place(page, found) + 1, await tried_step(page, previews)
    if page.fragment:
        return Render("step_preview.html", {"tried": tried})
    return await _form(page, choices, found, page.form, tried, number=number)


async def change_step(page: PageContext, drips: Drips) -> Redirect | Render:
    found = await get(page, drips)
    steps, place = _steps(found), _place(page, found)
    steps[place] = step_of(page.form, steps[place])
    return await _saved(page, drips, steps, page._("The step is changed."))


async def move_step(page: PageContext, drips: Drips) -> Redirect | Render:
    """Moves a step up or down."""
    found = await get(page, drips)
    steps, place = _steps(found), _place(page, found)
    to = place + (1 if page.form.text("to") == "later" else -1)
    if 0 <= to < len(steps):
        steps[place], steps[to] = steps[to], steps[place]
    return await _saved(page, drips, steps, page._("The step is moved."))


async def remove_step(page: PageContext, drips: Drips) -> Redirect | Render:
    found = await get(page, drips)
    steps = _steps(found)
    if len(steps) == 1:
        raise Conflict(
            "a campaign needs at least one step: change this one, or delete the campaign"
        )
    del steps[_place(page, found)]
    return await _saved(page, drips, steps, page._("The step is removed."))


async def _saved(page: PageContext, drips: Drips, steps: Steps, notice: str) -> Redirect | Render:
    """If the page shows the campaign already, only that part is rendered again."""
    version = whole_number(page.form.text("version"))
    if version is None:
        raise ValidationFailed("review the campaign once more", field="version")
    body = validate(UpdateDripBody, {"steps": steps}, languages=page.languages)
    drip_id = page.params["drip_id"]
    changed = await drips.update(page.tx, page.project_id, drip_id, body, version=version)
    page.note(drip=drip_id, version=changed.version)
    if page.fragment == "chain":
        return Render("links.html", await drawn(page, drips, changed))
    return Redirect(page.url(f"/drips/{drip_id}"), notice=notice)


async def _form(
    page: PageContext,
    choices: MessageChoices,
    found: Drip,
    given: PostedForm,
    tried: TriedMessage | None = None,
    *,
    number: int | None = None,
    place: str = "",
) -> Render:
    return Render(
        "step.html",
        {
            "chain": found,
            "given": given,
            "offers": await choices.of(page),
            "tried": tried,
            "number": number,
            "place": place,
        },
    )


def _steps(found: Drip) -> Steps:
    return [each.model_dump(mode="json", exclude_unset=True) for each in found.definition.steps]


def _place(page: PageContext, found: Drip) -> int:
    """Raises `NotFound`."""
    written = page.params["number"]
    number = whole_number(written)
    if number is None or not 1 <= number <= len(found.definition.steps):
        raise NotFound("the campaign has no step {step!r}", step=written)
    return number - 1
