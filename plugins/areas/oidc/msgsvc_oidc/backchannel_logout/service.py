"""Queues logout tokens for the clients that want them, and keeps a journal of them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.db import Tx
from msgsvc_core.jobs import JobQueue, NewJob
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.ids import new_id
from msgsvc_oidc.backchannel_logout import store
from msgsvc_oidc.backchannel_logout.models import LogoutDelivery, SignedOut

#: The job that delivers a token, and the prefix of its lanes: one per client, so that a slow one delays no
#: other.
DELIVER, LANE = "oidc.deliver_logout", "oidc-logout"


class LogoutDeliveries:
    """Each delivery is written in the transaction that ends the session, and made by a job."""

    def __init__(self, *, clock: Clock, jobs: JobQueue) -> None:
        self._clock = clock
        self._jobs = jobs

    async def session_ended(self, tx: Tx, project_id: str, session_id: str) -> None:
        """A browser's session ended."""
        found = await store.clients_of_session(tx, project_id, session_id)
        await self._queue(tx, [replace(each, session_id=session_id) for each in found])

    async def consent_ended(
        self, tx: Tx, project_id: str, client_id: str, subscriber_id: str
    ) -> None:
        """A person took back what they allowed a client: all their sessions with it end."""
        await self._queue(
            tx, await store.clients_of_person(tx, project_id, subscriber_id, client_id)
        )

    async def person_left(self, tx: Tx, project_id: str, subscriber_id: str) -> None:
        """A person is being erased: the sessions with all clients end. Before their grants are deleted."""
        await self._queue(tx, await store.clients_of_person(tx, project_id, subscriber_id))

    async def forget_people(self, tx: Tx, project_id: str) -> None:
        """Removes people from deliveries that have ended. Those under way still name them to the client,
        which is to sign them out."""
        await store.forget_subjects(tx, project_id)

    async def page(
        self, tx: Tx, project_id: str, client_id: str, query: PageQuery
    ) -> Sequence[LogoutDelivery]:
        """Newest first; one more than `query.limit` where there is, so that the caller sees it."""
        return await store.list_deliveries(
            tx, project_id, client_id, query.after, query.fetch_limit
        )

    async def _queue(self, tx: Tx, signed_out: Iterable[SignedOut]) -> None:
        now_ms = self._clock.now_ms()
        for each in signed_out:
            delivery = LogoutDelivery(
                project_id=each.project_id,
                delivery_id=new_id("old"),
                client_id=each.client_id,
                subject=each.subject,
                session_id=each.session_id,
                status="pending",
                attempts=0,
                status_code=None,
                error="",
                failure=None,
                created_at_ms=now_ms,
                next_attempt_at_ms=now_ms,
            )
            await store.insert_delivery(tx, delivery)
            await self._jobs.enqueue(tx, _job(delivery))


def _job(delivery: LogoutDelivery) -> NewJob:
    return NewJob(
        DELIVER,
        {"delivery_id": delivery.delivery_id},
        lane=f"{LANE}:{delivery.client_id}",
        project_id=delivery.project_id,
    )
