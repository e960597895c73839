"""The form builder, with a preview."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

from msgsvc_core.api.validation import validate
from msgsvc_core.dashboard import PageContext, Redirect, Render
from msgsvc_core.kernel.errors import ApiError, Conflict
from msgsvc_core.kernel.i18n import explained
from msgsvc_forms.dashboard.area import pages
from msgsvc_forms.dashboard.draft import Draft
from msgsvc_forms.dashboard.reading import HAS, other_languages, to_body
from msgsvc_forms.definition import Definition
from msgsvc_forms.fields import FieldType
from msgsvc_forms.models import CreateFormBody, UpdateFormBody
from msgsvc_forms.service import Forms
from msgsvc_forms.submissions import Submissions

#: Submissions that would be deleted with a form are counted up to it.
MOST_NAMED = 1000

_WRONG_ROW = re.compile(r"\b(fields|rules)\[(\d+)\]\.?")


@pages.get("/forms/new", access="project:write")
async def new_form(page: PageContext) -> Render:
    """A new form, or rejected values of one."""
    if "fields" in page.form:
        return _shown(page, Draft.posted(page.form))
    return _shown(page, Draft.new(page._("Contact us"), page.lang))


@pages.post(
    "/forms/new", access="project:write", form_page=new_form, title=lambda _: _("Form created")
)
async def create_form(page: PageContext, forms: Forms) -> Redirect:
    draft = Draft.posted(page.form)
    body = {"slug": draft.head["slug"].strip(), **to_body(draft, has=set())}
    wanted = validate(CreateFormBody, body)
    made = await forms.create(page.tx, page.project_id, wanted)
    page.note(form=made.form_id)
    notice = page._("The form is ready. Share it with people.")
    return Redirect(page.url(f"/forms/{made.form_id}/share"), notice=notice)


@pages.post(
    "/forms/draft",
    access="project:write",
    holds_connection=False,
    title=lambda _: _("Form changed"),
)
async def draft_form(page: PageContext) -> Render:
    """The builder after one of its buttons was pressed; nothing is stored yet."""
    draft = Draft.posted(page.form)
    draft.step(page.form.text("do"), page.form.text("new_type", "text"))
    return _shown(page, draft)


@pages.get("/forms/{form_id}/edit", access="project:write")
async def edit_form(page: PageContext, forms: Forms, submissions: Submissions) -> Render:
    """A stored form, or rejected changes of it; its last part deletes it."""
    form = await forms.get(page.tx, page.project_id, page.params["form_id"])
    given = (page.tx, page.project_id, form.form_id)
    stored = {
        "count": await submissions.count(*given, spam=False, limit=MOST_NAMED),
        "spam": await submissions.count(*given, spam=True, limit=MOST_NAMED),
        "most": MOST_NAMED,
    }
    if "fields" in page.form:
        # The conflict has been shown; saving again overwrites.
        draft = replace(Draft.posted(page.form), version=str(form.version))
    else:
        draft = Draft.of(form.form_id, form.slug, form.version, form.definition)
    return _shown(page, draft, stored)


@pages.post(
    "/forms/{form_id}/edit",
    access="project:write",
    form_page=edit_form,
    title=lambda _: _("Form changed"),
)
async def change_form(page: PageContext, all_forms: Forms) -> Redirect:
    """Saves a new version, unless there is a newer one."""
    forms, form_id = all_forms, page.params["form_id"]
    form = await forms.get(page.tx, page.project_id, form_id, lock=True)
    draft = Draft.posted(page.form)
    if draft.version != str(form.version):
        raise Conflict(
            page._(
                "Someone else has changed the form since you opened it. Your changes are still "
                "here: saving now replaces their version."
            )
        )
    if others := other_languages(form.definition):
        raise Conflict(
            page._(
                "The form has texts in languages that the editor does not support ({languages}) "
                "and would lose: change it with the API.",
                languages=", ".join(others),
            )
        )
    has = {name for name, value in form.definition.model_dump().items() if value is not None}
    body = validate(UpdateFormBody, to_body(draft, has=has))
    back = page.url(f"/forms/{form_id}/edit")
    wanted = validate(Definition, body.changed(form.definition))
    if wanted.model_dump() == form.definition.model_dump():
        return Redirect(back, notice=page._("Nothing has changed."))
    changed = await forms.update(page.tx, page.project_id, form_id, body)
    page.note(form=form_id, version=changed.version)
    return Redirect(back, notice=page._("Saved as version {number}.", number=changed.version))


def _shown(page: PageContext, draft: Draft, stored: Mapping[str, int] | None = None) -> Render:
    """`stored` are the submissions that a stored form has."""
    values: dict[str, Any] = {
        "draft": draft,
        "types": get_args(FieldType),
        "has": HAS,
        "problem": "",
        "wrong": ("", -1),
        "stored": stored,
    }
    if page.error is not None:
        values |= _located(page, page.error)
    return Render("builder.html", values)


def _located(page: PageContext, error: ApiError) -> dict[str, Any]:
    """Which question or rule a refusal is about, and the sentence in the page's terms."""

    def named(match: re.Match[str]) -> str:
        number = int(match[2]) + 1
        if match[1] == "fields":
            return page._("Question {number}", number=number) + ", "
        return page._("Rule {number}", number=number) + ", "

    rows = (_WRONG_ROW.search(finding.field) for finding in error.findings)
    found = next((row for row in rows if row is not None), None)
    wrong = ("", -1) if found is None else (found[1], int(found[2]))
    problem = explained(error.findings, page._, lambda field: _WRONG_ROW.sub(named, field))
    return {"problem": problem, "wrong": wrong}
