"""Sign-in: sessions, confirmation by one user, and single-use codes."""

import asyncio
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from msgsvc_auth import store
from msgsvc_auth.changes import Changes, Key, wake
from msgsvc_auth.clients import Client
from msgsvc_auth.codes import Codes
from msgsvc_auth.confirming import Confirmations, Confirmed
from msgsvc_auth.exchange import CodeExchange, Presented
from msgsvc_auth.guarantees import Guarantees, proves
from msgsvc_auth.metrics import SignInMetrics
from msgsvc_auth.models import CreateSessionBody, NewSession, Session, StaticLink
from msgsvc_auth.page_requests import PageRequest
from msgsvc_auth.payloads import session_payload
from msgsvc_auth.session_limits import SessionLimits
from msgsvc_auth.settings import AuthSettings
from msgsvc_core.api.pagination import PageQuery, read_position
from msgsvc_core.channels import ChannelUser, Identity
from msgsvc_core.channels.registry import Channels
from msgsvc_core.db import Database, DataLoader, TransactionBatcher, Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import InvalidUrl, NotFound
from msgsvc_core.kernel.i18n import Language
from msgsvc_core.kernel.ids import new_secret_id, new_token
from msgsvc_core.plugins.sign_ins import DirectSignIn
from msgsvc_core.security import SecretBox, digest, new_number, offered
from msgsvc_core.subscribers.models import Subscriber

#: What the choice of the other numbers is derived for.
NUMBERS_PURPOSE = "auth.numbers"

#: The shape of a session's id: what can't be one is not looked up.
_SESSION_ID = re.compile(r"ses_[0-9A-Za-z]{44}")


#: The `state` of a trial sign-in.
TRIAL = "dashboard-trial"


