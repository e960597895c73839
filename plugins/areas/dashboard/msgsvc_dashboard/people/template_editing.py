"""Edits a template, with a preview by language and messenger."""

from collections.abc import Sequence
from typing import Any

from msgsvc_core.api.validation import validate
from msgsvc_core.config.settings import Settings
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.dashboard import PageContext, PostedForm, Redirect, Render
from msgsvc_core.dashboard.previewing import MessagePreviews, Sample, TriedMessage
from msgsvc_core.dashboard.writing import MessageForm
from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.messages.templates.models import (
    CreateTemplateBody,
    TemplateContent,
    UpdateTemplateBody,
)
from msgsvc_core.messages.templates.service import Templates
from msgsvc_dashboard.people.content import read_variables
from msgsvc_dashboard.people.declared import template_pages as pages
from msgsvc_dashboard.people.template_samples import samples_of

#: The variables of a template, and how it looks.
Tried = tuple[list[str], TriedMessage | None]


@pages.get("/new-template", access="project:write")
async def new(page: PageContext) -> Render:
    given = page.form if page.form.values else PostedForm({"format": ["markdown"]})
    return _form(page, "", given, [], None)


@pages.post(
    "/new-template", access="project:write", form_page=new, title=lambda _: _("Template created")
)
async def create(page: PageContext, templates: Templates) -> Redirect:
    given = {"key": page.form.text("key").strip(), **MessageForm(page.form).content()}
    body = validate(CreateTemplateBody, given, languages=page.languages)
    page.note(template=body.key)
    await templates.create(page.tx, page.project_id, body)
    return Redirect(page.url(f"/templates/{body.key}"), notice=page._("Template saved."))


@pages.get("/templates/{template}", access="project:read")
async def template(
    page: PageContext, templates: Templates, settings: Settings, previews: MessagePreviews
) -> Render:
    key, given = page.params["template"], page.form
    content = await templates.content_of(page.tx, page.project_id, key)
    if not given.values:
        given = PostedForm(MessageForm.values_of(content.model_dump()))
    variables, tried = _tried(page, templates, previews, content)
    samples = samples_of(settings.base_url, key, variables)
    return _form(page, key, given, variables, tried, samples=samples)


@pages.post(
    "/templates/{template}",
    access="project:write",
    form_page=template,
    title=lambda _: _("Template changed"),
)
async def edit(page: PageContext, templates: Templates) -> Redirect:
    key = page.params["template"]
    given = {"media": None, **MessageForm(page.form).content()}
    body = validate(UpdateTemplateBody, given, languages=page.languages)
    page.note(template=key)
    await templates.update(page.tx, page.project_id, key, body)
    return Redirect(page.url(f"/templates/{key}"), notice=page._("Saved."))


@pages.post(
    "/templates/{template}/delete",
    access="project:write",
    form_page=template,
    title=lambda _: _("Template deleted"),
)
async def delete(page: PageContext, templates: Templates) -> Redirect:
    key = page.params["template"]
    page.note(template=key)
    await templates.delete(page.tx, page.project_id, key)
    return Redirect(page.url("/templates"), notice=page._("The template is deleted."))


@pages.post("/template-preview", access="project:write", read_only=True)
async def preview(page: PageContext, templates: Templates, previews: MessagePreviews) -> Render:
    """A preview of the form's values: as a fragment for htmx, otherwise with the form."""
    written = MessageForm(page.form)
    variables: list[str] = []
    tried: TriedMessage | None = None
    if written.is_written:
        try:
            content = validate(TemplateContent, written.content(), languages=page.languages)
            variables, tried = _tried(page, templates, previews, content)
        except ApiError as error:
            tried = TriedMessage(refused=error)
    if page.fragment:
        return Render("template_preview.html", {"variables": variables, "tried": tried})
    return _form(page, page.form.text("of"), page.form, variables, tried)


def _form(
    page: PageContext,
    key: str,
    given: PostedForm,
    variables: list[str],
    tried: TriedMessage | None,
    samples: Sequence[tuple[str, str]] = (),
) -> Render:
    values: dict[str, Any] = {
        "key": key,
        "samples": samples,
        "given": given,
        "variables": variables,
        "tried": tried,
    }
    return Render("template.html", values)


def _tried(
    page: PageContext, templates: Templates, previews: MessagePreviews, content: TemplateContent
) -> Tried:
    variables: list[str] = []
    try:
        variables = templates.variables_of(content)
        return variables, TriedMessage(_samples(page, templates, previews, content))
    except ApiError as error:
        return variables, TriedMessage(refused=error)


def _samples(
    page: PageContext, templates: Templates, previews: MessagePreviews, content: TemplateContent
) -> list[Sample]:
    """One for all languages that are shown the same."""
    values = read_variables(page.form)
    shown: list[tuple[list[str], OutgoingMessage]] = []
    for lang in page.languages:
        message = templates.try_out(content, values, lang)
        alike = next((langs for langs, known in shown if known == message), None)
        if alike is None:
            shown.append(([lang], message))
        else:
            alike.append(lang)
    return [(tuple(langs), previews.of(page, message)) for langs, message in shown]
