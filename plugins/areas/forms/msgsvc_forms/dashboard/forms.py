"""Pages: list of forms, sharing, deletion."""

from msgsvc_core.config.settings import Settings
from msgsvc_core.dashboard import Nav, PageContext, Redirect, Render
from msgsvc_forms.dashboard.area import pages
from msgsvc_forms.dashboard.wording import Wording
from msgsvc_forms.models import SubmissionFilters
from msgsvc_forms.service import Forms
from msgsvc_forms.settings import FormsSettings
from msgsvc_forms.sharing import Sharing
from msgsvc_forms.submissions import Submissions

#: Beyond it submissions are "many": a page never counts them all.
MOST_COUNTED = 100

#: Forms per page of the list.
MOST_FORMS = 100


@pages.get("/forms", access="project:read", nav=Nav("Forms", icon="form", group="intake", order=10))
async def forms(
    page: PageContext,
    config: Settings,
    settings: FormsSettings,
    all_forms: Forms,
    submissions: Submissions,
) -> Render:
    found = await all_forms.page(page.tx, page.project_id, None, MOST_FORMS)
    rows = []
    for form in found:
        given = (page.tx, page.project_id, form.form_id)
        newest = await submissions.page(*given, SubmissionFilters(), None, 1)
        rows.append(
            {
                "form": form,
                "count": await submissions.count(*given, spam=False, limit=MOST_COUNTED),
                "spam": await submissions.count(*given, spam=True, limit=MOST_COUNTED),
                "last_ms": newest[0].created_at_ms if newest else None,
            }
        )
    values = {
        "rows": rows,
        "limit": settings.forms_per_project,
        "most": MOST_COUNTED,
        "say": Wording(page, config.default_lang),
    }
    return Render("forms.html", values)


@pages.get("/forms/{form_id}/share", access="project:read")
async def share(
    page: PageContext, settings: Settings, all_forms: Forms, sharing: Sharing
) -> Render:
    """The form's address, links and QR codes for messengers, and HTML for other sites."""
    form = await all_forms.get(page.tx, page.project_id, page.params["form_id"])
    answer = sharing.shown(form)
    base_url = settings.base_url
    mounted_at = page.root.removesuffix("/dashboard")
    values = {
        "form": form,
        "answer": answer,
        "say": Wording(page, settings.default_lang),
        # At the host of the page, which its policy asks for.
        "qr": {name: mounted_at + url.removeprefix(base_url) for name, url in answer.qr.items()},
        "snippet": sharing.snippet(form, page.lang),
    }
    return Render("share.html", values)


@pages.post("/forms/{form_id}/delete", access="project:write", title=lambda _: _("Form deleted"))
async def delete_form(page: PageContext, all_forms: Forms) -> Redirect:
    form = await all_forms.get(page.tx, page.project_id, page.params["form_id"])
    await all_forms.delete(page.tx, page.project_id, form.form_id)
    page.note(form=form.form_id, slug=form.slug)
    return Redirect(page.url("/forms"), notice=page._("The form is deleted."))
