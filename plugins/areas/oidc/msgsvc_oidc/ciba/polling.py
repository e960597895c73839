"""The grant type of backchannel requests at the token endpoint (CIBA Core 1.0, section 10.1)."""

from msgsvc_core.db import Database, Tx
from msgsvc_core.kernel.errors import NotFound
from msgsvc_core.plugins.sign_ins import SignIns, SignInStatus
from msgsvc_oidc.authorization.sign_in_pages import SOURCE
from msgsvc_oidc.ciba import store
from msgsvc_oidc.ciba.models import AskedRequest
from msgsvc_oidc.ciba.service import PURPOSE
from msgsvc_oidc.consents.service import Consents
from msgsvc_oidc.grants.references import References
from msgsvc_oidc.polling.service import Approval, Polls
from msgsvc_oidc.protocol.clients import Client
from msgsvc_oidc.protocol.errors import OAuthError, invalid_grant
from msgsvc_oidc.protocol.parameters import Parameters
from msgsvc_oidc.protocol.polling import access_denied, code_used, expired_token
from msgsvc_oidc.protocol.token import Grant


class BackchannelGrants:
    """The grant of an `auth_req_id`, once the person has said Yes: of concurrent polls one gets it."""

    def __init__(
        self,
        *,
        db: Database,
        references: References,
        sign_ins: SignIns,
        consents: Consents,
        polls: Polls,
    ) -> None:
        self._db = db
        self._references = references
        self._sign_ins = sign_ins
        self._consents = consents
        self._polls = polls

    async def take(self, client: Client, parameters: Parameters) -> Grant:
        """Raises `OAuthError` (section 11)."""
        auth_req_id = parameters.required("auth_req_id")
        reference = self._references.read(PURPOSE, client.project_id, auth_req_id)
        if reference is None:
            raise invalid_grant("the auth_req_id is not valid")
        async with self._db.transaction() as tx:
            outcome = await self._poll(tx, client, reference[0])
        if isinstance(outcome, OAuthError):
            raise outcome
        return outcome

    async def _poll(self, tx: Tx, client: Client, request_id: str) -> Grant | OAuthError:
        found = await store.find_request(tx, client.project_id, request_id)
        request = await self._polls.check(tx, client, "ciba", found)
        if isinstance(request, OAuthError):
            return request
        status = await self._status(tx, request)
        if status == "pending":
            return await self._polls.wait(tx, "ciba", request)
        if status == "confirmed":
            return await self._issue(tx, client, request)
        if status == "consumed":
            # By another poll, after this one had read the request.
            return code_used()
        error = access_denied() if status == "denied" else expired_token()
        return await self._polls.fail(tx, client, "ciba", request, error)

    async def _status(self, tx: Tx, request: AskedRequest) -> SignInStatus:
        try:
            return await self._sign_ins.status(tx, request.project_id, request.session_id)
        except NotFound:
            # Deleted, some days after it ended.
            return "expired"

    async def _issue(self, tx: Tx, client: Client, request: AskedRequest) -> Grant | OAuthError:
        person = await self._sign_ins.take(tx, request.project_id, request.session_id)
        if person is None:
            return code_used()
        asked = (SOURCE, request.request_id, request.subscriber_id)
        if (person.source, person.source_id, person.subscriber.subscriber_id) != asked:
            return await self._polls.fail(tx, client, "ciba", request, access_denied())
        known = await self._consents.scopes_of(tx, client, request.subscriber_id)
        if not client.first_party:
            await self._consents.give(tx, client, request.subscriber_id, request.scopes)
        approval = Approval(
            subscriber_id=request.subscriber_id,
            auth_time_ms=person.confirmed_at_ms,
            method=person.method,
            proves=person.proves,
            # The question names what is new: messages may have been turned off since an earlier consent.
            messages=not client.first_party and "notify" not in known,
        )
        return await self._polls.issue(tx, client, "ciba", request, approval)
