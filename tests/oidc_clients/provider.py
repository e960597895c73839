"""What the tests of clients need of a provider: to register a client, and a person who signs in.

The clients only speak HTTP with the issuer. What the person does (presses Yes in a messenger, fills in a
form) is the provider's own, so each provider under test brings it along.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import httpx2
from playwright.async_api import Page

AuthMethod = Literal["client_secret_basic", "client_secret_post", "private_key_jwt", "none"]

#: Grant types by the names of their standards.
CODE = "authorization_code"
REFRESH = "refresh_token"
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
CIBA = "urn:openid:params:grant-type:ciba"

#: What clients of the tests ask for, unless the case is about scopes.
SCOPE = "openid profile phone offline_access"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSpec:
    """A client to be registered. `jwks` are its public keys, for `private_key_jwt`."""

    name: str
    redirect_uris: Sequence[str] = ()
    auth_method: AuthMethod = "client_secret_basic"
    grant_types: Sequence[str] = (CODE, REFRESH)
    post_logout_redirect_uris: Sequence[str] = ()
    backchannel_logout_uri: str | None = None
    jwks: dict[str, object] | None = None


@dataclass(frozen=True, slots=True)
class RegisteredClient:
    """A client as the provider knows it. A public one has no secret."""

    client_id: str
    client_secret: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    """Where the browser goes from the provider: `form` is posted, unless it is None."""

    url: str
    form: dict[str, str] | None = None


class Provider(Protocol):
    """An issuer, and a person with a messenger or a password."""

    @property
    def issuer(self) -> str:
        """The issuer's URL, as ID tokens name it."""
        ...

    @property
    def hint(self) -> str:
        """A `login_hint` by which CIBA finds the person."""
        ...

    async def register(self, spec: ClientSpec) -> RegisteredClient:
        """A new client."""
        ...

    async def sign_in(self, url: str, cookies: httpx2.Cookies, *, yes: bool = True) -> Answer:
        """Opens the authorization URL in a browser with these cookies, which may come to hold a session. The
        person signs in and agrees, or cancels; an answer without a page in between is the same."""
        ...

    async def sign_in_page(self, page: Page) -> None:
        """The same in a real browser that shows the first page of the provider. Returns once the person has
        done their part."""
        ...

    async def log_out_page(self, page: Page) -> None:
        """The person confirms in a real browser that was sent to the end session endpoint, if asked."""
        ...

    async def log_out(self, url: str, cookies: httpx2.Cookies) -> Answer:
        """Opens a URL of the end session endpoint. The person confirms, if asked."""
        ...

    async def answer_device(self, uri: str, user_code: str, *, yes: bool = True) -> None:
        """The person opens `verification_uri`, or that with the code in it, and answers."""
        ...

    async def answer_ciba(
        self, started: Mapping[str, Any], message: str, *, yes: bool = True
    ) -> None:
        """The person answers the question of a backchannel authentication request: of its response, and its
        `binding_message`, which no other request has."""
        ...


@runtime_checkable
class Clocked(Protocol):
    """A provider whose clock a test sets."""

    async def advance(self, seconds: int) -> None:
        """Lets time pass, for the provider alone."""
        ...
