"""Browser sessions: who is signed in, and which sign-ins this browser has begun.

They live in memory behind a random cookie value, which is enough for an example. A real site uses
the sessions it has already.
"""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

#: `link`: the person comes back through the callback. `qr`: the page polls.
LoginKind = Literal["link", "qr"]

COOKIE_NAME = "login_site_session"
#: Seconds a browser session lasts; also the cookie's Max-Age.
SESSION_TTL_S = 8 * 3600
#: Beyond this many the oldest go, so that strangers cannot fill the memory.
MAX_SESSIONS = 10_000


@dataclass(frozen=True)
class Person:
    """The signed-in person, as the service described them."""

    subscriber_id: str
    channel: str
    first_name: str
    username: str


@dataclass(frozen=True)
class PendingLogin:
    """A sign-in begun in this browser and not finished yet."""

    kind: LoginKind
    session_id: str
    #: Random, known only to this site and the service: it ties the answer to this browser.
    state: str
    links: dict[str, str]
    qr: dict[str, str]
    #: Unix seconds.
    expires_at: float
    #: Seconds between two polls, as the service asks.
    interval: int


@dataclass
class Notice:
    """What the next page tells the person, once."""

    text: str
    is_error: bool = False


@dataclass
class BrowserSession:
    """What the site remembers of one browser."""

    key: str
    expires_at: float
    person: Person | None = None
    pending: dict[LoginKind, PendingLogin] = field(default_factory=dict)
    #: Of a sign-in on the service's own page, which this browser was sent to.
    hosted_state: str | None = None
    notice: Notice | None = None

    def take_notice(self) -> Notice | None:
        """The waiting notice, which is then forgotten."""
        notice, self.notice = self.notice, None
        return notice


class SessionStore:
    """All browser sessions by cookie value."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._sessions: OrderedDict[str, BrowserSession] = OrderedDict()

    def find(self, key: str | None) -> BrowserSession | None:
        """The session of this cookie value; None when unknown or over."""
        session = self._sessions.get(key or "")
        if session is None or session.expires_at <= self._now():
            return None
        return session

    def create(self) -> BrowserSession:
        """A new, signed-out session with an unguessable key."""
        session = BrowserSession(secrets.token_urlsafe(32), self._now() + SESSION_TTL_S)
        self._sessions[session.key] = session
        while len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return session

    def sign_in(self, before: BrowserSession | None, person: Person) -> BrowserSession:
        """A fresh session for the person; the one before ends.

        The key must change here: an attacker who planted a cookie earlier (session fixation)
        would otherwise be signed in together with the victim.
        """
        self.end(before)
        session = self.create()
        session.person = person
        return session

    def end(self, session: BrowserSession | None) -> None:
        """Forget the session, if there is one."""
        if session is not None:
            self._sessions.pop(session.key, None)
