"""Figures of sign-in on the overview."""

from collections.abc import Sequence

from msgsvc_auth.dashboard.pages import pages
from msgsvc_auth.outcomes import SignInOutcomes
from msgsvc_core.dashboard import Figure, PageContext


@pages.figures(access="project:read", order=30)
async def sign_in_figures(page: PageContext, outcomes: SignInOutcomes) -> Sequence[Figure]:
    """None for a project without a sign-in in the last 24 hours."""
    recent = await outcomes.recent(page.tx, page.project_id)
    if not recent.ended:
        return ()
    _, url = page._, page.url("/sign-in")
    note = _("last 24 hours")
    return [
        Figure(_("Sign-in success"), recent.confirmed / recent.ended, "share", note, url=url),
        Figure(_("Median sign-in time"), recent.seconds, "seconds", note, url=url),
    ]
