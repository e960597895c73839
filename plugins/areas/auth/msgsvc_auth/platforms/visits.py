"""Browsers that leave for a platform's page, and come back. A job exchanges the code that they bring."""

from msgsvc_auth.guarantees import accepts
from msgsvc_auth.messengers import messenger_name
from msgsvc_auth.models import Session
from msgsvc_auth.platforms import store
from msgsvc_auth.platforms.models import (
    Arrival,
    Departure,
    Failure,
    PlatformOffer,
    PlatformVisit,
    VisitNotice,
)
from msgsvc_auth.platforms.sealing import VisitSeal, VisitSecrets
from msgsvc_auth.settings import AuthSettings
from msgsvc_core.channels.registry import Channels
from msgsvc_core.db import Database
from msgsvc_core.jobs import URGENT, NewJob
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Forbidden, NotFound
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.security import SecretBox, digest

#: The job that exchanges a code: see `PlatformExchange`.
JOB = "auth.exchange_platform_code"

#: Characters of a code that is taken; the RFCs name no limit, and addresses are short.
MAX_CODE_LENGTH = 4096

#: Hex digits of the state's digest that name its cookie: tabs don't disturb each other.
REF_LENGTH = 16


class PlatformVisits:
    """Visits of the hosted page's browsers. `base_url` is the service's, for redirect URIs."""

    def __init__(
        self,
        *,
        clock: Clock,
        db: Database,
        secrets: SecretBox,
        channels: Channels,
        jobs: JobQueue,
        settings: AuthSettings,
        base_url: str,
    ) -> None:
        self._clock = clock
        self._db = db
        self._seal = VisitSeal(secrets)
        self._channels = channels
        self._jobs = jobs
        self._settings = settings
        self._base_url = base_url.rstrip("/")

    def offers(self, session: Session) -> list[PlatformOffer]:
        """The messengers on whose page this sign-in can take place."""
        return [
            PlatformOffer(
                name, messenger_name(self._settings, self._channels, name, session.project_id)
            )
            for name in self._names(session)
        ]

    async def notice(self, session: Session) -> VisitNotice | None:
        """What to say of the latest visit; does not query where no messenger has a page."""
        if not self._names(session):
            return None
        async with self._db.read() as tx:
            visit = await store.find(tx, session.project_id, session.session_id)
        return None if visit is None else visit.notice

    async def leave(self, session: Session, name: str, return_path: str) -> Departure:
        """The address of the platform's page for a new visit, which takes the place of an earlier one.

        Raises `NotFound` for a messenger that is not offered.
        """
        channel = self._channels.resolve(session.project_id, name)
        page = None if channel is None else channel.platform_sign_in
        if channel is None or page is None or name not in self._names(session):
            raise NotFound("nobody can sign in on the page of {name!r}", name=name)
        new = VisitSecrets.new(self.redirect_uri(channel.key))
        visit = PlatformVisit(
            project_id=session.project_id,
            session_id=session.session_id,
            visit_id=new_id("apv"),
            channel_key=channel.key,
            state_digest=digest(new.attempt.state),
            browser_digest=digest(new.cookie),
            sealed=self._seal.seal(new.attempt),
            return_path=return_path,
            expires_at_ms=session.expires_at_ms,
        )
        async with self._db.transaction() as tx:
            await store.save(tx, visit)
        return Departure(
            page.authorization_url(new.attempt),
            cookie_ref(new.attempt.state),
            new.cookie,
            session.expires_in_s(self._clock.now_ms()),
        )

    async def arrive(self, arrival: Arrival, cookie: str) -> str:
        """The path of the sign-in page, to which the browser goes back; the code is exchanged meanwhile.

        The same path, without any effect, for a state that this browser has used before. Raises `Forbidden`
        for any other: it is not of this browser, or not ours.
        """
        state_digest, browser_digest = digest(arrival.state), digest(cookie)
        failure = _failure_of(arrival)
        sealed_code = None
        if failure is None and arrival.code is not None:
            sealed_code = self._seal.seal_code(arrival.code, state_digest)
        async with self._db.transaction() as tx:
            visit = await store.use_state(
                tx,
                state_digest,
                browser_digest,
                arrival.channel_key,
                sealed_code=sealed_code,
                failure=failure,
                now_ms=self._clock.now_ms(),
            )
            if visit is None:
                # Whoever went back in their browser comes here with the same address.
                visit = await store.find_by_state(tx, state_digest, browser_digest)
            elif failure is None:
                await self._jobs.enqueue(tx, _job(visit))
        if visit is None:
            raise Forbidden("this sign-in was not started in this browser")
        return visit.return_path

    def redirect_uri(self, channel_key: str) -> str:
        """Where a platform sends browsers back: one for each channel, so that the answer of one is never
        taken for that of another (RFC 9700, section 4.4)."""
        return f"{self._base_url}/login/_return/{channel_key}"

    def _names(self, session: Session) -> list[str]:
        return [
            channel.name
            for channel in self._channels.list_for_project(session.project_id)
            if channel.platform_sign_in is not None and accepts(session, channel)
        ]


def cookie_ref(state: str) -> str:
    """Names the cookie of a visit."""
    return digest(state)[:REF_LENGTH]


def _failure_of(arrival: Arrival) -> Failure | None:
    if arrival.error == "access_denied":
        return "cancelled"
    if arrival.error is not None or not arrival.code or len(arrival.code) > MAX_CODE_LENGTH:
        return "refused"
    return None


def _job(visit: PlatformVisit) -> NewJob:
    payload = {"session_id": visit.session_id, "visit_id": visit.visit_id}
    return NewJob(JOB, payload, priority=URGENT, project_id=visit.project_id)
