"""What a search finds of forms."""

from collections.abc import Sequence

from msgsvc_core.config.settings import Settings
from msgsvc_core.dashboard import Hit, PageContext
from msgsvc_forms.dashboard.area import pages
from msgsvc_forms.dashboard.forms import MOST_FORMS
from msgsvc_forms.dashboard.wording import Wording
from msgsvc_forms.service import Forms

#: Hits at most.
MOST = 5


@pages.search(access="project:read", order=60)
async def found_forms(page: PageContext, config: Settings, forms: Forms) -> Sequence[Hit]:
    """Forms by id or slug, or by a part of the title."""
    text, say = page.searched, Wording(page, config.default_lang)
    titled = [
        (form, say(form.definition.title))
        for form in await forms.page(page.tx, page.project_id, None, MOST_FORMS)
    ]
    return [
        Hit(
            page._("Forms"),
            title,
            page.url(f"/forms/{form.form_id}"),
            detail=form.slug,
            icon="form",
            is_exact=text in {form.form_id, form.slug},
        )
        for form, title in titled
        if text in {form.form_id, form.slug} or text.casefold() in title.casefold()
    ][:MOST]
