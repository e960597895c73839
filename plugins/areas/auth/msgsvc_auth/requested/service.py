"""Sign-ins for other plugins: see `msgsvc_core.plugins.sign_ins`."""

from msgsvc_auth.codes import Codes
from msgsvc_auth.exchange import CodeExchange, Presented
from msgsvc_auth.models import Session
from msgsvc_auth.requested.pages import RequestedPages
from msgsvc_auth.requested.questions import DirectQuestions
from msgsvc_auth.service import SignIn
from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import NotFound
from msgsvc_core.plugins.sign_ins import (
    AskedSignIn,
    DirectSignIn,
    PageSignIn,
    SignedIn,
    SignInStatus,
)
from msgsvc_core.subscribers.models import Subscriber


class RequestedSignIns:
    """Opens pages for other plugins, and tells these who signed in."""

    def __init__(
        self,
        *,
        clock: Clock,
        codes: Codes,
        exchange: CodeExchange,
        sign_in: SignIn,
        pages: RequestedPages,
        questions: DirectQuestions,
    ) -> None:
        self._clock = clock
        self._codes = codes
        self._exchange = exchange
        self._sign_in = sign_in
        self._pages = pages
        self._questions = questions

    async def open_page(self, tx: Tx, request: PageSignIn) -> str:
        """As `RequestedPages.open`."""
        return await self._pages.open(tx, request)

    async def ask(self, tx: Tx, request: DirectSignIn) -> AskedSignIn:
        """As `DirectQuestions.ask`."""
        return await self._questions.ask(tx, request)

    async def status(self, tx: Tx, project_id: str, session_id: str) -> SignInStatus:
        """Raises `NotFound`, also for a sign-in that no plugin started."""
        session = await self._sign_in.get(project_id, session_id, tx)
        if session.source is None:
            raise NotFound("there is no sign-in {session_id!r}", session_id=session_id)
        return session.status(self._clock.now_ms())

    async def exchange(self, tx: Tx, project_id: str, code: str) -> SignedIn | None:
        """Of concurrent calls with one code, one gets the person."""
        presented = Presented(project_id, self._codes.hashes(code))
        [outcome] = await self._exchange.exchange(tx, [presented])
        return None if isinstance(outcome, Exception) else signed_in(*outcome)

    async def take(self, tx: Tx, project_id: str, session_id: str) -> SignedIn | None:
        """Of concurrent calls for one session, one gets the person."""
        taken = await self._exchange.take(tx, project_id, session_id)
        return None if taken is None else signed_in(*taken)


def signed_in(session: Session, subscriber: Subscriber) -> SignedIn:
    """A session of a plugin, as that plugin is told of it."""
    assert session.source is not None
    assert session.source_id is not None
    assert session.confirmed_at_ms is not None
    return SignedIn(
        session_id=session.session_id,
        source=session.source,
        source_id=session.source_id,
        subscriber=subscriber,
        method=session.method,
        proves=session.proves,
        confirmed_at_ms=session.confirmed_at_ms,
    )
