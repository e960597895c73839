"""The job that delivers logout tokens."""

import random
from collections.abc import Sequence

from msgsvc_core.db import Database, Tx
from msgsvc_core.jobs import Job, JobContext, JobSpec, LaneSpec, LeaseLost, Reschedule
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Finding
from msgsvc_core.kernel.ids import new_id
from msgsvc_oidc.backchannel_logout import store
from msgsvc_oidc.backchannel_logout.models import LogoutAttempt, LogoutDelivery
from msgsvc_oidc.backchannel_logout.retries import classify
from msgsvc_oidc.backchannel_logout.sender import LogoutSender
from msgsvc_oidc.backchannel_logout.service import DELIVER, LANE
from msgsvc_oidc.clients.service import Clients
from msgsvc_oidc.issuers import Issuers
from msgsvc_oidc.keys.service import SigningKeys
from msgsvc_oidc.protocol.clients import Client
from msgsvc_oidc.protocol.logout import LOGOUT_TYPE, logout_claims


def _(text: str) -> str:
    """Marks what is translated later."""
    return text


#: What is recorded of deliveries that end without a call.
OUR_FAULT = Finding(_("an error on our side"), package="msgsvc_oidc")
NO_URL = Finding(_("the client has no URL"), package="msgsvc_oidc")

#: Concurrent calls of a process to one client.
CALLS = 4

#: Faults of our own that a delivery survives; what clients do is counted in its row.
FAULTS_ALLOWED = 20

#: Share by which a wait is longer or shorter, so that deliveries that failed together don't come together.
JITTER = 0.1


class LogoutJobs:
    """Signs tokens when they are sent, so that a retry is as fresh as the first attempt."""

    def __init__(
        self,
        *,
        clock: Clock,
        db: Database,
        issuers: Issuers,
        clients: Clients,
        keys: SigningKeys,
        sender: LogoutSender,
    ) -> None:
        self._clock = clock
        self._db = db
        self._issuers = issuers
        self._clients = clients
        self._keys = keys
        self._sender = sender

    def specs(self) -> list[JobSpec]:
        return [
            JobSpec(
                DELIVER,
                self.deliver,
                max_attempts=FAULTS_ALLOWED,
                on_dead=self.finish_dead,
                inline=True,
                sends="logout tokens to OpenID clients",
            )
        ]

    def lanes(self) -> list[LaneSpec]:
        return [LaneSpec(LANE, concurrency=CALLS, batch=1)]

    async def deliver(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """Makes the next attempt of each delivery, and plans the one after it."""
        for job in jobs:
            await self._deliver(ctx, job)

    async def finish_dead(self, tx: Tx, job: Job, _error: str) -> None:
        """Ends a delivery whose job failed for good by a fault of ours."""
        delivery_id = job.payload["delivery_id"]
        await store.fail(tx, job.project_id or "", delivery_id, OUR_FAULT)

    async def _deliver(self, ctx: JobContext, job: Job) -> None:
        project_id = job.project_id or ""
        async with self._db.read() as tx:
            delivery = await store.find_delivery(tx, project_id, job.payload["delivery_id"])
        client = None
        if delivery is not None and delivery.status == "pending":
            client = await self._clients.find(project_id, delivery.client_id)
        if delivery is None or client is None:
            # Ended or deleted meanwhile: only the job is left.
            return
        if client.backchannel_logout_uri is None:
            async with ctx.completing(job) as tx:
                await store.fail(tx, project_id, delivery.delivery_id, NO_URL)
            return
        token = await self._token(client, delivery)
        attempt = await self._sender.send(client.backchannel_logout_uri, token)
        await self._record(ctx, job, delivery, attempt)

    async def _token(self, client: Client, delivery: LogoutDelivery) -> str:
        claims = logout_claims(
            issuer=self._issuers.url(client.project_id),
            client_id=client.client_id,
            subject=delivery.subject,
            session_id=delivery.session_id,
            token_id=new_id("lgt"),
            now_ms=self._clock.now_ms(),
        )
        return await self._keys.sign(claims, client.signing_alg, LOGOUT_TYPE)

    async def _record(
        self, ctx: JobContext, job: Job, delivery: LogoutDelivery, attempt: LogoutAttempt
    ) -> None:
        verdict = classify(attempt, delivery.attempts + 1)
        next_at_ms = None
        if verdict.after_s is not None:
            spread = 1 + random.uniform(0, JITTER)  # noqa: S311 - no secret
            next_at_ms = self._clock.now_ms() + round(verdict.after_s * spread * 1000)
        done = [job] if next_at_ms is None else []
        back = [] if next_at_ms is None else [Reschedule(job, next_at_ms)]
        async with ctx.settling(done, back) as tx:
            written = await store.record_attempt(
                tx,
                delivery,
                verdict.status,
                status_code=attempt.status_code,
                failure=attempt.failure,
                next_attempt_at_ms=next_at_ms,
            )
            if not written:
                raise LeaseLost
