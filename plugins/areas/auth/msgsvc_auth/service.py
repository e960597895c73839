"""The rules of signing in: a session, a Yes by one person, a code that works once."""

import asyncio
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from msgsvc_auth import store
from msgsvc_auth.changes import Changes, Key, wake
from msgsvc_auth.codes import Codes
from msgsvc_auth.errors import AuthCodeExpired, AuthCodeInvalid, AuthCodeUsed
from msgsvc_auth.models import NewSession, Session, SessionBody, StaticLink
from msgsvc_auth.settings import AuthSettings
from msgsvc_core.channels import ChannelUser
from msgsvc_core.db import Lookup, Tx
from msgsvc_core.errors import ApiError, InvalidUrl, NotFound, RateLimitProject
from msgsvc_core.ids import new_secret_id, new_token
from msgsvc_core.security import digest
from msgsvc_core.subscribers.models import Subscriber

if TYPE_CHECKING:
    from msgsvc_core.service import Service

#: Seconds of the window in which sessions are counted (interface spec, section 8: per hour).
SESSION_WINDOW_S = 3600

#: The shape of a session's id: what can't be one is not looked up.
_SESSION_ID = re.compile(r"ses_[0-9A-Za-z]{44}")


@dataclass(frozen=True, slots=True)
class Confirmed:
    """What a Yes led to."""

    session: Session
    subscriber: Subscriber
    code: str


