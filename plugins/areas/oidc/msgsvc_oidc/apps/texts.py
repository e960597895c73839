"""Messages of the command `/apps`. Plain text, as names are user input."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from msgsvc_core.channels.inbound import OWN_BUTTON
from msgsvc_core.content.outgoing import Button, OutgoingMessage
from msgsvc_core.kernel.i18n import Translate
from msgsvc_core.kernel.visible_text import one_line
from msgsvc_oidc.authorization.scope_texts import scope_texts
from msgsvc_oidc.consents.models import Consent

PREFIX = "apps:"

#: Apps in a message: each takes some five lines.
PAGE = 5

#: Actions of buttons: a page of the list, the question before an app's access ends, and its Yes.
SHOW, ASK, END = "show", "ask", "end"


class AppTexts:
    """For one person; `projects` are the names of their projects."""

    def __init__(self, _: Translate, projects: Mapping[str, str]) -> None:
        self._ = _
        self._projects = projects

    def apps(self, consents: Sequence[Consent], page: int, lead: str = "") -> OutgoingMessage:
        """A page of the list, from 0; the last one if there are fewer. `lead` says what happened before."""
        _ = self._
        if not consents:
            nothing = _("No app has access to your account.")
            return OutgoingMessage(_paragraphs(lead, nothing))
        last = (len(consents) - 1) // PAGE
        page = max(0, min(page, last))
        here = consents[page * PAGE : (page + 1) * PAGE]
        title = _("Apps with access to your account:")
        rows = [(self._end_button(consent),) for consent in here]
        turning = [
            *([Button(_("‹ Previous"), data=data(SHOW, page - 1))] if page > 0 else []),
            *([Button(_("Next ›"), data=data(SHOW, page + 1))] if page < last else []),
        ]
        return OutgoingMessage(
            _paragraphs(lead, title, *map(self._app, here)),
            buttons=(*rows, *([tuple(turning)] if turning else [])),
        )

    def question(self, consent: Consent) -> OutgoingMessage:
        """Whether an app's access shall end. The Yes names the consent, so that it ends no later one."""
        _ = self._
        name = one_line(consent.client_name)
        yes = data(END, consent.client_id, f"{consent.granted_at_ms:x}")
        return OutgoingMessage(
            _(
                "Revoke the access of {app}? It is signed out of your account at once, and has to ask you "
                "again.",
                app=name,
            ),
            buttons=(
                (Button(_("Yes, revoke it"), data=yes),),
                (Button(_("Cancel"), data=data(SHOW, 0)),),
            ),
        )

    def ended(self, consent: Consent) -> str:
        """Above the list, once the access has ended."""
        _ = self._
        return _("{app} no longer has access.", app=one_line(consent.client_name))

    def gone(self) -> str:
        """Above the list, for a button of an app that has no access by now."""
        _ = self._
        return _("This app has no access any more.")

    def private(self) -> OutgoingMessage:
        """In a group, where others would read the list."""
        _ = self._
        return OutgoingMessage(_("Write /apps to me in a private chat."))

    def _app(self, consent: Consent) -> str:
        """The name, since when, and what it may."""
        _ = self._
        project = self._projects.get(consent.project_id, "")
        title = _("{app}, since {date}", app=self._title(consent), date=_date(consent))
        lines = scope_texts(_, consent.scopes, one_line(project))
        return "\n".join([title, *(f"• {line}" for line in lines)])

    def _title(self, consent: Consent) -> str:
        """With the project, if the bot serves several of this person's."""
        name = one_line(consent.client_name)
        if len(self._projects) < 2:
            return name
        return f"{name} ({one_line(self._projects.get(consent.project_id, ''))})"

    def _end_button(self, consent: Consent) -> Button:
        _ = self._
        text = _("Revoke: {app}", app=self._title(consent))
        return Button(text, data=data(ASK, consent.client_id))


def data(action: str, *parts: object) -> str:
    """The data of a button, at most 64 bytes. No part is secret: an app is looked up among those that the
    person who presses allowed."""
    return OWN_BUTTON + PREFIX + ":".join([action, *map(str, parts)])


def _date(consent: Consent) -> str:
    """The day, of UTC: a messenger does not tell the person's time zone."""
    return datetime.fromtimestamp(consent.granted_at_ms / 1000, UTC).strftime("%Y-%m-%d")


def _paragraphs(*texts: str) -> str:
    return "\n\n".join(text for text in texts if text)
