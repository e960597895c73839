"""What the consent page asks."""

from urllib.parse import urlsplit

from msgsvc_core.db import Database
from msgsvc_core.projects.service import Projects
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_oidc.authorization.models import AskedConsent
from msgsvc_oidc.authorization.service import Authorizations
from msgsvc_oidc.clients.service import Clients


class ConsentQuestions:
    """Reads what the page shows: the client, and who is signed in."""

    def __init__(
        self,
        *,
        db: Database,
        projects: Projects,
        subscribers: Subscribers,
        clients: Clients,
        authorizations: Authorizations,
    ) -> None:
        self._db = db
        self._projects = projects
        self._subscribers = subscribers
        self._clients = clients
        self._authorizations = authorizations

    async def get(self, project_id: str, request_id: str, session_id: str | None) -> AskedConsent:
        """Raises `UnusableRequest`."""
        async with self._db.read() as tx:
            pending, session = await self._authorizations.signed_in(
                tx, project_id, request_id, session_id
            )
            person = await self._subscribers.get(tx, project_id, session.subscriber_id)
            return AskedConsent(
                client=await self._clients.get(tx, project_id, pending.client_id),
                scopes=pending.request.scopes,
                first_name=person.first_name,
                channel=person.channel,
                project_name=(await self._projects.get(tx, project_id)).public_name,
                return_host=_web_host(pending.request.redirect_uri),
                device=pending.device_id is not None,
            )


def _web_host(redirect_uri: str) -> str:
    parts = urlsplit(redirect_uri)
    return parts.netloc if parts.scheme in {"http", "https"} else ""
