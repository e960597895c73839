"""One visit of a browser to a platform's page, and what the sign-in page shows of it."""

from dataclasses import dataclass, field
from typing import Literal

#: Where a visit stands: the browser is at the platform, is back with a code that is being exchanged, or
#: is back without success. After success the sign-in itself is confirmed.
VisitStatus = Literal["away", "checking", "failed"]

#: Why a visit failed: the person cancelled it there, the platform did not vouch for them, or it could not be
#: asked in time.
Failure = Literal["cancelled", "refused", "unavailable"]

#: What the page says of the latest visit; None without one, and while the browser is away.
VisitNotice = Literal["checking", "cancelled", "refused", "unavailable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformVisit:
    """A row. `state_digest` and `browser_digest` are those of the secrets in the address and in the cookie;
    `sealed` holds nonce and verifier, and `sealed_code` the code that the browser brought, both encrypted."""

    project_id: str
    session_id: str
    visit_id: str
    channel_key: str
    state_digest: str
    browser_digest: str
    sealed: str = field(repr=False)
    #: The page to which the browser goes back.
    return_path: str
    expires_at_ms: int
    status: VisitStatus = "away"
    failure: Failure | None = None
    sealed_code: str | None = field(default=None, repr=False)

    @property
    def notice(self) -> VisitNotice | None:
        return "checking" if self.status == "checking" else self.failure


@dataclass(frozen=True, slots=True)
class Departure:
    """A browser that leaves for the platform's `url`, with a cookie: its name's end, and its value."""

    url: str
    cookie_ref: str
    cookie: str = field(repr=False)
    max_age_s: int


@dataclass(frozen=True, slots=True)
class Arrival:
    """What a browser brought back in the address: a code, or an error of RFC 6749, section 4.1.2.1."""

    channel_key: str
    state: str = field(repr=False)
    code: str | None = field(repr=False)
    error: str | None


@dataclass(frozen=True, slots=True)
class PlatformOffer:
    """A messenger on whose page a person can sign in, by its name in the API and the name to show."""

    channel: str
    name: str
