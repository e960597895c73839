"""Sign-ins on the hosted page: which browser may see one, and which gets the code."""

from dataclasses import replace

from msgsvc_auth.callbacks import with_code, with_denial
from msgsvc_auth.clients import Client
from msgsvc_auth.guarantees import Guarantees
from msgsvc_auth.hosted import store
from msgsvc_auth.hosted.models import BrowserSignIn, Messenger, Site, Ticket, Visit
from msgsvc_auth.hosted.sites import no_page
from msgsvc_auth.messengers import messenger_name
from msgsvc_auth.models import NewSession, Session, Status
from msgsvc_auth.page_requests import PageRequest
from msgsvc_auth.payloads import session_payload
from msgsvc_auth.service import SignIn
from msgsvc_auth.settings import AuthSettings
from msgsvc_core.channels.registry import Channels
from msgsvc_core.db import Database, Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import RateLimitProject
from msgsvc_core.limits import Limiter
from msgsvc_core.security import digest

#: Seconds of the window in which the sign-ins of an address are counted.
WINDOW_S = 3600


class HostedSignIn:
    """Opens sign-ins for browsers, and shows each only to the browser that started it."""

    def __init__(
        self,
        *,
        clock: Clock,
        db: Database,
        limiter: Limiter,
        settings: AuthSettings,
        channels: Channels,
        sign_in: SignIn,
    ) -> None:
        self._clock = clock
        self._db = db
        self._limiter = limiter
        self._settings = settings
        self._channels = channels
        self._guarantees = Guarantees(channels)
        self._sign_in = sign_in

    @property
    def pending_s(self) -> int:
        """Seconds for which a browser may need its ticket: until the Yes, then until the code dies."""
        return self._settings.session_lifetime_s + self._settings.code_lifetime_s

    @property
    def handed_over_s(self) -> int:
        """Seconds for which a browser that was sent on needs it: as long as the code may live."""
        return self._settings.code_lifetime_s

    def may_begin(self, site: Site) -> bool:
        """Whether sign-ins can be started on the page; a request runs out."""
        return site.request is None or site.request.is_open(self._clock.now_ms())

    async def open(self, site: Site, visit: Visit, client: Client) -> BrowserSignIn:
        """A new sign-in for this browser.

        Raises `ValidationFailed` for a channel that is unknown, or that nobody can answer,
        `RateLimitProject` for an address that has opened too many, `Unavailable` if no bot is ready, and
        `NotFound` for a request that has run out.
        """
        if not self.may_begin(site):
            raise no_page()
        # Before counting: without an available bot no sign-in takes place.
        self._sign_in.check_channel(site.project.project_id, visit.channel, site.origin.must_prove)
        await self._count(client)
        secret = Ticket.new_secret()
        async with self._db.transaction() as tx:
            new = await self._begin(tx, site, visit, client, browser_digest(site, secret))
            held = BrowserSignIn(new.session, Ticket(secret, new.token))
            # Before the commit: a sign-in that no bot can ask about is none.
            self.messengers(held)
        return held

    async def _begin(
        self, tx: Tx, site: Site, visit: Visit, client: Client, browser: str
    ) -> NewSession:
        if isinstance(site.origin, PageRequest):
            return await self._sign_in.open_by_request(
                tx, site.origin, lang=visit.lang, client=client, browser_digest=browser
            )
        return await self._sign_in.open_by_link(
            tx,
            site.origin,
            state=visit.state,
            lang=visit.lang,
            channel=visit.channel,
            client=client,
            browser_digest=browser,
            number_matching=site.origin.number_matching,
        )

    async def find(self, site: Site, ticket: Ticket | None) -> BrowserSignIn | None:
        """The sign-in of the browser that has this ticket, for this site."""
        if ticket is None:
            return None
        project_id = site.project.project_id
        async with self._db.read() as tx:
            session_id = await store.find_session_id(
                tx, project_id, browser_digest(site, ticket.secret), digest(ticket.token)
            )
            if session_id is None:
                return None
            return BrowserSignIn(await self._sign_in.get(project_id, session_id, tx), ticket)

    async def wait(self, sign_in: BrowserSignIn, timeout_s: float) -> BrowserSignIn:
        """The same as soon as it is not pending any more, at the latest after `timeout_s`."""
        session = sign_in.session
        now = await self._sign_in.wait(session.project_id, session.session_id, timeout_s)
        return sign_in._replace(session=now)

    async def set_language(self, sign_in: BrowserSignIn, visit: Visit) -> BrowserSignIn:
        """Has the bot ask in the language in which the page is read."""
        session = sign_in.session
        if self.status(sign_in) != "pending" or session.lang == visit.lang:
            return sign_in
        async with self._db.transaction() as tx:
            await store.set_lang(tx, session.project_id, session.session_id, visit.lang)
        return sign_in._replace(session=replace(session, lang=visit.lang))

    def status(self, sign_in: BrowserSignIn) -> Status:
        """Where the sign-in stands; one whose code can't be shown any more has run out."""
        status = sign_in.session.status(self._clock.now_ms())
        return (
            "expired" if status == "confirmed" and self._code(sign_in.session) is None else status
        )

    def expires_in_s(self, sign_in: BrowserSignIn) -> int:
        return sign_in.session.expires_in_s(self._clock.now_ms())

    def location(self, site: Site, sign_in: BrowserSignIn) -> str | None:
        """Where the browser takes the code: the callback that is registered now, and no other."""
        code = self._code(sign_in.session)
        if code is None:
            return None
        state = sign_in.session.state if site.request is None else site.request.state
        return with_code(site.return_url, code, state)

    def back(self, site: Site) -> str | None:
        """Where a browser goes back to the requester without a code; None for a static link."""
        request = site.request
        return None if request is None else with_denial(request.return_url, request.state)

    def messengers(self, sign_in: BrowserSignIn) -> list[Messenger]:
        """How the person can answer. Raises `Unavailable` if no bot is ready, and nobody can be asked at an
        address."""
        session = sign_in.session
        channels, payload = self._channels, session_payload(sign_in.ticket.token)
        links = self._guarantees.links_of_page(
            session.project_id, payload, session.channel, session.must_prove
        )
        starts = channels.start_messages(session.project_id, payload, links)

        def called(name: str) -> str:
            return messenger_name(self._settings, channels, name, session.project_id)

        return [
            Messenger(
                name,
                called(name),
                link,
                starts.get(name),
                channels.mark(name, session.project_id),
            )
            for name, link in links.items()
        ]

    def _code(self, session: Session) -> str | None:
        return self._sign_in.code_of(session, self._clock.now_ms())

    async def _count(self, client: Client) -> None:
        limit = self._settings.pages_per_hour_per_address
        # It bounds load, and guards no secret: without Redis people can still sign in. Those whose
        # address nobody knows are counted together.
        window = await self._limiter.hit(
            f"auth.pages:{client.network}", limit, WINDOW_S, when_away="count_locally"
        )
        if not window.allowed:
            raise RateLimitProject(
                "more than {limit} sign-ins from one address in {seconds} s",
                limit=limit,
                seconds=WINDOW_S,
                retry_after_s=window.retry_after_s,
            )


def browser_digest(site: Site, secret: str) -> str:
    """What is stored of the secret of the browser that began a sign-in."""
    # A cookie that was moved to another site's page opens nothing there.
    return digest(f"{site.origin_id}.{secret}")
