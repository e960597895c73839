"""Requests of devices."""

from dataclasses import dataclass, field

from msgsvc_core.channels import Identity
from msgsvc_core.plugins.sign_ins import SignInMethod
from msgsvc_oidc.protocol.authorize import AuthorizationRequest
from msgsvc_oidc.protocol.polling import PolledRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRequest(PolledRequest):
    """A device that waits. The last four are known once a person has approved it."""

    acr_values: tuple[str, ...] = ()
    subscriber_id: str | None = None
    auth_time_ms: int | None = None
    method: SignInMethod | None = None
    proves: Identity | None = None

    @property
    def authorization(self) -> AuthorizationRequest:
        """What the person's browser goes through. There is no redirect URI."""
        return AuthorizationRequest(
            client_id=self.client_id,
            redirect_uri="",
            response_mode="query",
            scopes=self.scopes,
            acr_values=self.acr_values,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedDevice:
    """What the device is told."""

    device_code: str = field(repr=False)
    user_code: str = field(repr=False)
    expires_in_s: int
    interval_s: int
