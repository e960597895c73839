"""Models of sessions and static links: internal, and of the API."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from msgsvc_auth.clients import USER_AGENT, Client
from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import Query, RequestModel, ResponseModel
from msgsvc_core.api.pagination import NextCursor, PageQuery, position_of
from msgsvc_core.api.types import CreatedAt, Kept, OnChannel, SubscriberId, Time, Url, UrlText
from msgsvc_core.channels import Identity
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.i18n import LanguageTag
from msgsvc_core.kernel.visible_text import check_visible
from msgsvc_core.plugins.sign_ins import SignInMethod
from msgsvc_core.subscribers.models import (
    Address,
    BotLinks,
    FirstName,
    Lang,
    OwnId,
    ProvenIdentity,
    QrCodes,
    StartMessages,
    Subscriber,
    TagNames,
    Username,
)

Status = Literal["pending", "confirmed", "denied", "expired", "consumed"]

#: Who exchanges a code: a site's server by the API, or the plugin whose request the sign-in was.
CodeKind = Literal["site", "plugin"]

#: Seconds between two looks at a session's status (decision 0075: 2-3).
POLL_INTERVAL_S = 2

#: Longest time that a look at the status may be held (decision 0075).
MAX_WAIT_S = 25

#: Characters of `state` (decision 0075).
MAX_STATE_LENGTH = 512

#: A static link's slug (decision 0075).
Slug = Annotated[str, Field(pattern=r"^[a-z0-9-]{3,48}$", examples=["shop"])]

#: What a project calls a static link.
LinkName = Annotated[
    str,
    Field(min_length=1, max_length=100, examples=["Sign-in page"]),
    AfterValidator(check_visible),
]

#: Values of the examples; `state` and the code are random text.
STATE = "rK9vX2pQ7mLw"
CODE = "gaBAMzVZHP6if70nxMD7DuZq6F3t0UjSoRNRXdJiTXg"
CALLBACK_URL = f"{examples.SITE_URL}/signed-in"
SESSION_PAYLOAD = "auth_s_7bYc0RkqWm4XvT1nLz8HsD"

NAME_OF_LINK = "Helps you tell links apart: 1-100 characters."
CALLBACK = "Where people return with `code` and `state`; https, or http on localhost."
MUST_PROVE = (
    "Only channels that prove one of these are offered and accepted: an `account` on a messenger, access to a"
    " `mailbox`, a `phone` number, an account that a `homeserver` vouches for. Empty: any channel."
)
MUST_HAVE_PROVEN = (
    "Refused with `auth_code_invalid`, and not used up, is the code of a sign-in that proved none of these:"
    " an `account` on a messenger, access to a `mailbox`, a `phone` number, an account that a `homeserver`"
    " vouches for. Empty: any. Give it if you rely on it, since people could bring the code of another static"
    " link."
)
NUMBER_MATCHING = "Whether the hosted page shows a number that the person has to choose in the bot."

#: What a sign-in has to prove, each once.
Proofs = Annotated[
    list[Identity],
    Field(max_length=4, examples=[["phone"]]),
    AfterValidator(lambda given: list(dict.fromkeys(given))),
]

#: A static link in a path.
NamedLink = Annotated[
    str, Field(description="The static sign-in link, by its slug.", examples=["shop"])
]
SessionId = Annotated[
    str,
    Field(
        description="Id of the sign-in, from `POST /v1/auth/session`; hard to guess.",
        examples=["ses_032aJamqrKLYEWygh3Ss7K0VTgM6HyNgBFAUOJfgHwk4"],
    ),
]
State = Annotated[
    str,
    Field(description="That of the request; empty if it had none.", examples=[STATE]),
]


@dataclass(frozen=True, slots=True)
class Session:
    """One sign-in, from the question to the exchange of its code. `stored_status` does not consider
    expiry."""

    project_id: str
    session_id: str
    stored_status: Status
    state: str
    callback_url: str | None
    channel: str | None
    lang: LanguageTag | None
    created_at_ms: int
    expires_at_ms: int
    #: What the site says of the browser that asks, for the bot's question.
    client_ip: str | None = None
    client_agent: str | None = None
    #: 10-99; shown by the site, to be picked in the bot. None where Yes is enough.
    match_number: int | None = None
    subscriber_id: str | None = None
    nonce: str | None = None
    code_hash: str | None = None
    confirmed_at_ms: int | None = None
    code_expires_at_ms: int | None = None
    #: The plugin that started it, and its id there; None for sign-ins of the API and of static links.
    source: str | None = None
    source_id: str | None = None
    #: The request whose page it is on; None for a question that a plugin asks directly.
    request_id: str | None = None
    requester_name: str | None = None
    requester_url: str | None = None
    #: Whether the platform's own page told who it is.
    on_platform: bool = False
    #: One of these has to be proven; empty for anything.
    must_prove: tuple[Identity, ...] = ()
    #: What the channel proved on which it was confirmed.
    proves: Identity | None = None

    @property
    def is_direct(self) -> bool:
        """Whether a plugin asks one subscriber, who alone can answer."""
        return self.source is not None and self.request_id is None

    @property
    def method(self) -> SignInMethod:
        """How the person answers, or answered."""
        if self.on_platform:
            return "platform"
        return "button" if self.match_number is None else "number"

    def status(self, now_ms: int) -> Status:
        """The status at that moment: a question, or a code, that ran out is `expired`."""
        if self.stored_status in {"pending", "confirmed"} and now_ms >= self._ends_at_ms:
            return "expired"
        return self.stored_status

    def expires_in_s(self, now_ms: int) -> int:
        """Seconds, rounded up, that the question or the code is still good for; else 0."""
        if self.status(now_ms) not in {"pending", "confirmed"}:
            return 0
        return -((now_ms - self._ends_at_ms) // 1000)

    @property
    def position(self) -> str:
        """Sort key for lists: session ids are random and have no order."""
        return position_of(self.created_at_ms, self.session_id)

    @property
    def auth_time(self) -> str:
        """When the person pressed Yes."""
        assert self.confirmed_at_ms is not None
        return to_rfc3339(self.confirmed_at_ms)

    @property
    def _ends_at_ms(self) -> int:
        return self.expires_at_ms if self.code_expires_at_ms is None else self.code_expires_at_ms


@dataclass(frozen=True, slots=True)
class NewSession:
    """A new session, and the token of its bot links and buttons.

    `browser_digest` is that of the secret in a browser's cookie on the hosted page; None for other sessions.
    """

    session: Session
    token: str
    browser_digest: str | None = None


@dataclass(frozen=True, slots=True)
class StaticLink:
    """A permanent sign-in link with a slug."""

    project_id: str
    link_id: str
    slug: str
    name: str
    callback_url: str
    number_matching: bool
    created_at_ms: int
    must_prove: tuple[Identity, ...] = ()


class CreateSessionBody(RequestModel):
    """A new session and its secrets."""

    state: str = Field(
        "",
        max_length=MAX_STATE_LENGTH,
        description="Returned with the code; bind it to the browser's session to prevent CSRF.",
        examples=[STATE],
    )
    callback_url: UrlText | None = Field(
        None,
        description="Where the bot sends the person back with the code; must equal that of one of the static"
        " links. Without it, poll the status.",
        examples=[CALLBACK_URL],
    )
    channel: str | None = Field(
        None,
        description="Offer only this channel; without it, all that can ask.",
        examples=[examples.CHANNEL],
    )
    must_prove: Proofs = Field(default_factory=list, description=MUST_PROVE)
    address: Address | None = Field(
        None,
        description="Email address or phone number, on the `channel` where people are known by one: the"
        " question is sent there at once. Use `number_matching` too, so that nobody confirms a sign-in that"
        " another person started.",
    )
    lang: LanguageTag | None = Field(
        None,
        description="Language of the bot's question, by any tag of BCP 47: the service's that is closest."
        " Without it, the person's own.",
        examples=["en"],
    )
    number_matching: bool = Field(
        False,
        description="Number matching: the person chooses in the bot the number that your page shows.",
        examples=[True],
    )
    client: Client | None = Field(
        None,
        description="The browser that signs in; shown in the bot's question.",
        examples=[{"ip": "203.0.113.7", "user_agent": USER_AGENT}],
    )


class SessionAnswer(ResponseModel):
    """A session that waits for its Yes."""

    leave_out_none = frozenset({"match_number", "start_messages"})

    session_id: SessionId = Field(
        description="Names the sign-in when you ask for its status; hard to guess."
    )
    status: Literal["pending"] = Field(
        "pending", description="Always `pending`: nobody has answered yet.", examples=["pending"]
    )
    links: BotLinks = Field(
        description="The link that opens the bot, per channel; none if the question was sent to an address.",
        examples=[{examples.CHANNEL: f"{examples.BOT_URL}?start={SESSION_PAYLOAD}"}],
    )
    qr: QrCodes = Field(
        examples=[
            {examples.CHANNEL: f"{examples.BASE_URL}/qr/{examples.CHANNEL}/{SESSION_PAYLOAD}.svg"}
        ]
    )
    start_messages: StartMessages = None
    match_number: int | None = Field(
        None,
        description="10-99, to show next to the links; absent unless `number_matching` was true.",
        examples=[42],
    )
    expires_in: int = Field(description="Seconds in which the person can confirm.", examples=[600])
    interval: int = Field(
        POLL_INTERVAL_S, description="Seconds to wait between two polls.", examples=[2]
    )


class StatusQuery(Query):
    """How patient the client is."""

    wait: int = Field(
        0,
        ge=0,
        le=MAX_WAIT_S,
        description="Long polling: seconds to hold the response until something changes; 0 answers at once.",
        examples=[25],
    )


class SessionStatusAnswer(ResponseModel):
    """The status of a session."""

    leave_out_none = frozenset({"code"})

    session_id: SessionId
    status: Status = Field(
        description="`pending` until the person answers, then `confirmed` or `denied`; `consumed` once the"
        " code was exchanged. `expired`: the time to answer, or to exchange the code, ran out.",
        examples=["confirmed"],
    )
    state: State
    code: str | None = Field(
        None,
        description="To be exchanged by `POST /v1/auth/verify`; absent unless `status` is `confirmed`.",
        examples=[CODE],
    )
    expires_in: int = Field(
        description="Seconds left to confirm, then to exchange the code; else 0.", examples=[300]
    )


class VerifyBody(RequestModel):
    """The code to exchange."""

    code: str = Field(
        max_length=256,
        description="`code` of the session's status, or of the return to `callback_url`.",
        examples=[CODE],
    )
    must_prove: Proofs = Field(default_factory=list, description=MUST_HAVE_PROVEN)


class VerifiedSignInAnswer(ResponseModel):
    """Who signed in."""

    subscriber_id: SubscriberId
    channel: OnChannel
    first_name: FirstName
    username: Username
    lang: Lang
    tags: TagNames
    external_id: OwnId
    state: State
    auth_time: Time = Field(description="When the person confirmed.")
    session_id: SessionId
    proves: ProvenIdentity

    @classmethod
    def of(cls, session: Session, subscriber: Subscriber) -> "VerifiedSignInAnswer":
        return cls(
            **subscriber.event_fields(),
            state=session.state,
            auth_time=session.auth_time,
            session_id=session.session_id,
            proves=session.proves,
        )


class CreateStaticLinkBody(RequestModel):
    """A static link to be made."""

    slug: Slug = Field(
        description="Part of its addresses: `/login/<slug>`, and the start parameter `auth_<slug>`. Unique in"
        " the whole service; it can't be changed later."
    )
    name: LinkName = Field(description=NAME_OF_LINK)
    callback_url: UrlText = Field(description=CALLBACK, examples=[CALLBACK_URL])
    number_matching: bool = Field(False, description=NUMBER_MATCHING, examples=[False])
    must_prove: Proofs = Field(default_factory=list, description=MUST_PROVE)


class UpdateStaticLinkBody(RequestModel):
    """Changes of a static link; omitted fields stay unchanged."""

    name: Kept[LinkName] = Field(None, description=NAME_OF_LINK, examples=["Sign-in page"])
    callback_url: Kept[UrlText] = Field(None, description=CALLBACK, examples=[CALLBACK_URL])
    number_matching: Kept[bool] = Field(None, description=NUMBER_MATCHING, examples=[True])
    must_prove: Kept[Proofs] = Field(None, description=MUST_PROVE)


class StaticLinkQuery(PageQuery):
    """Paging."""


class StaticLinkAnswer(ResponseModel):
    """A static link with its addresses."""

    slug: str = Field(
        description="Part of its addresses: `/login/<slug>`, and the start parameter `auth_<slug>`.",
        examples=["shop"],
    )
    name: str = Field(description="Helps you tell links apart.", examples=["Sign-in page"])
    callback_url: Url = Field(description=CALLBACK, examples=[CALLBACK_URL])
    number_matching: bool = Field(description=NUMBER_MATCHING, examples=[False])
    must_prove: list[Identity] = Field(description=MUST_PROVE, examples=[["phone"]])
    links: BotLinks = Field(examples=[{examples.CHANNEL: f"{examples.BOT_URL}?start=auth_shop"}])
    qr: QrCodes = Field(
        examples=[{examples.CHANNEL: f"{examples.BASE_URL}/qr/{examples.CHANNEL}/auth_shop.svg"}]
    )
    # Absent also in lists, where `leave_out_none` has no effect.
    start_messages: StartMessages = Field(None, exclude_if=lambda messages: messages is None)
    created_at: CreatedAt


class StaticLinkList(ResponseModel):
    """A page of static links, newest first."""

    data: list[StaticLinkAnswer] = Field(description="The page's links.")
    next_cursor: NextCursor
