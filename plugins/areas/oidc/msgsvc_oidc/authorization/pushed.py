"""Authorization requests that clients have pushed (RFC 9126)."""

from dataclasses import dataclass

from msgsvc_core.db import Database
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.ids import new_id
from msgsvc_oidc.authorization import store
from msgsvc_oidc.authorization.models import PendingRequest
from msgsvc_oidc.grants.references import References
from msgsvc_oidc.protocol.authorize import AuthorizationRequest
from msgsvc_oidc.protocol.clients import Client
from msgsvc_oidc.protocol.pushed import reference_of, request_uri_of, unknown_request_uri

#: What the references are for.
PURPOSE = "pushed"


@dataclass(frozen=True, slots=True)
class Pushed:
    """What the client gets for its request."""

    request_uri: str
    expires_in_s: int

    def body(self) -> dict[str, object]:
        """As JSON (RFC 9126, section 2.2)."""
        return {"request_uri": self.request_uri, "expires_in": self.expires_in_s}


class PushedRequests:
    """Keeps requests for `lifetime_s` seconds. Each is used once, by its client."""

    def __init__(
        self, *, clock: Clock, db: Database, references: References, lifetime_s: int
    ) -> None:
        self._clock = clock
        self._db = db
        self._references = references
        self._lifetime_s = lifetime_s

    async def push(self, client: Client, request: AuthorizationRequest) -> Pushed:
        """Stores a request."""
        pending = PendingRequest(
            project_id=client.project_id,
            request_id=new_id("oar"),
            client_id=client.client_id,
            status="pushed",
            request=request,
            session_id=None,
            device_id=None,
            expires_at_ms=self._clock.now_ms() + self._lifetime_s * 1000,
        )
        async with self._db.transaction() as tx:
            await store.insert_request(tx, pending)
        reference = self._references.make(PURPOSE, client.project_id, pending.request_id)
        return Pushed(request_uri_of(reference), self._lifetime_s)

    async def take(self, client: Client, request_uri: str) -> AuthorizationRequest:
        """The request, once: it is used up, whatever comes of it. Raises `RedirectError`."""
        found = self._references.read(PURPOSE, client.project_id, reference_of(request_uri) or "")
        if found is None:
            raise unknown_request_uri()
        async with self._db.transaction() as tx:
            used = await store.use_pushed(tx, *client.row, found[0], now_ms=self._clock.now_ms())
        if used is None:
            raise unknown_request_uri()
        return used.request
