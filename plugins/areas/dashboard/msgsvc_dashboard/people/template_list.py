"""The templates of a project."""

from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.config.settings import Settings
from msgsvc_core.dashboard import Nav, PageContext, Render
from msgsvc_core.messages.templates.service import Templates
from msgsvc_dashboard.people.content import by_language
from msgsvc_dashboard.people.declared import template_pages as pages
from msgsvc_dashboard.people.filters import older, read_filters


@pages.get(
    "/templates",
    access="project:read",
    nav=Nav("Templates", "template", group="sending", order=30, also=("/new-template",)),
)
async def templates(page: PageContext, all_templates: Templates, settings: Settings) -> Render:
    query, refused = read_filters(page, PageQuery)
    found = await all_templates.page(page.tx, page.project_id, query.after, query.fetch_limit)
    these, cursor = query.cut(found, lambda template: template.template_id)
    lang = settings.default_lang
    return Render(
        "templates.html",
        {
            "templates": [
                (stored, answer, by_language(answer.text, lang))
                for stored, answer in zip(these, all_templates.answers(these), strict=True)
            ],
            "refused": refused,
            "next": older(page, "/templates", cursor),
        },
    )
