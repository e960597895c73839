"""Failed requests of clients in the journal: a wrong secret, a code that was used, a redirect URI that is not
registered."""

from msgsvc_core.db import Database
from msgsvc_core.limits import Limiter
from msgsvc_oidc.journal.models import Flow
from msgsvc_oidc.journal.service import SignInJournal
from msgsvc_oidc.protocol.clients import Client
from msgsvc_oidc.protocol.errors import OAuthError

#: Failures of one client that are recorded in so many seconds: anybody can cause them, and each is a row.
RECORDED, WINDOW_S = 30, 60


class FailedRequests:
    """Records failures in transactions of their own, as nothing else of such a request is written."""

    def __init__(self, *, db: Database, limiter: Limiter, journal: SignInJournal) -> None:
        self._db = db
        self._limiter = limiter
        self._journal = journal

    async def record(self, client: Client, flow: Flow, error: OAuthError) -> None:
        """Beyond the limit nothing is recorded: those before show what is wrong."""
        key = f"oidc.failed:{client.project_id}:{client.client_id}"
        window = await self._limiter.hit(key, RECORDED, WINDOW_S, when_away="count_locally")
        if not window.allowed:
            return
        async with self._db.transaction() as tx:
            await self._journal.failed(tx, client, flow, error)
