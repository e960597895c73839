"""The rules of signing in: what is begun, what is checked, and when somebody is let in.

Four variants meet here. The service's own page and a session with `state` come back through the
callback. A static link does so too, and knows nothing of the browser that opened it. A QR session is
polled and never comes back.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from service_api import LoginSession, MsgsvcClient, ServiceError, VerifiedLogin
from sessions import BrowserSession, LoginKind, PendingLogin, Person

#: Seconds the static links are kept. They hardly ever change, and the home page would
#: otherwise spend one request of the project's rate limit on every visit.
LINKS_TTL_S = 60
#: A pending sign-in with fewer seconds left is replaced rather than shown again.
MIN_LEFT_S = 30


class StateMismatchError(Exception):
    """The answer does not belong to a sign-in that this browser began."""


@dataclass(frozen=True)
class Progress:
    """Where a pending sign-in stands; `person` is set once it let somebody in."""

    status: str
    person: Person | None = None


class SignIn:
    """Begins and finishes sign-ins of one site."""

    def __init__(
        self,
        client: MsgsvcClient,
        *,
        callback_url: str,
        link_slug: str,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._callback_url = callback_url
        self._link_slug = link_slug
        self._now = now
        self._links: dict[str, str] = {}
        self._links_until = 0.0

    async def static_links(self) -> dict[str, str]:
        """Variant 1: the permanent link of each messenger."""
        if self._now() >= self._links_until:
            self._links = await self._client.static_links(self._link_slug)
            self._links_until = self._now() + LINKS_TTL_S
        return self._links

    def begin_hosted(self, browser: BrowserSession) -> str:
        """The simplest variant: the state with which the service's own page is opened.

        Pressing again goes on with the same one, and so with the sign-in that waits there.
        """
        if browser.hosted_state is None:
            browser.hosted_state = secrets.token_urlsafe(32)
        return browser.hosted_state

    async def begin(self, browser: BrowserSession, kind: LoginKind, *, lang: str) -> PendingLogin:
        """Variants 2 and 3: open a session at the service, or go on with the one still open.

        A project may open few sessions an hour, so a reload must not cost another one.
        """
        current = self.pending(browser, kind)
        if current is not None and current.expires_at - self._now() >= MIN_LEFT_S:
            return current
        state = secrets.token_urlsafe(32)
        # A QR code is confirmed on another device. A way back from there would end in a browser
        # that never began this sign-in, so only the link variant names a callback.
        callback_url = self._callback_url if kind == "link" else None
        opened = await self._client.start_login(state=state, lang=lang, callback_url=callback_url)
        browser.pending[kind] = self._as_pending(kind, state, opened)
        return browser.pending[kind]

    def pending(self, browser: BrowserSession, kind: LoginKind) -> PendingLogin | None:
        """The browser's open sign-in of this kind; None when there is none, or it ran out."""
        found = browser.pending.get(kind)
        # One that ran out is not shown, yet kept: confirmed in its last second it still has a
        # code on its way here, which outlives the question by some minutes.
        return found if found is not None and found.expires_at > self._now() else None

    async def poll(self, browser: BrowserSession, pending: PendingLogin) -> Progress:
        """Ask the service how the sign-in stands; for a QR session, finish it when confirmed."""
        answer = await self._client.login_status(pending.session_id)
        if answer.status == "pending":
            return Progress("pending")
        if pending.kind == "link" and answer.status in ("confirmed", "consumed"):
            # The person is on the way back with the same code: it is the callback's to exchange.
            return Progress("confirmed")
        # Taken out before the exchange, so that a second tab polling now does not try it too.
        browser.pending.pop(pending.kind, None)
        if answer.status != "confirmed" or answer.code is None:
            return Progress("denied" if answer.status == "denied" else "expired")
        try:
            verified = await self._client.verify(answer.code)
        except ServiceError as error:
            if error.retryable:
                browser.pending[pending.kind] = pending
            raise
        if verified.session_id != pending.session_id:
            raise StateMismatchError
        return Progress("signed_in", _person(verified))

    async def finish(self, browser: BrowserSession | None, code: str, state: str | None) -> Person:
        """The callback: check `state`, exchange the code, say who it is.

        With a state, the answer must belong to a sign-in begun in this very browser. A static
        link has none, so anybody can confirm a static link as themselves and hand the resulting
        callback address to somebody else, who then works in the wrong account without noticing
        (login CSRF). That is why a site should offer the session variant wherever it can, and
        keep static links for places where no page of its own comes first: posters, bios, email.
        """
        expected: str | None = None
        if state:
            own = _states(browser) if browser else []
            expected = next((each for each in own if _same(state, each)), None)
            if expected is None:
                raise StateMismatchError
        try:
            verified = await self._client.verify(code)
        except ServiceError as error:
            if browser is not None and not error.retryable:
                # Or the next press would go on with a sign-in that is over.
                browser.hosted_state = None
            raise
        if expected is not None and browser is not None:
            browser.pending.pop("link", None)
            browser.hosted_state = None
        # The service says which sign-in the code was made for. Without this, somebody could strip
        # the state from a callback address, or swap in a code of their own beside our state.
        if not _same(verified.state or "", expected or ""):
            raise StateMismatchError
        return _person(verified)

    def _as_pending(self, kind: LoginKind, state: str, opened: LoginSession) -> PendingLogin:
        return PendingLogin(
            kind=kind,
            session_id=opened.session_id,
            state=state,
            links=opened.links,
            qr=opened.qr,
            expires_at=self._now() + opened.expires_in,
            interval=opened.interval,
        )


def _states(browser: BrowserSession) -> list[str]:
    """The states of the sign-ins that this browser began and that come back through the callback."""
    pending = browser.pending.get("link")
    hosted = [browser.hosted_state] if browser.hosted_state else []
    return hosted + ([pending.state] if pending else [])


def _same(left: str, right: str) -> bool:
    # Constant time: how long the answer takes must not tell how much of a guess was right.
    return hmac.compare_digest(left.encode(), right.encode())


def _person(verified: VerifiedLogin) -> Person:
    return Person(
        subscriber_id=verified.subscriber_id,
        channel=verified.channel,
        first_name=verified.first_name or verified.username,
        username=verified.username,
    )