class SignIn:
    """Opens sessions, takes the answer of the person, hands out codes and exchanges them."""

    def __init__(self, service: "Service") -> None:
        self._service = service
        self._settings = service.section(AuthSettings)
        self._codes = Codes(service.secrets)
        self._sessions = Lookup(service.db, store.find_sessions)
        self._changes = Changes(self._find_decided)

    async def open(self, tx: Tx, project_id: str, body: SessionBody) -> NewSession:
        """A session for whoever opens its link.

        Raises `ValidationFailed` for an unknown channel, `InvalidUrl`, `RateLimitProject`.
        """
        if body.channel is not None:
            self._service.channels.check_name(project_id, body.channel)
        url = body.callback_url
        if url is not None and not await store.has_callback(tx, project_id, url):
            raise InvalidUrl("callback_url: must be exactly that of one of the static links")
        # Last, so that a request that is wrong takes no slot.
        await self._count_session(project_id)
        new = self._new_session(project_id, callback_url=url)
        session = replace(new.session, state=body.state, channel=body.channel, lang=body.lang)
        return await self._insert(tx, replace(new, session=session))

    async def open_by_link(self, tx: Tx, link: StaticLink) -> NewSession:
        """A session for the person who just opened a static link; the bot asks them at once."""
        return await self._insert(
            tx, self._new_session(link.project_id, callback_url=link.callback_url)
        )

    async def find(self, project_id: str, session_id: str, tx: Tx | None = None) -> Session:
        """Raises `NotFound`, for another project's session as well.

        Without `tx` the question is asked together with those of other requests.
        """
        if _SESSION_ID.fullmatch(session_id):
            session = await self._sessions.get((project_id, session_id), tx)
            if session is not None:
                return session
        raise NotFound(f"there is no session {session_id!r}")

    async def find_by_token(self, tx: Tx, token: str) -> Session | None:
        return await store.find_session_by_token(tx, digest(token))

    async def wait(self, project_id: str, session_id: str, timeout_s: float) -> Session:
        """The session, as soon as it is not pending any more, at the latest after `timeout_s`.

        Raises `NotFound`.
        """
        if timeout_s <= 0:
            return await self.find(project_id, session_id)
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + timeout_s
        key = (project_id, session_id)
        while True:
            changed = self._changes.watch(key)
            timer = loop.call_at(ends_at, wake, changed)
            try:
                session = await self.find(project_id, session_id)
                now_ms = self._service.clock.now_ms()
                if session.status(now_ms) != "pending" or loop.time() >= ends_at:
                    return session
                # Thousands may wait, and none of them needs it any more.
                del session
                await changed
            finally:
                timer.cancel()
                self._changes.forget(key, changed)

    def code_of(self, session: Session, now_ms: int) -> str | None:
        """The code to show: the same one as long as it can be exchanged, then None."""
        if session.status(now_ms) != "confirmed":
            return None
        assert session.nonce is not None
        assert session.code_hash is not None
        return self._codes.again(session.session_id, session.nonce, session.code_hash)

    async def confirm(
        self, tx: Tx, session: Session, channel: str, user: ChannelUser, chat_id: str
    ) -> Confirmed | None:
        """The person said Yes. None if the session does not wait any more; nothing happens then.

        All of it is in `tx`: the session with its code, the subscription, `auth.completed`.
        """
        now_ms = self._service.clock.now_ms()
        code = self._codes.issue(session.session_id)
        confirmed = await store.confirm(
            tx,
            session,
            code,
            now_ms=now_ms,
            code_expires_at_ms=now_ms + self._settings.code_lifetime_s * 1000,
        )
        if confirmed is None:
            return None
        # Only now: who comes second must not be subscribed by a Yes that does not count.
        subscriber = await self._service.subscribers.ensure(
            tx, session.project_id, channel, user, chat_id, source="auth"
        )
        await store.set_subscriber(tx, confirmed, subscriber.subscriber_id)
        await self._emit_completed(tx, confirmed, subscriber)
        self._tell_on_commit(tx, session)
        return Confirmed(confirmed, subscriber, code.code)

    async def deny(self, tx: Tx, session: Session) -> bool:
        """The person pressed Cancel. False if the session does not wait any more."""
        denied = await store.deny(tx, session, now_ms=self._service.clock.now_ms())
        self._tell_on_commit(tx, session)
        return denied is not None

    async def is_confirmed_by(
        self, tx: Tx, session: Session, channel: str, user: ChannelUser
    ) -> bool:
        """Whether it is this person whose Yes counted."""
        if session.subscriber_id is None:
            return False
        winner = await self._service.subscribers.find(tx, session.project_id, session.subscriber_id)
        return (winner.bot, winner.user_id) == (channel, user.user_id)

    async def verify(self, tx: Tx, project_id: str, code: str) -> tuple[Session, Subscriber]:
        """Exchanges a code, once. Raises `AuthCodeInvalid`, `AuthCodeExpired`, `AuthCodeUsed`."""
        hashes = self._codes.hashes(code)
        now_ms = self._service.clock.now_ms()
        session = await store.consume(tx, project_id, hashes, now_ms=now_ms)
        if session is None:
            raise await self._why_refused(tx, project_id, hashes)
        assert session.subscriber_id is not None
        subscriber = await self._service.subscribers.find(tx, project_id, session.subscriber_id)
        return session, subscriber

    async def _emit_completed(self, tx: Tx, session: Session, subscriber: Subscriber) -> None:
        fields = {
            "session_id": session.session_id,
            "state": session.state,
            "auth_time": session.auth_time,
        }
        await self._service.events.emit(
            tx, session.project_id, "auth.completed", fields, subscriber=subscriber
        )

    async def _why_refused(self, tx: Tx, project_id: str, hashes: list[str]) -> ApiError:
        session = await store.find_session_by_code(tx, project_id, hashes)
        if session is None:
            return AuthCodeInvalid("code: not one that this project was given")
        if session.stored_status == "consumed":
            return AuthCodeUsed("code: exchanged before; a code works once")
        return AuthCodeExpired("code: not exchanged in time; the person has to sign in again")

    async def _count_session(self, project_id: str) -> None:
        limit = self._settings.sessions_per_hour
        # It bounds load, and guards no secret: without Redis people can still sign in.
        window = await self._service.limiter.hit(
            f"auth.sessions:{project_id}", limit, SESSION_WINDOW_S, when_away="count_locally"
        )
        if not window.allowed:
            raise RateLimitProject(
                f"more than {limit} sessions in {SESSION_WINDOW_S} s",
                retry_after_s=window.retry_after_s,
            )

    def _new_session(self, project_id: str, *, callback_url: str | None) -> NewSession:
        session = Session(
            project_id=project_id,
            # The token is no part of the id, so who sees the QR code can't ask for the code.
            session_id=new_secret_id("ses"),
            stored_status="pending",
            state="",
            callback_url=callback_url,
            channel=None,
            lang=None,
            expires_at_ms=self._service.clock.now_ms() + self._settings.session_lifetime_s * 1000,
        )
        return NewSession(session, new_token())

    async def _insert(self, tx: Tx, new: NewSession) -> NewSession:
        await store.insert_session(tx, new, digest(new.token), self._service.clock.now_ms())
        return new

    def _tell_on_commit(self, tx: Tx, session: Session) -> None:
        tx.on_commit(partial(self._changes.tell, (session.project_id, session.session_id)))

    async def _find_decided(self, keys: Sequence[Key]) -> Iterable[Key]:
        async with self._service.db.read() as tx:
            return await store.find_decided(tx, keys, now_ms=self._service.clock.now_ms())
