"""Models of accounts, their sessions and credentials."""

from typing import Any, Literal

from msgsvc_core.dashboard import Viewer
from msgsvc_core.kernel.values import value_object

AccountStatus = Literal["active", "disabled"]

#: Characters of the name of whoever signs in.
NAME_LENGTH = 100


@value_object
class Account(Viewer):
    """An account. It owns projects, and is a member of its own and of others'.

    `lang` and `timezone` are None until they are chosen.
    """

    status: AccountStatus
    lang: str | None
    timezone: str | None
    created_at_ms: int
    signed_in_at_ms: int | None = None
    has_password: bool = False
    has_totp: bool = False


@value_object
class AccountSession:
    """A browser session of an account."""

    session_id: str
    account: Account
    created_at_ms: int
    seen_at_ms: int
    expires_at_ms: int
    ip: str
    user_agent: str


@value_object
class Browser:
    """A browser that signs in. `device` is the device cookie of an earlier sign-in, if any."""

    ip: str
    user_agent: str
    device: str = ""


@value_object
class Secrets:
    """An account's credentials. `totp_secret` is encrypted, and in use once it is confirmed."""

    password_hash: str | None
    password_set_at_ms: int | None
    totp_secret: str | None
    totp_confirmed_at_ms: int | None


#: How somebody came in, as the audit log says it.
Way = Literal["password", "link", "messenger"]


@value_object
class SignedIn:
    """The secret of a new session, and the device cookie."""

    session: AccountSession
    token: str
    device: str


@value_object
class CodeNeeded:
    """The password is right; a code of the second factor is needed, together with this ticket."""

    ticket: str


@value_object
class Refused:
    """The email, the password, the code or the link is wrong; the response does not say which."""


@value_object
class TooMany:
    """No more attempts for so many seconds."""

    retry_after_s: int


Outcome = SignedIn | CodeNeeded | Refused | TooMany


#: Stands for an account in the filter by author: changes by API keys and on the command line.
NO_ACCOUNT = "none"


@value_object
class AuditFilters:
    """Which entries of a project's audit log are asked for."""

    #: `NO_ACCOUNT` for those of no account.
    account_id: str | None = None
    #: The first parts of the actions, e.g. `webhooks`; none for all.
    areas: tuple[str, ...] = ()
    since_ms: int | None = None


@value_object
class AuditEntry:
    """A change and its author. `account_id` is None if nobody was signed in."""

    entry_id: str
    project_id: str | None
    account_id: str | None
    account_name: str | None
    at_ms: int
    action: str
    target: str | None
    detail: dict[str, Any]
    ip: str


LinkPurpose = Literal["sign_in", "invitation", "password"]


@value_object
class OneTimeLink:
    """A one-time link. Whoever accepts an invitation becomes the member."""

    purpose: LinkPurpose
    account_id: str | None
    project_id: str | None
    member_id: str | None
    expires_at_ms: int


RequestPurpose = Literal["sign_in", "link"]
RequestStatus = Literal["pending", "confirmed", "denied", "used"]


@value_object
class MessengerRequest:
    """A browser that waits for its `number` to be picked in a messenger: to sign in, or (`link`) to link
    the messenger to the account. `account_id` is the account of the browser, or of the messenger that
    picked."""

    digest: str
    purpose: RequestPurpose
    account_id: str | None
    status: RequestStatus
    ip: str
    user_agent: str
    created_at_ms: int
    expires_at_ms: int
    #: Two digits.
    number: int


@value_object
class BegunRequest:
    """Values for the waiting browser: `token` is in the link that starts a bot, `secret` is the browser's
    own, and `number` must be shown only to its user."""

    token: str
    secret: str
    number: int


@value_object
class MessengerWay:
    """How to open a bot: by its link or, if that can't carry a payload, by sending `start_message`."""

    channel: str
    title: str
    link: str
    start_message: str | None


@value_object
class LinkedMessenger:
    """A messenger linked to an account for sign-in. `bot` is the key of the channel."""

    bot: str
    user_id: str
    account_id: str
    name: str
    linked_at_ms: int
