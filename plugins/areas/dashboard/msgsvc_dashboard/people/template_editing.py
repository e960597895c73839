"""Edits a template, with a preview by language and messenger."""

from collections.abc import Sequence
from typing import Any

from msgsvc_core.api.validation import validate
from msgsvc_core.config.settings import Settings
from msgsvc_core.dashboard import PageContext, Redirect, Render
from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.messages.previews import Preview
from msgsvc_core.messages.service import Messages
from msgsvc_core.messages.templates.models import (
    CreateTemplateBody,
    TemplateContent,
    UpdateTemplateBody,
)
from msgsvc_core.messages.templates.service import Templates
from msgsvc_dashboard.people.content import (
    of_template,
    read_content,
    read_variables,
)
from msgsvc_dashboard.people.declared import template_pages as pages
from msgsvc_dashboard.people.template_samples import samples_of

Previews = list[tuple[str, list[Preview]]]

#: The variables of a template, how it looks, and why it could not be shown.
Tried = tuple[list[str], Previews, ApiError | None]


@pages.get("/new-template", access="project:write")
async def new(page: PageContext) -> Render:
    return _form(page, "", {"format": "markdown"}, [], [], None)


@pages.post("/new-template", access="project:write", form_page=new)
async def create(page: PageContext, templates: Templates) -> Redirect:
    given = {"key": page.form.text("key").strip(), **read_content(page.form, page.languages)}
    body = validate(CreateTemplateBody, given, languages=page.languages)
    page.note(template=body.key)
    await templates.create(page.tx, page.project_id, body)
    return Redirect(page.url(f"/templates/{body.key}"), notice=page._("Template saved."))


@pages.get("/templates/{template}", access="project:read")
async def template(
    page: PageContext, templates: Templates, settings: Settings, messages: Messages
) -> Render:
    key = page.params["template"]
    content = await templates.content_of(page.tx, page.project_id, key)
    given = of_template(content, settings.default_lang)
    tried = _tried(page, templates, messages, content)
    return _form(page, key, given, *tried, samples=samples_of(settings.base_url, key, tried[0]))


@pages.post("/templates/{template}", access="project:write", form_page=template)
async def edit(page: PageContext, templates: Templates) -> Redirect:
    key = page.params["template"]
    given = {"media": None, **read_content(page.form, page.languages)}
    body = validate(UpdateTemplateBody, given, languages=page.languages)
    page.note(template=key)
    await templates.update(page.tx, page.project_id, key, body)
    return Redirect(page.url(f"/templates/{key}"), notice=page._("Saved."))


@pages.post("/templates/{template}/delete", access="project:write", form_page=template)
async def delete(page: PageContext, templates: Templates) -> Redirect:
    key = page.params["template"]
    page.note(template=key)
    await templates.delete(page.tx, page.project_id, key)
    return Redirect(page.url("/templates"), notice=page._("The template is deleted."))


@pages.post("/template-preview", access="project:read", read_only=True)
async def preview(page: PageContext, templates: Templates, messages: Messages) -> Render:
    """A preview of the form's values: as a fragment for htmx, otherwise with the form."""
    tried: Tried
    try:
        given = read_content(page.form, page.languages)
        content = validate(TemplateContent, given, languages=page.languages)
        tried = _tried(page, templates, messages, content)
    except ApiError as error:
        tried = [], [], error
    if page.fragment:
        variables, shown, refused = tried
        values = {"shown": shown, "variables": variables, "refused": refused}
        return Render("template_preview.html", values)
    return _form(page, page.form.text("of"), {}, *tried)


def _form(
    page: PageContext,
    key: str,
    given: dict[str, str],
    variables: list[str],
    shown: Previews,
    refused: ApiError | None,
    samples: Sequence[tuple[str, str]] = (),
) -> Render:
    values: dict[str, Any] = {
        "key": key,
        "samples": samples,
        "given": given,
        "variables": variables,
        "shown": shown,
        "refused": refused,
    }
    return Render("template.html", values)


def _tried(
    page: PageContext, templates: Templates, messages: Messages, content: TemplateContent
) -> Tried:
    variables: list[str] = []
    try:
        variables = templates.variables_of(content)
        return variables, _previews(page, messages, templates, content), None
    except ApiError as error:
        return variables, [], error


def _previews(
    page: PageContext, messages: Messages, templates: Templates, content: TemplateContent
) -> Previews:
    values = read_variables(page.form)
    return [
        (
            lang,
            messages.previews(page.project_id, templates.try_out(content, values, lang)),
        )
        for lang in page.languages
    ]
