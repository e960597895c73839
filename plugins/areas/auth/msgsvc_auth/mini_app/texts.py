"""Texts of the page."""

from msgsvc_core.kernel.i18n import Translate


def page_texts(_: Translate, project: str, site: str) -> dict[str, str]:
    """By the names in the template. `site` is the host of the site."""
    return {
        "question": _("Sign in to {project} ({site})?", project=project, site=site),
        "yes": _("Yes"),
        "cancel": _("Cancel"),
        "working": _("Signing you in…"),
        "denied": _("Cancelled. You are not signed in to {project}.", project=project),
        "outside": _("This page works inside the messenger. To sign in here, open the bot:"),
        "open": _("Open {messenger}"),
        "stale": _("This page is out of date. Close it and open its link again."),
        "used": _(
            "This page has already signed you in. To sign in again, close it and open it again."
        ),
        "unstarted": _("Start the bot first, then open this page again."),
        "failed": _("Something went wrong. Please try again in a moment."),
        "gone": _("This link is no longer valid. Please ask the site for a new one."),
    }
