"""The hosted page's site, its query parameters, and the ticket of the browser's sign-in."""

import re
from dataclasses import dataclass, replace
from typing import NamedTuple
from urllib.parse import urlsplit

from msgsvc_auth.models import Session, StaticLink
from msgsvc_auth.page_requests import PageRequest
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
    """What a page is for: a static link, or a request of another plugin; and its active project."""

    origin: StaticLink | PageRequest
    project: Project

    @property
    def request(self) -> PageRequest | None:
        """The request, of a page that another plugin asked for."""
        return self.origin if isinstance(self.origin, PageRequest) else None

    @property
    def path(self) -> str:
        """The page's path below `/login/`."""
        return self.origin.path if isinstance(self.origin, PageRequest) else self.origin.slug

    @property
    def origin_id(self) -> str:
        """Binds cookies to the page."""
        if isinstance(self.origin, PageRequest):
            return self.origin.request_id
        return self.origin.link_id

    @property
    def name(self) -> str:
        """What people sign in to: the requester, or the project itself."""
        if isinstance(self.origin, PageRequest):
            return self.origin.requester_name
        return self.project.public_name

    @property
    def return_url(self) -> str:
        """Where the browser takes the code, as registered now."""
        if isinstance(self.origin, PageRequest):
            return self.origin.return_url
        return self.origin.callback_url

    @property
    def host(self) -> str:
        """The host that people know, with its port if that is not the default; the name of a requester
        without one."""
        return urlsplit(self._known_url).netloc or self.name

    @property
    def root(self) -> str | None:
        """The front page of that host."""
        if not self._known_url:
            return None
        return urlsplit(self._known_url)._replace(path="/", query="", fragment="").geturl()

    @property
    def _known_url(self) -> str:
        if isinstance(self.origin, PageRequest):
            return self.origin.requester_url
        return self.origin.callback_url


@dataclass(frozen=True, slots=True)
class Visit:
    """The query parameters of the page. `state` and `channel` of a request's page are the request's."""

    #: Goes to the callback along with the code.
    state: str
    lang: Language
    #: None offers all messengers.
    channel: str | None = None

    def key(self, site: Site) -> str:
        """Names the cookie: tabs with other states are other sign-ins, and don't disturb each other."""
        return digest(f"{site.origin_id}\n{self.state}")[:REF_LENGTH]


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
    #: The messenger's drawing: the data of an SVG path, or empty.
    mark: str = ""
