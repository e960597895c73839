"""Texts of the bot: the question, and its message after the answer."""

from collections.abc import Callable, Sequence

from msgsvc_auth.buttons import Choice
from msgsvc_auth.clients import printable
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
    """Asks whether to sign in, and describes the client.

    With `numbers`, these replace Yes. `data` gives a choice's button its data.
    """
    asked = _asked(_, project, session)
    advice = _("If you did not start this yourself, press Cancel.")
    if numbers:
        pick = _("Press the number that the page shows.")
        advice = f"{pick} {advice}"
    text = "\n\n".join([asked, "\n".join(_circumstances(_, session, now_ms)), advice])
    asks = OutgoingMessage(text, format="plain", buttons=_buttons(_, numbers, data))
    return asks.for_recipient_only()


def direct_question(
    _: Translate,
    project: str,
    session: Session,
    *,
    text: str,
    details: Sequence[str],
    numbers: Sequence[int],
    data: Callable[[Choice], str],
) -> OutgoingMessage:
    """Asks one person to approve `text`, or to sign in if it is empty. Each of `details` is a line."""
    name, what = session.requester_name or project, printable(text)
    asked = _asked(_, project, session)
    if what:
        asked = _("{name} asks you to confirm, with {project}:", name=name, project=project)
    lines = [line for line in map(printable, details) if line]
    if session.requester_url:
        lines.append(_("Site: {site}", site=readable_site(session.requester_url)))
    advice = _("If you did not start this yourself, press Cancel.")
    if numbers:
        pick = _("Press the number that {name} shows you.", name=name)
        advice = f"{pick} {advice}"
    parts = [asked, what, "\n".join(lines), advice]
    whole = "\n\n".join(part for part in parts if part)
    asks = OutgoingMessage(whole, format="plain", buttons=_buttons(_, numbers, data))
    return asks.for_recipient_only()


def confirmed(
    _: Translate, session: Session, project: str, return_url: str | None
) -> OutgoingMessage:
    """Replaces the question after Yes. `return_url` leads to the site with the code."""
    name = session.requester_name or project
    if session.is_direct:
        return OutgoingMessage(_("Confirmed for {name}.", name=name))
    done = _("You are signed in to {project}.", project=name)
    if return_url is None:
        way_back = _("Go back to the page where you started.")
        return OutgoingMessage(f"{done} {way_back}")
    return OutgoingMessage(done, buttons=((Button(_("Return to the site"), url=return_url),),))


def denied(_: Translate, session: Session, project: str) -> OutgoingMessage:
    """Replaces the question after Cancel."""
    name = session.requester_name or project
    if session.is_direct:
        return OutgoingMessage(_("Cancelled. Nothing was confirmed for {name}.", name=name))
    return OutgoingMessage(_("Cancelled. You are not signed in to {project}.", project=name))


def wrong_number(_: Translate, session: Session, project: str) -> OutgoingMessage:
    """Replaces the question after a wrong number."""
    name = session.requester_name or project
    if session.is_direct:
        return OutgoingMessage(
            _("That is not the number that {name} shows. Nothing was confirmed.", name=name)
        )
    text = _(
        "That is not the number on the page. You are not signed in to {project}.", project=name
    )
    return OutgoingMessage(text)


def too_late(_: Translate) -> OutgoingMessage:
    """Replaces the question when it has expired."""
    return OutgoingMessage(
        _("This sign-in request is no longer valid. Please start again on the site.")
    )


def already(_: Translate, session: Session) -> str:
    """A notice for a repeated press after Yes."""
    if session.is_direct:
        return _("You have already confirmed this.")
    return _("You are already signed in.")


def _asked(_: Translate, project: str, session: Session) -> str:
    name = session.requester_name
    if name is None:
        return _("Sign in to {project}?", project=project)
    return _("Sign in to {name} with {project}?", name=name, project=project)


def _buttons(
    _: Translate, numbers: Sequence[int], data: Callable[[Choice], str]
) -> tuple[tuple[Button, ...], ...]:
    cancel = Button(_("Cancel"), data=data("n"))
    if not numbers:
        return ((Button(_("Yes"), data=data("y")), cancel),)
    return (tuple(Button(str(number), data=data(number)) for number in numbers), (cancel,))


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
