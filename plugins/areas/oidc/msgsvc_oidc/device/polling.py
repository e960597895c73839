"""The grant type of devices at the token endpoint (RFC 8628, section 3.4)."""

from msgsvc_core.db import Database, Tx
from msgsvc_oidc.consents.service import Consents
from msgsvc_oidc.device import store
from msgsvc_oidc.device.models import DeviceRequest
from msgsvc_oidc.device.service import PURPOSE
from msgsvc_oidc.grants.references import References
from msgsvc_oidc.polling.service import Approval, Polls
from msgsvc_oidc.protocol.clients import Client
from msgsvc_oidc.protocol.errors import OAuthError, invalid_grant
from msgsvc_oidc.protocol.parameters import Parameters
from msgsvc_oidc.protocol.polling import access_denied
from msgsvc_oidc.protocol.token import Grant


class DeviceGrants:
    """The grant of a device code, once the person has approved it: of concurrent polls one gets it."""

    def __init__(
        self,
        *,
        db: Database,
        references: References,
        consents: Consents,
        polls: Polls,
    ) -> None:
        self._db = db
        self._references = references
        self._consents = consents
        self._polls = polls

    async def take(self, client: Client, parameters: Parameters) -> Grant:
        """Raises `OAuthError`."""
        code = parameters.required("device_code")
        reference = self._references.read(PURPOSE, client.project_id, code)
        if reference is None:
            raise invalid_grant("the device code is not valid")
        async with self._db.transaction() as tx:
            outcome = await self._poll(tx, client, reference[0])
        if isinstance(outcome, OAuthError):
            raise outcome
        return outcome

    async def _poll(self, tx: Tx, client: Client, request_id: str) -> Grant | OAuthError:
        found = await store.find_device(tx, client.project_id, request_id)
        device = await self._polls.check(tx, client, "device", found)
        if isinstance(device, OAuthError):
            return device
        if device.status == "pending":
            return await self._polls.wait(tx, "device", device)
        return await self._issue(tx, client, device)

    async def _issue(self, tx: Tx, client: Client, device: DeviceRequest) -> Grant | OAuthError:
        assert device.subscriber_id is not None
        assert device.auth_time_ms is not None
        assert device.method is not None
        # The person may have taken it back before the device asked.
        consented = await self._consents.scopes_of(tx, client, device.subscriber_id)
        if not client.first_party and not set(device.scopes) <= set(consented):
            return await self._polls.fail(
                tx, client, "device", device, access_denied(), before="approved"
            )
        approval = Approval(
            subscriber_id=device.subscriber_id,
            auth_time_ms=device.auth_time_ms,
            method=device.method,
            proves=device.proves,
        )
        return await self._polls.issue(tx, client, "device", device, approval, before="approved")
