"""Sessions of browsers: one sign-in serves all clients of a project until it ends."""

from dataclasses import replace

from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import HOUR_MS, Clock
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.plugins.sign_ins import SignedIn
from msgsvc_oidc.grants.references import References
from msgsvc_oidc.protocol.authorize import Session
from msgsvc_oidc.sessions import store
from msgsvc_oidc.settings import OidcSettings


class Sessions:
    """Opens, finds and ends sessions. A browser holds a signed reference to its own."""

    def __init__(self, *, clock: Clock, settings: OidcSettings, references: References) -> None:
        self._clock = clock
        self._settings = settings
        self._references = references

    async def open(
        self, tx: Tx, project_id: str, person: SignedIn, *, held: str | None = None
    ) -> Session:
        """The session of a browser whose user just signed in.

        `held` is the session that the browser has. If it is the same person's, it goes on: the clients that
        it has signed in to know it by its id, and are notified when it ends.
        """
        session = Session(
            session_id=held or new_id("sid"),
            subscriber_id=person.subscriber.subscriber_id,
            auth_time_ms=person.confirmed_at_ms,
            method=person.method,
            proves=person.proves,
        )
        now_ms = self._clock.now_ms()
        expires_at_ms = now_ms + self._settings.session_hours * HOUR_MS
        if held is not None:
            if await store.renew_session(tx, project_id, session, expires_at_ms, now_ms=now_ms):
                return session
            session = replace(session, session_id=new_id("sid"))
        await store.insert_session(tx, project_id, session, expires_at_ms)
        return session

    async def get(self, tx: Tx, project_id: str, session_id: str | None) -> Session | None:
        """A session that has not ended."""
        if session_id is None:
            return None
        return await store.find_session(tx, project_id, session_id, now_ms=self._clock.now_ms())

    async def end(self, tx: Tx, project_id: str, session_id: str) -> Session | None:
        """Ends a session; None if it had ended."""
        return await store.end_session(tx, project_id, session_id, now_ms=self._clock.now_ms())

    def reference(self, project_id: str, session_id: str) -> str:
        """What the browser keeps."""
        return self._references.make("session", project_id, session_id)

    def read(self, project_id: str, reference: str | None) -> str | None:
        """The session of a browser's reference; None for what is none of the project's."""
        found = self._references.read("session", project_id, reference or "")
        return None if found is None else found[0]
