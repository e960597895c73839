"""Authorization requests under way, and what comes of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from msgsvc_core.kernel.i18n import Language
from msgsvc_oidc.protocol.authorize import AuthorizationRequest, ResponseMode, Session
from msgsvc_oidc.protocol.clients import Client

RequestStatus = Literal["pushed", "begun", "signed_in", "ended"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingRequest:
    """A stored request. `device_id` is that of the device which waits for the answer, if any: then there is
    no redirect URI to go to."""

    project_id: str
    request_id: str
    client_id: str
    status: RequestStatus
    request: AuthorizationRequest
    session_id: str | None
    device_id: str | None
    expires_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInNeeded:
    """The browser goes to the sign-in page, and keeps a reference to the request."""

    request_id: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsentNeeded:
    """The browser goes to the consent page, in the language that the client asked for, if any."""

    request_id: str
    session: Session
    lang: Language | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRedirect:
    """The browser goes back to the client with these parameters. `session` is the one it has now."""

    redirect_uri: str
    response_mode: ResponseMode
    parameters: Mapping[str, str]
    session: Session | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceAnswered:
    """The person answered for a device, which learns of it by itself."""

    client: Client
    allowed: bool
    session: Session | None = None


Outcome = SignInNeeded | ConsentNeeded | ClientRedirect | DeviceAnswered


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedConsent:
    """What the consent page shows. `return_host` is where the browser goes with the code, which need not be
    the client's home page; empty for an app and a device."""

    client: Client
    scopes: tuple[str, ...]
    first_name: str
    channel: str
    project_name: str
    return_host: str
    device: bool
