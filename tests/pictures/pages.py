"""Every page that is pictured: those of all areas of the dashboard, and those that anybody can open."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from msgsvc_core.dashboard import Page
from msgsvc_devkit.dashboard import Visitor
from tests.e2e.furnished import Furnished

#: Pages that anybody can open, by a name of their own. Their braces name resources, as in `Furnished.ids`.
PUBLIC = {
    "public.root": "/",
    "public.missing": "/nothing-here",
    "docs.reference": "/docs",
    "docs.errors": "/docs/errors",
    "hosted.sign_in": "/login/{slug}",
    "hosted.sign_in_missing": "/login/nothing-here",
    "hosted.form": "/f/{form_id}",
    "hosted.form_thanks": "/f/{form_id}/thanks",
    "hosted.form_missing": "/f/frm_nothing",
    "hosted.device": "/oidc/{project_id}/device",
    "account.sign_in": "/dashboard/sign-in",
    "account.sign_in_link_missing": "/dashboard/sign-in/link/nothing",
    "public.dashboard_missing": "/dashboard/nothing-here",
    "sandbox.people": "/sandbox",
}


class Pictured(NamedTuple):
    """A page, and who opens it; None for nobody in particular."""

    name: str
    url: str
    who: Visitor | None


async def pictured(place: Furnished) -> Sequence[Pictured]:
    """All of them, but for fragments and files of the dashboard."""
    ids = {**place.ids, "project_id": place.tenant.project.project_id}
    found = [Pictured(name, url.format(**ids), None) for name, url in PUBLIC.items()]
    for walk in place.walks:
        who = place.who(walk)
        answer = await who.client.get(walk.url)
        assert answer.status_code in {200, 303}, f"{walk} answers {answer.status_code}"
        if '<main id="main"' in answer.text:
            found.append(Pictured(_name(walk.page), walk.url, who))
    twice = {name for name, many in Counter(one.name for one in found).items() if many > 1}
    assert not twice, f"pages share a name: {', '.join(twice)}"
    return found


def _name(page: Page) -> str:
    """Its area and its path, as a file is called: `helpdesk.tickets-ticket_id`."""
    inside = {"installation:operate": "operator", "account:self": "account"}.get(page.access, "")
    path = re.sub(r"\W+", "-", f"{inside}{page.path}").strip("-")
    return f"{page.area}.{path or 'index'}"
