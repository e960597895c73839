"""Records sign-ins of clients, for the dashboard."""

from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.ids import new_id
from msgsvc_oidc.journal import store
from msgsvc_oidc.journal.models import MAX_DETAIL_LENGTH, SIGNED_IN, Entry, Flow
from msgsvc_oidc.protocol.clients import Client
from msgsvc_oidc.protocol.errors import OAuthError


class SignInJournal:
    """Entries are written in the transaction of what they tell of, and deleted after some days."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock

    async def signed_in(self, tx: Tx, client: Client, flow: Flow, subscriber_id: str) -> None:
        """A person signed in to a client."""
        await self._write(tx, client, flow, SIGNED_IN, "", subscriber_id)

    async def failed(
        self,
        tx: Tx,
        client: Client,
        flow: Flow,
        error: OAuthError,
        subscriber_id: str | None = None,
    ) -> None:
        """A request of a client was refused, or the person refused."""
        detail = error.description[:MAX_DETAIL_LENGTH]
        await self._write(tx, client, flow, error.error, detail, subscriber_id)

    async def page(self, tx: Tx, project_id: str, client_id: str, query: PageQuery) -> list[Entry]:
        """Newest first; one more than `query.limit` where there is, so that the caller sees it."""
        return await store.list_entries(tx, project_id, client_id, query.after, query.fetch_limit)

    async def forget_person(self, tx: Tx, project_id: str, subscriber_id: str) -> None:
        """Removes a person from the entries."""
        await store.forget_person(tx, project_id, subscriber_id)

    async def _write(
        self,
        tx: Tx,
        client: Client,
        flow: Flow,
        outcome: str,
        detail: str,
        subscriber_id: str | None,
    ) -> None:
        entry = Entry(
            project_id=client.project_id,
            entry_id=new_id("osi"),
            client_id=client.client_id,
            flow=flow,
            outcome=outcome,
            detail=detail,
            subscriber_id=subscriber_id,
            at_ms=self._clock.now_ms(),
        )
        await store.insert_entry(tx, entry)
