"""The job that fetches clients' keys."""

from collections.abc import Sequence

import structlog

from msgsvc_core.db import Database
from msgsvc_core.jobs import Job, JobContext, JobSpec, LaneSpec
from msgsvc_oidc.clients import store
from msgsvc_oidc.clients.key_fetcher import KeyFetcher, KeysUnavailable
from msgsvc_oidc.clients.remote_keys import FETCH, LANE

log = structlog.get_logger(__name__)


class ClientKeyJobs:
    """A fetch that fails is not repeated by itself: the client's next request asks for it again."""

    def __init__(self, *, db: Database, fetcher: KeyFetcher) -> None:
        self._db = db
        self._fetcher = fetcher

    def specs(self) -> list[JobSpec]:
        return [JobSpec(FETCH, self.fetch, max_attempts=1)]

    def lanes(self) -> list[LaneSpec]:
        return [LaneSpec(LANE, concurrency=1, batch=1)]

    async def fetch(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """Fetches the keys of a client, which take the place of those before."""
        for job in jobs:
            await self._fetch(ctx, job.project_id or "", job.payload["client_id"])

    async def _fetch(self, ctx: JobContext, project_id: str, client_id: str) -> None:
        async with self._db.read() as tx:
            client = await store.find_client(tx, project_id, client_id)
        if client is None or client.jwks_uri is None:
            return
        try:
            keys = await self._fetcher.fetch(client.jwks_uri)
        except KeysUnavailable as failure:
            # No URL: it may hold a token.
            log.warning(
                "oidc_client_keys_not_fetched",
                project_id=project_id,
                client_id=client_id,
                error=str(failure),
            )
            return
        async with ctx.transaction() as tx:
            await store.lock_client(tx, client.row)
            await store.set_keys(tx, client.row, client.jwks_uri, keys)
