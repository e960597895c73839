"""The end of a request: the browser goes back to the client, or a device learns the answer by itself."""

from msgsvc_core.db import Tx
from msgsvc_oidc.authorization.issuing import CodeIssuer
from msgsvc_oidc.authorization.models import DeviceAnswered, Outcome, PendingRequest
from msgsvc_oidc.device.service import DeviceRequests
from msgsvc_oidc.protocol.authorize import Session
from msgsvc_oidc.protocol.clients import Client
from msgsvc_oidc.protocol.errors import RedirectError


class RequestEndings:
    """Hands the person's answer to who asked."""

    def __init__(self, *, codes: CodeIssuer, devices: DeviceRequests) -> None:
        self._codes = codes
        self._devices = devices

    async def allow(
        self,
        tx: Tx,
        client: Client,
        pending: PendingRequest,
        session: Session,
        *,
        agreed: bool,
    ) -> Outcome:
        """The person agreed: now if `agreed`, else before. Raises `UnusableRequest` if the device does not
        wait any more."""
        if pending.device_id is None:
            return await self._codes.issue(tx, client, pending.request, session, agreed=agreed)
        await self._devices.approve(tx, client, pending.device_id, session)
        return DeviceAnswered(client=client, allowed=True, session=session)

    async def refuse(
        self, tx: Tx, client: Client, pending: PendingRequest, error: RedirectError
    ) -> Outcome:
        """The person or the provider refused. Raises as `allow`."""
        if pending.device_id is None:
            return await self._codes.refuse(tx, client, pending.request, error)
        await self._devices.deny(tx, client, pending.device_id)
        return DeviceAnswered(client=client, allowed=False)
