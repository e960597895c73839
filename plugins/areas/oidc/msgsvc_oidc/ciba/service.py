"""Starts backchannel requests."""

from msgsvc_core.db import Database
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.ids import new_id
from msgsvc_oidc.ciba import store
from msgsvc_oidc.ciba.models import AskedRequest, StartedRequest
from msgsvc_oidc.ciba.people import HintedPeople
from msgsvc_oidc.ciba.questions import BackchannelQuestions
from msgsvc_oidc.grants.references import References
from msgsvc_oidc.protocol.ciba import BackchannelRequest
from msgsvc_oidc.protocol.clients import Client
from msgsvc_oidc.settings import OidcSettings

#: What names an `auth_req_id` to the secret key.
PURPOSE = "ciba"


class BackchannelRequests:
    """A request and its question are written in one transaction."""

    def __init__(
        self,
        *,
        clock: Clock,
        db: Database,
        settings: OidcSettings,
        references: References,
        people: HintedPeople,
        questions: BackchannelQuestions,
    ) -> None:
        self._clock = clock
        self._db = db
        self._settings = settings
        self._references = references
        self._people = people
        self._questions = questions

    async def start(self, client: Client, request: BackchannelRequest) -> StartedRequest:
        """Has the person asked. Raises `OAuthError`, and `RateLimitProject` for too many questions to the
        same person."""
        person = await self._people.find(client, request)
        longest_s = self._settings.ciba_lifetime_s
        lifetime_s = min(request.requested_expiry_s or longest_s, longest_s)
        now_ms, request_id = self._clock.now_ms(), new_id("cib")
        async with self._db.transaction() as tx:
            asked = await self._questions.ask(
                tx, client, request, person, request_id=request_id, lifetime_s=lifetime_s
            )
            started = AskedRequest(
                project_id=client.project_id,
                request_id=request_id,
                client_id=client.client_id,
                status="pending",
                scopes=request.scopes,
                interval_s=self._settings.poll_interval_s,
                expires_at_ms=min(asked.expires_at_ms, now_ms + lifetime_s * 1000),
                subscriber_id=person.subscriber_id,
                session_id=asked.session_id,
            )
            await store.insert_request(tx, started, created_at_ms=now_ms)
        return StartedRequest(
            auth_req_id=self._references.make(PURPOSE, client.project_id, request_id),
            expires_in_s=(started.expires_at_ms - now_ms) // 1000,
            interval_s=started.interval_s,
            match_number=asked.match_number,
        )