class SignIn:
    """Opens sessions, handles the user's answer, and issues and exchanges codes."""

    def __init__(
        self,
        *,
        clock: Clock,
        db: Database,
        secrets: SecretBox,
        settings: AuthSettings,
        metrics: SignInMetrics,
        channels: Channels,
        confirmations: Confirmations,
        exchange: CodeExchange,
    ) -> None:
        self._clock = clock
        self._db = db
        self._secrets = secrets
        self._settings = settings
        self._metrics = metrics
        self._channels = channels
        self._confirmations = confirmations
        self._guarantees = Guarantees(channels)
        self._codes = Codes(secrets)
        self._sessions = DataLoader(db, store.find_sessions)
        self._openings = SessionLimits(clock, settings)
        self._changes = Changes(self._find_decided, db.listen)
        self._exchanges = TransactionBatcher(db, exchange.exchange)

    async def open(self, tx: Tx, project_id: str, body: CreateSessionBody) -> NewSession:
        """Opens a session.

        Raises `ValidationFailed` for a channel that is unknown, cannot receive answers or does not prove what
        is asked for, `InvalidUrl`, `Unavailable` while no bot is ready, `RateLimitProject`.
        """
        by_address = body.address is not None
        self._guarantees.check(project_id, body.channel, body.must_prove, by_address=by_address)
        url = body.callback_url
        if url is not None and not await store.has_callback(tx, project_id, url):
            raise InvalidUrl(
                "must be exactly that of one of the static links", field="callback_url"
            )
        token = new_token()
        if not by_address:
            self._guarantees.links(
                project_id, session_payload(token), body.channel, body.must_prove
            )
        # Last, so that a request that is wrong, or comes while no bot is ready, takes no slot.
        await self._openings.count(tx, project_id, body.client)
        session = self._new_session(
            project_id, url, body.client, number_matching=body.number_matching
        )
        session = replace(
            session,
            state=body.state,
            channel=body.channel,
            lang=body.lang,
            must_prove=tuple(body.must_prove),
        )
        return await self._insert(tx, NewSession(session, token))

    def check_channel(
        self, project_id: str, channel: str | None, must_prove: Sequence[Identity] = ()
    ) -> None:
        """Raises `ValidationFailed` for a channel that is unknown, that nobody can answer, or that does not
        prove what is asked for, and `Unavailable` if no bot is ready and nobody has an address. None is any
        channel."""
        asks = bool(self._guarantees.of_addresses(project_id, channel, must_prove))
        self._guarantees.check(project_id, channel, must_prove, by_address=asks)
        payload = session_payload(new_token())
        self._guarantees.links_of_page(project_id, payload, channel, must_prove)

    def links(self, new: NewSession) -> dict[str, str]:
        """The link to the bot of each channel, by which the person answers. Raises `Unavailable` while
        no bot is ready."""
        session = new.session
        return self._guarantees.links(
            session.project_id, session_payload(new.token), session.channel, session.must_prove
        )

    async def open_by_link(
        self,
        tx: Tx,
        link: StaticLink,
        *,
        state: str = "",
        lang: Language | None = None,
        channel: str | None = None,
        client: Client | None = None,
        browser_digest: str | None = None,
        number_matching: bool = False,
    ) -> NewSession:
        """Opens a session by a static link: in the bot, or with a `client` on a hosted page.

        Such sessions are not counted here. Only a page can show the number of `number_matching`.
        """
        session = self._new_session(
            link.project_id, link.callback_url, client, number_matching=number_matching
        )
        session = replace(
            session, state=state, channel=channel, lang=lang, must_prove=link.must_prove
        )
        return await self._insert(tx, NewSession(session, new_token(), browser_digest))

    async def open_by_request(
        self,
        tx: Tx,
        request: PageRequest,
        *,
        lang: Language,
        client: Client,
        browser_digest: str,
    ) -> NewSession:
        """Opens a session on the page of another plugin's request.

        It has no state and no callback: those of the request are the plugin's, and neither in events nor in
        the bot's links.
        """
        number_matching = request.number_matching
        session = self._new_session(
            request.project_id, None, client, number_matching=number_matching
        )
        session = replace(
            session,
            channel=request.channel,
            lang=lang,
            source=request.source,
            source_id=request.source_id,
            request_id=request.request_id,
            must_prove=request.must_prove,
            requester_name=request.requester_name,
            requester_url=request.requester_url,
        )
        return await self._insert(tx, NewSession(session, new_token(), browser_digest))

    async def open_direct(self, tx: Tx, request: DirectSignIn) -> NewSession:
        """Opens a session that one subscriber alone can confirm. No link leads to it."""
        number_matching = request.number_matching
        session = self._new_session(request.project_id, None, None, number_matching=number_matching)
        longest_s = self._settings.session_lifetime_s
        lifetime_s = min(request.lifetime_s or longest_s, longest_s)
        session = replace(
            session,
            lang=request.lang,
            expires_at_ms=session.created_at_ms + lifetime_s * 1000,
            subscriber_id=request.subscriber_id,
            must_prove=tuple(request.must_prove),
            source=request.source,
            source_id=request.source_id,
            requester_name=request.requester_name,
            requester_url=request.requester_url,
        )
        new = NewSession(session, new_token())
        await store.insert_session(tx, new, digest(new.token))
        self._metrics.count_on_commit(tx, "begun")
        return new

    async def open_trial(self, tx: Tx, project_id: str) -> NewSession:
        """Opens a trial session for a project's team; it returns to no site.

        It is exempt from limits, and charged like any other when confirmed.
        """
        session = self._new_session(project_id, None, None, number_matching=False)
        return await self._insert(tx, NewSession(replace(session, state=TRIAL), new_token()))

    async def get_trial(self, tx: Tx, project_id: str, session_id: str) -> Session:
        """A session of `open_trial`. Raises `NotFound` for real sign-ins."""
        session = await self.get(project_id, session_id, tx)
        # Anybody may give that state to a sign-in of the project's site, which leads back there.
        is_other = session.callback_url is not None or session.source is not None
        if session.state != TRIAL or is_other:
            raise NotFound("there is no trial {session_id!r}", session_id=session_id)
        return session

    async def page(self, tx: Tx, project_id: str, query: PageQuery) -> list[Session]:
        """Newest first; one more than `query.limit` where there is, so that the caller sees it."""
        return await store.list_sessions(
            tx, project_id, read_position(query.after), query.fetch_limit
        )

    async def get(self, project_id: str, session_id: str, tx: Tx | None = None) -> Session:
        """Raises `NotFound`, for another project's session as well.

        Without `tx` the question is asked together with those of other requests.
        """
        if _SESSION_ID.fullmatch(session_id):
            session = await self._sessions.get((project_id, session_id), tx)
            if session is not None:
                return session
        raise _missing(session_id)

    async def find_by_token(self, tx: Tx, token: str) -> Session | None:
        return await store.find_session_by_token(tx, digest(token))

    async def get_for_site(self, project_id: str, session_id: str, timeout_s: float) -> Session:
        """As `wait`, but raises `NotFound` for a sign-in of another plugin: its code is not the site's."""
        session = await self.wait(project_id, session_id, timeout_s)
        if session.source is not None:
            raise _missing(session_id)
        return session

    async def wait(self, project_id: str, session_id: str, timeout_s: float) -> Session:
        """The session, as soon as it is not pending any more, at the latest after `timeout_s`.

        Raises `NotFound`.
        """
        if timeout_s <= 0:
            return await self.get(project_id, session_id)
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + timeout_s
        key = (project_id, session_id)
        while True:
            changed = self._changes.watch(key)
            timer = loop.call_at(ends_at, wake, changed)
            try:
                session = await self.get(project_id, session_id)
                now_ms = self._clock.now_ms()
                is_over = self._changes.closed or loop.time() >= ends_at
                if is_over or session.status(now_ms) != "pending":
                    return session
                # Thousands may wait, and none of them needs it any more.
                del session
                await changed
            finally:
                timer.cancel()
                self._changes.unwatch(key, changed)

    def allow_waits(self) -> None:
        """The service has started."""
        self._changes.open()

    def cancel_waits(self) -> None:
        """Answers waiting requests with the current state: the server is shutting down."""
        self._changes.close()

    def code_of(self, session: Session, now_ms: int) -> str | None:
        """The code to show: the same one as long as it can be exchanged, then None."""
        if session.status(now_ms) != "confirmed":
            return None
        assert session.nonce is not None
        assert session.code_hash is not None
        return self._codes.reissue(session.session_id, session.nonce, session.code_hash)

    def numbers_of(self, session: Session) -> list[int]:
        """What the person picks from, the same at each opening; empty where Yes is enough."""
        if session.match_number is None:
            return []
        return offered(self._secrets, NUMBERS_PURPOSE, session.session_id, session.match_number)

    async def confirm(
        self,
        tx: Tx,
        session: Session,
        channel: str,
        user: ChannelUser,
        chat_id: str,
        *,
        number: int | None = None,
    ) -> Confirmed | None:
        """The person said Yes, by `number` where the session asks for one.

        None if that is not the session's number, if the channel does not prove what the session asks for, or
        it does not wait any more; nothing happens then.
        All of it is in `tx`: the session with its code, the subscription, `auth.completed`, the charge.
        """
        bot = self._channels[channel]
        if number != session.match_number or not proves(bot, session.must_prove):
            return None
        confirmed = await self._confirmations.confirm(
            tx, session, channel, user, chat_id, proves=bot.capabilities.identity
        )
        self._note_confirmed(tx, session, channel, confirmed)
        return confirmed

    async def confirm_on_platform(
        self, tx: Tx, session: Session, channel: str, user: ChannelUser, chat_id: str
    ) -> Confirmed | None:
        """As `confirm`, for a person who signed in on the platform's page in the waiting browser. No number
        is matched: question and page were in one browser."""
        bot = self._channels[channel]
        if not proves(bot, session.must_prove):
            return None
        confirmed = await self._confirmations.confirm(
            tx,
            session,
            channel,
            user,
            chat_id,
            proves=bot.capabilities.identity,
            on_platform=True,
        )
        self._note_confirmed(tx, session, channel, confirmed)
        return confirmed

    async def require_number(self, tx: Tx, session: Session) -> Session | None:
        """Has the person choose a number from now on, also where Yes was enough; None if the session does not
        wait any more."""
        return await store.require_number(tx, session, new_number(), now_ms=self._clock.now_ms())

    async def deny(self, tx: Tx, session: Session, channel: str) -> bool:
        """The person pressed Cancel. False if the session does not wait any more."""
        denied = await store.deny(tx, session, now_ms=self._clock.now_ms())
        self._notify_on_commit(tx, session)
        if denied is not None:
            self._metrics.count_on_commit(tx, "cancelled", channel)
        return denied is not None

    async def is_confirmed_by(
        self, tx: Tx, session: Session, channel: str, user: ChannelUser
    ) -> bool:
        """Whether it is this person whose Yes counted."""
        return await self._confirmations.is_of(tx, session, channel, user)

    async def verify(
        self,
        project_id: str,
        code: str,
        tx: Tx | None = None,
        *,
        must_prove: Sequence[Identity] = (),
    ) -> tuple[Session, Subscriber]:
        """Exchanges a code, once. Raises `AuthCodeInvalid`, also for a sign-in that proved none of
        `must_prove`, `AuthCodeExpired`, `AuthCodeUsed`.

        Without `tx` it is done, and committed, together with what other requests exchange.
        """
        presented = Presented(project_id, self._codes.hashes(code), tuple(must_prove))
        return await self._exchanges.submit(presented, tx)

    def _new_session(
        self,
        project_id: str,
        callback_url: str | None,
        client: Client | None,
        *,
        number_matching: bool,
    ) -> Session:
        now_ms = self._clock.now_ms()
        return Session(
            project_id=project_id,
            # The token is not part of the id, so seeing the QR code does not allow fetching the code.
            session_id=new_secret_id("ses"),
            stored_status="pending",
            state="",
            callback_url=callback_url,
            channel=None,
            lang=None,
            created_at_ms=now_ms,
            expires_at_ms=now_ms + self._settings.session_lifetime_s * 1000,
            client_ip=client.ip if client else None,
            client_agent=client.user_agent if client else None,
            match_number=new_number() if number_matching else None,
        )

    async def _insert(self, tx: Tx, new: NewSession) -> NewSession:
        session = new.session
        await store.insert_session(tx, new, digest(new.token))
        self._metrics.count_on_commit(tx, "begun")
        await self._channels.remember_start(
            tx, session.project_id, session_payload(new.token), session.expires_at_ms
        )
        return new

    def _note_confirmed(
        self, tx: Tx, session: Session, channel: str, confirmed: Confirmed | None
    ) -> None:
        if confirmed is not None:
            self._notify_on_commit(tx, session)
            self._metrics.count_on_commit(tx, "confirmed", channel)

    def _notify_on_commit(self, tx: Tx, session: Session) -> None:
        self._changes.notify_on_commit(tx, (session.project_id, session.session_id))

    async def _find_decided(self, keys: Sequence[Key]) -> Iterable[Key]:
        async with self._db.read() as tx:
            return await store.find_decided(tx, keys, now_ms=self._clock.now_ms())


def _missing(session_id: str) -> NotFound:
    return NotFound("there is no session {session_id!r}", session_id=session_id)
