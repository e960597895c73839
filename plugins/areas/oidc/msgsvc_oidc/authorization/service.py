"""Authorization requests, from the client's redirect to the way back: sign-in, consent, code."""

from contextlib import suppress
from dataclasses import replace

from msgsvc_core.db import Database, Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.ids import new_id
from msgsvc_oidc.authorization import store
from msgsvc_oidc.authorization.browser_sessions import BrowserSessions
from msgsvc_oidc.authorization.endings import RequestEndings
from msgsvc_oidc.authorization.models import (
    ConsentNeeded,
    Outcome,
    PendingRequest,
    SignInNeeded,
)
from msgsvc_oidc.authorization.sign_in_pages import SignInPages, page_language
from msgsvc_oidc.clients.service import Clients
from msgsvc_oidc.consents.service import Consents
from msgsvc_oidc.protocol.authorize import AuthorizationRequest, Session, next_step
from msgsvc_oidc.protocol.clients import Client
from msgsvc_oidc.protocol.errors import RedirectError, UnusableRequest


class Authorizations:
    """Takes requests through their steps; each step is one transaction. A request can be signed in to and
    agreed to for `lifetime_s` seconds."""

    def __init__(
        self,
        *,
        clock: Clock,
        db: Database,
        lifetime_s: int,
        clients: Clients,
        sessions: BrowserSessions,
        consents: Consents,
        pages: SignInPages,
        endings: RequestEndings,
    ) -> None:
        self._clock = clock
        self._db = db
        self._lifetime_s = lifetime_s
        self._clients = clients
        self._sessions = sessions
        self._consents = consents
        self._pages = pages
        self._endings = endings

    async def begin(
        self,
        client: Client,
        request: AuthorizationRequest,
        session_id: str | None,
        *,
        device_id: str | None = None,
    ) -> Outcome:
        """The first step of a request by a browser with that session, for a device if one is given.

        Raises `RedirectError`, and what `SignIns.open_page` raises.
        """
        pending = PendingRequest(
            project_id=client.project_id,
            request_id=new_id("oar"),
            client_id=client.client_id,
            status="begun",
            request=request,
            session_id=None,
            device_id=device_id,
            expires_at_ms=self._clock.now_ms() + self._lifetime_s * 1000,
        )
        async with self._db.transaction() as tx:
            session = await self._sessions.get(tx, client.project_id, session_id)
            return await self._step(tx, client, pending, session, stored=False)

    async def resume(
        self, project_id: str, request_id: str, code: str, session_id: str | None
    ) -> Outcome:
        """A browser, with that session, comes back from the sign-in page with a code.

        Raises `UnusableRequest` for a code of another sign-in, and a request that does not wait for one.
        """
        async with self._db.transaction() as tx:
            person = await self._pages.exchange(tx, project_id, request_id, code)
            session = await self._sessions.open(tx, project_id, person, held=session_id)
            pending = await self._sign_in(tx, project_id, request_id, session.session_id)
            client = await self._clients.get(tx, project_id, pending.client_id)
            try:
                return await self._step(tx, client, pending, session, signed_in=True)
            except RedirectError as error:
                await self._end(tx, pending)
                return await self._endings.refuse(tx, client, pending, error)

    async def cancel(self, project_id: str, request_id: str) -> Outcome:
        """The person pressed Cancel in the bot and goes back to the client."""
        return await self._refuse(project_id, request_id, _cancelled())

    async def note_denial(self, tx: Tx, project_id: str, request_id: str) -> None:
        """The person pressed Cancel in the bot. A device that waits learns of it at once (RFC 8628, section
        3.5); a browser comes back by itself."""
        now_ms = self._clock.now_ms()
        pending = await store.find_request(tx, project_id, request_id, now_ms=now_ms)
        if pending is None or pending.device_id is None or pending.status == "ended":
            return
        client = await self._clients.get(tx, project_id, pending.client_id)
        # It may have expired, or another browser has answered.
        with suppress(UnusableRequest):
            await self._endings.refuse(tx, client, pending, _cancelled())

    async def decide(
        self, project_id: str, request_id: str, session_id: str | None, *, allowed: bool
    ) -> Outcome:
        """The person agreed or not, in the browser that has the session of the request.

        Raises `UnusableRequest`.
        """
        if not allowed:
            error = RedirectError("access_denied", "the person did not agree")
            return await self._refuse(project_id, request_id, error)
        async with self._db.transaction() as tx:
            pending, session = await self.signed_in(tx, project_id, request_id, session_id)
            client = await self._clients.get(tx, project_id, pending.client_id)
            person, scopes = session.subscriber_id, pending.request.scopes
            await self._consents.give(tx, client, person, scopes)
            return await self._step(tx, client, pending, session, signed_in=True, agreed=True)

    async def signed_in(
        self, tx: Tx, project_id: str, request_id: str, session_id: str | None
    ) -> tuple[PendingRequest, Session]:
        """A request that waits for consent, with its session, if that is the browser's as well.

        Raises `UnusableRequest`.
        """
        pending = await self._get(tx, project_id, request_id)
        session = await self._sessions.get(tx, project_id, pending.session_id)
        if session is None or session.session_id != session_id or pending.status != "signed_in":
            raise UnusableRequest("the person has to sign in again")
        return pending, session

    async def _step(
        self,
        tx: Tx,
        client: Client,
        pending: PendingRequest,
        session: Session | None,
        *,
        stored: bool = True,
        signed_in: bool = False,
        agreed: bool = False,
    ) -> Outcome:
        consented: tuple[str, ...] = ()
        if session is not None:
            consented = await self._consents.scopes_of(tx, client, session.subscriber_id)
        step = next_step(
            pending.request,
            client,
            session,
            consented,
            now_ms=self._clock.now_ms(),
            signed_in=signed_in,
            agreed=agreed,
            device=pending.device_id is not None,
        )
        if session is None or step == "sign_in":
            await store.insert_request(tx, pending)
            url = await self._pages.open(tx, client, pending)
            return SignInNeeded(request_id=pending.request_id, url=url)
        if step == "consent":
            if not stored:
                waiting = replace(pending, status="signed_in", session_id=session.session_id)
                await store.insert_request(tx, waiting)
            return ConsentNeeded(
                request_id=pending.request_id,
                session=session,
                lang=page_language(pending.request),
            )
        if stored:
            await self._end(tx, pending)
        return await self._endings.allow(tx, client, pending, session, agreed=agreed)

    async def _refuse(self, project_id: str, request_id: str, error: RedirectError) -> Outcome:
        async with self._db.transaction() as tx:
            pending = await self._get(tx, project_id, request_id)
            await self._end(tx, pending)
            client = await self._clients.get(tx, project_id, pending.client_id)
            return await self._endings.refuse(tx, client, pending, error)

    async def _get(self, tx: Tx, project_id: str, request_id: str) -> PendingRequest:
        now_ms = self._clock.now_ms()
        pending = await store.find_request(tx, project_id, request_id, now_ms=now_ms)
        if pending is None or pending.status == "ended":
            raise UnusableRequest("the request has ended")
        return pending

    async def _sign_in(
        self, tx: Tx, project_id: str, request_id: str, session_id: str
    ) -> PendingRequest:
        moved = await store.move_request(
            tx,
            project_id,
            request_id,
            ["begun"],
            "signed_in",
            now_ms=self._clock.now_ms(),
            session_id=session_id,
        )
        if moved is None:
            raise UnusableRequest("the request does not wait for a sign-in")
        return moved

    async def _end(self, tx: Tx, pending: PendingRequest) -> None:
        """Raises `UnusableRequest` if another request of the browser ended it before."""
        ended = await store.move_request(
            tx,
            pending.project_id,
            pending.request_id,
            ["begun", "signed_in"],
            "ended",
            now_ms=self._clock.now_ms(),
        )
        if ended is None:
            raise UnusableRequest("the request has ended")


def _cancelled() -> RedirectError:
    return RedirectError("access_denied", "the person cancelled the sign-in")
