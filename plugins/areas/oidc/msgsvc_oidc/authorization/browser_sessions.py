"""The session of a browser in which somebody signs in."""

from typing import Protocol

from msgsvc_core.db import Tx
from msgsvc_core.plugins.sign_ins import SignedIn
from msgsvc_oidc.protocol.authorize import Session
from msgsvc_oidc.sessions.service import Sessions


class SessionEnding(Protocol):
    """Ends sessions, with what they gave."""

    async def end_in(self, tx: Tx, project_id: str, session_id: str) -> None:
        """Does nothing for one that has ended."""
        ...


class BrowserSessions:
    """A browser has one session: if another person signs in there, that of the first one ends."""

    def __init__(self, *, sessions: Sessions, endings: SessionEnding) -> None:
        self._sessions = sessions
        self._endings = endings

    async def get(self, tx: Tx, project_id: str, session_id: str | None) -> Session | None:
        """A session that has not ended."""
        return await self._sessions.get(tx, project_id, session_id)

    async def open(self, tx: Tx, project_id: str, person: SignedIn, *, held: str | None) -> Session:
        """The session of a person who signed in, in the browser that `held` a session or none."""
        session = await self._sessions.open(tx, project_id, person, held=held)
        if held is not None and held != session.session_id:
            await self._endings.end_in(tx, project_id, held)
        return session
