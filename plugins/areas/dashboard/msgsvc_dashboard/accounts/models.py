"""Accounts, their sessions and what signs them in, as values."""

from typing import Any, Literal

from msgsvc_core.dashboard import Viewer
from msgsvc_core.kernel.values import value_object

AccountStatus = Literal["active", "disabled"]

#: Characters of the name of whoever signs in.
NAME_LENGTH = 100


@value_object
class Account(Viewer):
    """Somebody who signs in. They own projects, and are members of their own and of others'.

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
    """A browser in which somebody is signed in."""

    session_id: str
    account: Account
    created_at_ms: int
    seen_at_ms: int
    expires_at_ms: int
    ip: str
    user_agent: str


@value_object
class Browser:
    """Who asks to be signed in. `device` is what an earlier sign-in left there, if it did."""

    ip: str
    user_agent: str
    device: str = ""


@value_object
class Secrets:
    """What an account is known by. `totp_secret` is encrypted, and counts once it is confirmed."""

    password_hash: str | None
    password_set_at_ms: int | None
    totp_secret: str | None
    totp_confirmed_at_ms: int | None


#: How somebody came in, as the audit log says it.
Way = Literal["password", "link", "messenger"]


@value_object
class SignedIn:
    """The secret of a new session, and what the browser keeps so that it is known again."""

    session: AccountSession
    token: str
    device: str


@value_object
class CodeNeeded:
    """So far so good; now a code of the second factor, together with this ticket."""

    ticket: str


@value_object
class Refused:
    """The email, the password, the code or the link is wrong; nobody is told which."""


@value_object
class TooMany:
    """No more tries for that long, in seconds."""

    retry_after_s: int


Outcome = SignedIn | CodeNeeded | Refused | TooMany


@value_object
class AuditEntry:
    """Who changed what. `account_id` is None where it was nobody who was signed in."""

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
    """A link that works once. An invitation makes whoever accepts it that member."""

    purpose: LinkPurpose
    account_id: str | None
    project_id: str | None
    member_id: str | None
    expires_at_ms: int


RequestPurpose = Literal["sign_in", "link"]
RequestStatus = Literal["pending", "confirmed", "denied", "used"]


@value_object
class MessengerRequest:
    """A browser that waits for its `number` to be picked in a messenger: to be signed in, or (`link`) to
    have the messenger of whoever picks it be the account's. `account_id` is whose browser it is, or who
    picked it."""

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
    """What a browser gets that waits: `token` is in the link that starts a bot, `secret` its own, and
    `number` is to be shown to whoever sits before it, and to nobody else."""

    token: str
    secret: str
    number: int


@value_object
class MessengerWay:
    """How somebody comes to a bot: by its link, and where that can't carry a payload, by writing
    `start_message`."""

    channel: str
    title: str
    link: str
    start_message: str | None


@value_object
class LinkedMessenger:
    """By which messenger an account signs in. `bot` is the key of the channel."""

    bot: str
    user_id: str
    account_id: str
    name: str
    linked_at_ms: int
