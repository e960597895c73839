"""Ends sessions of browsers."""

from msgsvc_core.db import Database, Tx
from msgsvc_oidc.backchannel_logout.service import LogoutDeliveries
from msgsvc_oidc.grants.references import References
from msgsvc_oidc.grants.service import Grants
from msgsvc_oidc.sessions.service import Sessions

#: What the references in the form of our own page are for.
PURPOSE = "logout"


class Logouts:
    """A session ends together with the grants that it gave, and its clients are notified."""

    def __init__(
        self,
        *,
        db: Database,
        sessions: Sessions,
        grants: Grants,
        deliveries: LogoutDeliveries,
        references: References,
    ) -> None:
        self._db = db
        self._sessions = sessions
        self._grants = grants
        self._deliveries = deliveries
        self._references = references

    async def current(self, project_id: str, session_id: str | None) -> str | None:
        """The browser's session, if it has not ended."""
        async with self._db.read() as tx:
            found = await self._sessions.get(tx, project_id, session_id)
        return None if found is None else found.session_id

    async def end(self, project_id: str, session_id: str) -> None:
        """Ends a session; of concurrent calls one does."""
        async with self._db.transaction() as tx:
            await self.end_in(tx, project_id, session_id)

    async def end_in(self, tx: Tx, project_id: str, session_id: str) -> None:
        """The same, in a transaction.

        Grants with `offline_access` stay: they are for while the person is away (Back-Channel Logout 1.0,
        section 2.7).
        """
        if await self._sessions.end(tx, project_id, session_id) is not None:
            await self._grants.revoke_of_session(tx, project_id, session_id)
            await self._deliveries.session_ended(tx, project_id, session_id)

    def confirmation(self, project_id: str, session_id: str) -> str:
        """What our own page sends along when the person presses the button: no other site knows it."""
        return self._references.make(PURPOSE, project_id, session_id)

    def is_confirmed(self, project_id: str, session_id: str, confirmation: str) -> bool:
        """Whether it is that of this session."""
        found = self._references.read(PURPOSE, project_id, confirmation)
        return found is not None and found[0] == session_id
