"""Keys that clients publish at a URL (`jwks_uri`): asked for here, fetched by a job."""

from msgsvc_core.db import Tx
from msgsvc_core.jobs import JobQueue, NewJob
from msgsvc_core.kernel.clock import Clock
from msgsvc_oidc.clients import store
from msgsvc_oidc.protocol.clients import Client

#: The job that fetches the keys of one client, and the prefix of its lanes: one per client, so that a slow
#: one delays no other.
FETCH, LANE = "oidc.fetch_client_keys", "oidc-keys"

#: Milliseconds between two fetches of a client's keys, whatever it sends: nobody can have the provider call
#: another host in a loop.
PAUSE_MS = 60_000


class RemoteKeys:
    """No request waits for another host: it fails, and the next one finds the keys."""

    def __init__(self, *, clock: Clock, jobs: JobQueue) -> None:
        self._clock = clock
        self._jobs = jobs

    def may_ask(self, client: Client) -> bool:
        """Whether the last fetch is long enough ago, as far as is known without a query."""
        asked_at_ms = client.jwks_asked_at_ms
        if client.jwks_uri is None:
            return False
        return asked_at_ms is None or self._clock.now_ms() - asked_at_ms >= PAUSE_MS

    async def ask(self, tx: Tx, client: Client) -> None:
        """Has the keys fetched, unless they were within the last minute: of concurrent calls one does."""
        now_ms = self._clock.now_ms()
        if await store.ask_for_keys(tx, client.row, now_ms=now_ms, before_ms=now_ms - PAUSE_MS):
            job = NewJob(
                FETCH,
                {"client_id": client.client_id},
                lane=f"{LANE}:{client.client_id}",
                key=client.client_id,
                project_id=client.project_id,
            )
            await self._jobs.enqueue(tx, job)
