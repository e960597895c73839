"""The hosted page's site, its query parameters, and the ticket of the browser's sign-in."""

import re
from dataclasses import dataclass, replace
from typing import NamedTuple

from msgsvc_auth.models import Session, StaticLink
from msgsvc_core.kernel.i18n import Language
from msgsvc_core.kernel.ids import ID_WIDTH, new_token
from msgsvc_core.projects.models import Project
from msgsvc_core.security import digest

#: Bits of the secret that a browser keeps, as many as a code has.
SECRET_BITS = 256

#: Hex digits of identifiers for cookies and pages; they are no secrets.
REF_LENGTH = 16

_TICKET = re.compile(rf"([0-9A-Za-z]{{43}})\.([0-9A-Za-z]{{{ID_WIDTH}}})(\.done)?")


@dataclass(frozen=True, slots=True)
class Site:
    """A static link, and its active project."""

    link: StaticLink
    project: Project


@dataclass(frozen=True, slots=True)
class Visit:
    """The query parameters of the page."""

    #: Goes to the callback along with the code.
    state: str
    lang: Language
    #: None offers all messengers.
    channel: str | None = None

    def key(self, site: Site) -> str:
        """Names the cookie: tabs with other states are other sign-ins, and don't disturb each other."""
        return digest(f"{site.link.link_id}\n{self.state}")[:REF_LENGTH]


@dataclass(frozen=True, slots=True)
class Ticket:
    """A browser's sign-in, stored in a cookie.

    `secret` proves that this browser started it. `token` is that of the bot's links, which the database
    stores only as a digest, so that a reloaded page can show them again. `handed_over` means that this
    browser was redirected to the site with the code.
    """

    secret: str
    token: str
    handed_over: bool = False

    @classmethod
    def new_secret(cls) -> str:
        return new_token(SECRET_BITS)

    @classmethod
    def read(cls, text: str) -> "Ticket | None":
        match = _TICKET.fullmatch(text)
        return None if match is None else cls(match[1], match[2], match[3] is not None)

    def __str__(self) -> str:
        return f"{self.secret}.{self.token}{'.done' if self.handed_over else ''}"

    def done(self) -> "Ticket":
        return replace(self, handed_over=True)

    @property
    def page(self) -> str:
        """Names the sign-in to its page's script: another one may take its place in the cookie."""
        return digest(self.token)[:REF_LENGTH]


class BrowserSignIn(NamedTuple):
    """A sign-in, and the ticket of the browser that started it."""

    session: Session
    ticket: Ticket


@dataclass(frozen=True, slots=True)
class Messenger:
    """A messenger for the sign-in: the bot's link, and the messenger's name."""

    channel: str
    name: str
    link: str
    #: What to write to the bot, where its link only opens the chat.
    start_message: str | None = None
