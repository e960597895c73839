"""The person whom the hint of a backchannel request names."""

from msgsvc_core.db import Database, Tx
from msgsvc_core.kernel.errors import InvalidExternalId, SubscriberNotFound
from msgsvc_core.kernel.ids import is_id
from msgsvc_core.subscribers.models import Recipient
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_oidc.grants.service import Grants
from msgsvc_oidc.issuers import Issuers
from msgsvc_oidc.keys.service import SigningKeys
from msgsvc_oidc.protocol.ciba import BackchannelRequest, unknown_user_id
from msgsvc_oidc.protocol.clients import Client
from msgsvc_oidc.protocol.errors import invalid_request
from msgsvc_oidc.protocol.id_token_hint import read_hint


class HintedPeople:
    """`login_hint` is the `sub` that the client knows, or the project's own `external_id`."""

    def __init__(
        self,
        *,
        db: Database,
        issuers: Issuers,
        keys: SigningKeys,
        subscribers: Subscribers,
        grants: Grants,
    ) -> None:
        self._db = db
        self._issuers = issuers
        self._keys = keys
        self._subscribers = subscribers
        self._grants = grants

    async def find(self, client: Client, request: BackchannelRequest) -> Recipient:
        """Raises `OAuthError`."""
        subject, external_id = request.hint, None
        if request.hint_kind == "id_token_hint":
            subject = await self._subject_of_token(client, request.hint)
        elif not is_id(request.hint, "sub"):
            external_id = request.hint
        async with self._db.read() as tx:
            subscriber_id = None
            if external_id is None:
                subscriber_id = await self._grants.subscriber_of(tx, client, subject)
                if subscriber_id is None:
                    raise unknown_user_id()
            return await self._recipient(tx, client.project_id, subscriber_id, external_id)

    async def _recipient(
        self, tx: Tx, project_id: str, subscriber_id: str | None, external_id: str | None
    ) -> Recipient:
        try:
            return await self._subscribers.get_recipient(
                project_id, subscriber_id=subscriber_id, external_id=external_id, tx=tx
            )
        except (SubscriberNotFound, InvalidExternalId):
            raise unknown_user_id() from None

    async def _subject_of_token(self, client: Client, token: str) -> str:
        issuer = self._issuers.url(client.project_id)
        found = read_hint(token, await self._keys.public_keys(), issuer)
        if found is None or found.client_id != client.client_id:
            raise invalid_request("id_token_hint is no ID token of this client")
        return found.subject
