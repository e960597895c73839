"""Texts of the bot: the question, and its message after the answer."""

from collections.abc import Callable, Sequence

from msgsvc_auth.buttons import Choice
from msgsvc_auth.models import Session
from msgsvc_auth.sites import readable_site
from msgsvc_core.channels import Button, OutgoingMessage
from msgsvc_core.kernel.clock import MINUTE_MS
from msgsvc_core.kernel.i18n import Translate
from msgsvc_core.pages.user_agents import readable_agent


def question(
    _: Translate,
    project: str,
    session: Session,
    now_ms: int,
    *,
    numbers: Sequence[int],
    data: Callable[[Choice], str],
) -> OutgoingMessage:
    """Asks whether to sign in to `project`, and describes the client.

    With `numbers`, these replace Yes. `data` gives a choice's button its data.
    """
    name = session.requester_name
    if name is None:
        asked = _("Sign in to {project}?", project=project)
    else:
        asked = _("Sign in to {name} with {project}?", name=name, project=project)
    advice = _("If you did not start this yourself, press Cancel.")
    cancel = Button(_("Cancel"), data=data("n"))
    if numbers:
        pick = _("Press the number that the page shows.")
        advice = f"{pick} {advice}"
        picks = tuple(Button(str(number), data=data(number)) for number in numbers)
        buttons: tuple[tuple[Button, ...], ...] = (picks, (cancel,))
    else:
        buttons = ((Button(_("Yes"), data=data("y")), cancel),)
    text = "\n\n".join([asked, "\n".join(_circumstances(_, session, now_ms)), advice])
    return OutgoingMessage(text, format="plain", buttons=buttons)


def confirmed(_: Translate, name: str, return_url: str | None) -> OutgoingMessage:
    """Replaces the question after Yes. `name` is what people sign in to; `return_url` leads to the site with
    the code."""
    done = _("You are signed in to {project}.", project=name)
    if return_url is None:
        way_back = _("Go back to the page where you started.")
        return OutgoingMessage(f"{done} {way_back}")
    return OutgoingMessage(done, buttons=((Button(_("Return to the site"), url=return_url),),))


def denied(_: Translate, name: str) -> OutgoingMessage:
    """Replaces the question after Cancel."""
    return OutgoingMessage(_("Cancelled. You are not signed in to {project}.", project=name))


def wrong_number(_: Translate, name: str) -> OutgoingMessage:
    """Replaces the question after a wrong number."""
    text = _(
        "That is not the number on the page. You are not signed in to {project}.", project=name
    )
    return OutgoingMessage(text)


def too_late(_: Translate) -> OutgoingMessage:
    """Replaces the question when it has expired."""
    return OutgoingMessage(
        _("This sign-in request is no longer valid. Please start again on the site.")
    )


def already(_: Translate) -> str:
    """A notice for a repeated press after Yes."""
    return _("You are already signed in.")


def _circumstances(_: Translate, session: Session, now_ms: int) -> list[str]:
    """Which site asks, for which browser, since when: a line each."""
    lines = []
    url = session.requester_url or session.callback_url
    if url:
        lines.append(_("Site: {site}", site=readable_site(url)))
    if session.client_agent:
        lines.append(
            _("Browser: {browser}", browser=readable_agent(_, session.client_agent)),
        )
    if session.client_ip is not None:
        lines.append(_("Address: {address}", address=session.client_ip))
    lines.append(_("Asked: {when}", when=_ago(_, now_ms - session.created_at_ms)))
    return lines


def _ago(_: Translate, passed_ms: int) -> str:
    minutes = passed_ms // MINUTE_MS
    if minutes < 1:
        return _("just now")
    return _.ngettext("{count} minute ago", "{count} minutes ago", minutes)
