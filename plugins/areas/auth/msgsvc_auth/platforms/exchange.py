"""The job that exchanges the code of a platform for the person, and confirms the sign-in."""

from collections.abc import Sequence

import structlog

from msgsvc_auth.models import Session
from msgsvc_auth.platforms import store
from msgsvc_auth.platforms.models import Failure, PlatformVisit
from msgsvc_auth.platforms.sealing import VisitSeal
from msgsvc_auth.platforms.visits import JOB
from msgsvc_auth.service import SignIn
from msgsvc_core.channels import (
    Channel,
    DeliveryError,
    PlatformPerson,
    PlatformSignInRefused,
)
from msgsvc_core.channels.registry import Channels
from msgsvc_core.db import Tx
from msgsvc_core.jobs import Job, JobContext, JobSpec, Retry
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import NotFound, ValidationFailed
from msgsvc_core.security import DecryptionError, SecretBox
from msgsvc_core.subscribers.contacts import ContactKind, VerifiedContacts
from msgsvc_core.subscribers.models import Subscriber

#: Attempts at a platform that can't be asked: after 1, 2 and 4 s. A person waits before the page.
MAX_ATTEMPTS = 4

log = structlog.get_logger(__name__)


class PlatformExchange:
    """Exchanges codes, outside of requests and transactions."""

    def __init__(
        self,
        *,
        clock: Clock,
        secrets: SecretBox,
        channels: Channels,
        contacts: VerifiedContacts,
        sign_in: SignIn,
    ) -> None:
        self._clock = clock
        self._seal = VisitSeal(secrets)
        self._channels = channels
        self._contacts = contacts
        self._sign_in = sign_in

    @property
    def spec(self) -> JobSpec:
        return JobSpec(JOB, self.run, max_attempts=MAX_ATTEMPTS, on_dead=self.on_dead)

    async def run(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        for job in jobs:
            await self._exchange(ctx, job)

    async def on_dead(self, tx: Tx, job: Job, _error: str) -> None:
        """The page says that it did not work, and offers to start again."""
        visit = await _find(tx, job)
        if visit is not None:
            await store.fail(tx, visit, "unavailable")

    async def _exchange(self, ctx: JobContext, job: Job) -> None:
        async with ctx.reading() as tx:
            visit = await _find(tx, job)
            session = None if visit is None else await self._pending(tx, visit)
        if visit is None or session is None:
            # The person has signed in by the bot meanwhile, or started again.
            return
        async with self._channels.borrow(visit.channel_key) as channel:
            if channel is None:
                await _fail(ctx, job, visit, "unavailable")
                return
            try:
                person = await self._person(channel, visit)
            except (PlatformSignInRefused, DecryptionError) as error:
                log.warning("platform_sign_in_refused", channel=channel.key, reason=str(error))
                await _fail(ctx, job, visit, "refused")
            except DeliveryError as error:
                log.warning("platform_sign_in_failed", channel=channel.key, reason=error.text)
                # A code that may have been taken is worth nothing.
                if not error.in_doubt and job.attempts < MAX_ATTEMPTS:
                    raise Retry(2.0 ** (job.attempts - 1), error.text) from None
                await _fail(ctx, job, visit, "unavailable")
            else:
                await self._confirm(ctx, job, visit, session, channel, person)

    async def _pending(self, tx: Tx, visit: PlatformVisit) -> Session | None:
        try:
            session = await self._sign_in.get(visit.project_id, visit.session_id, tx)
        except NotFound:
            return None
        return session if session.status(self._clock.now_ms()) == "pending" else None

    async def _person(self, channel: Channel, visit: PlatformVisit) -> PlatformPerson:
        page = channel.platform_sign_in
        if page is None or visit.sealed_code is None:
            raise PlatformSignInRefused("the channel has no such page any more")
        attempt = self._seal.open(visit.sealed, visit.state_digest)
        return await page.exchange(
            self._seal.open_code(visit.sealed_code, visit.state_digest), attempt
        )

    async def _confirm(
        self,
        ctx: JobContext,
        job: Job,
        visit: PlatformVisit,
        session: Session,
        channel: Channel,
        person: PlatformPerson,
    ) -> None:
        async with ctx.completing(job) as tx:
            if not await store.finish(tx, visit):
                return
            confirmed = await self._sign_in.confirm_on_platform(
                tx, session, channel.key, person.user, person.chat_id
            )
            if confirmed is not None:
                await self._record(tx, confirmed.subscriber, "phone", person.phone, channel)
                await self._record(tx, confirmed.subscriber, "email", person.email, channel)

    async def _record(
        self, tx: Tx, subscriber: Subscriber, kind: ContactKind, value: str | None, channel: Channel
    ) -> None:
        if value is None:
            return
        project_id, subscriber_id = subscriber.project_id, subscriber.subscriber_id
        try:
            await self._contacts.record(
                tx, project_id, subscriber_id, kind=kind, value=value, source=channel.name
            )
        except ValidationFailed as error:
            # The person is known all the same.
            log.warning("contact_not_recorded", channel=channel.key, kind=kind, reason=str(error))


async def _find(tx: Tx, job: Job) -> PlatformVisit | None:
    """The visit of a job, unless another took its place or it is decided."""
    visit = await store.find(tx, job.project_id or "", job.payload["session_id"])
    if visit is None or visit.visit_id != job.payload["visit_id"] or visit.status != "checking":
        return None
    return visit


async def _fail(ctx: JobContext, job: Job, visit: PlatformVisit, failure: Failure) -> None:
    async with ctx.completing(job) as tx:
        await store.fail(tx, visit, failure)
