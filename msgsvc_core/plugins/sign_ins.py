"""Sign-ins started by other plugins. A sign-in plugin provides them by the hook `register_sign_ins`.

A plugin that lets other software sign people in, e.g. an OpenID provider, opens a sign-in on the hosted page
or asks a known subscriber directly, and learns who answered. Without such a plugin nobody can sign in.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from msgsvc_core.channels import Identity
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import NotFound
from msgsvc_core.kernel.i18n import Language
from msgsvc_core.subscribers.models import Subscriber

#: How a person proved who they are: by a button in the bot, by choosing the number that the page shows, or by
#: the platform's own sign-in page.
SignInMethod = Literal["button", "number", "platform"]

SignInStatus = Literal["pending", "confirmed", "denied", "expired", "consumed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSignIn:
    """A sign-in on the hosted page, for one browser.

    The page and the bot's question name the requester, e.g. `Grafana` and `https://grafana.example/`, of
    which the host is shown. When the person has answered, the browser goes to `return_url` with `state`, and
    with `code`, or with `error=access_denied` if it goes back after Cancel. The code is only given to the
    browser that opened the page.

    (`source`, `source_id`), e.g. `oidc` and the id of an authorization request, comes back in `SignedIn`:
    compare it, so that a code of another sign-in is not taken for this one.
    """

    project_id: str
    source: str
    source_id: str
    requester_name: str
    requester_url: str
    return_url: str
    state: str
    lang: Language | None = None
    #: None offers all messengers.
    channel: str | None = None
    #: One of these has to be proven: only such channels are offered and accepted. Empty is anything.
    must_prove: Sequence[Identity] = ()
    number_matching: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectSignIn:
    """A question to one subscriber, in their messenger, without a page. Only they can answer it.

    `text` is what they approve, e.g. `Payment of 20 EUR`; `details` are further lines, e.g. what the
    requester learns. The answer has to prove one of `must_prove`, if that is not empty. `lifetime_s` is at
    most the settings' `auth.session_lifetime_s`; None is that.
    """

    project_id: str
    source: str
    source_id: str
    subscriber_id: str
    requester_name: str
    requester_url: str
    text: str = ""
    details: Sequence[str] = field(default=())
    lang: Language | None = None
    must_prove: Sequence[Identity] = ()
    number_matching: bool = False
    lifetime_s: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedSignIn:
    """A question that is being sent. `match_number`, 10-99, is to be shown where the person acts, if number
    matching was requested."""

    session_id: str
    match_number: int | None
    expires_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """A person who signed in, when and how, and what that proved; None if it was not recorded, by an earlier
    version."""

    session_id: str
    source: str
    source_id: str
    subscriber: Subscriber
    method: SignInMethod
    proves: Identity | None = None
    confirmed_at_ms: int


class SignInSource(Protocol):
    """The interface of a plugin that provides sign-ins."""

    async def open_page(self, tx: Tx, request: PageSignIn) -> str:
        """The URL of the hosted page of a new sign-in, to which the browser is redirected.

        Raises `ValidationFailed` for a channel that is unknown, can't receive answers or does not prove what
        is asked for, and `Unavailable` while no bot is ready.
        """
        ...

    async def ask(self, tx: Tx, request: DirectSignIn) -> AskedSignIn:
        """Has the question sent, by a job of the same transaction.

        Raises `SubscriberNotFound`, `Conflict` for a person who has left or blocked the bot, or whose channel
        does not prove what is asked for, and `RateLimitProject` for too many questions to the same person.
        """
        ...

    async def status(self, tx: Tx, project_id: str, session_id: str) -> SignInStatus:
        """Where a sign-in stands. Raises `NotFound`."""
        ...

    async def exchange(self, tx: Tx, project_id: str, code: str) -> SignedIn | None:
        """The person whose sign-in on a page ended with that code. None for a code that is not valid, has
        expired, or was exchanged before: of concurrent calls one gets the person."""
        ...

    async def take(self, tx: Tx, project_id: str, session_id: str) -> SignedIn | None:
        """The person who said Yes to a direct question. None unless it is confirmed and was not taken before:
        of concurrent calls one gets the person."""
        ...


class SignIns:
    """Sign-ins through the plugin that provides them."""

    def __init__(
        self,
        *,
        source: Callable[[], SignInSource | None],
        on_denied: Callable[[Tx, str, str, str], Awaitable[None]],
    ) -> None:
        self._find_source = source
        self._on_denied = on_denied

    @property
    def is_available(self) -> bool:
        """Whether a loaded plugin provides sign-ins."""
        return self._find_source() is not None

    async def open_page(self, tx: Tx, request: PageSignIn) -> str:
        """As `SignInSource.open_page`. Raises `NotFound` too if no loaded plugin provides sign-ins."""
        return await self._source.open_page(tx, request)

    async def ask(self, tx: Tx, request: DirectSignIn) -> AskedSignIn:
        """As `SignInSource.ask`. Raises `NotFound` too if no loaded plugin provides sign-ins."""
        return await self._source.ask(tx, request)

    async def status(self, tx: Tx, project_id: str, session_id: str) -> SignInStatus:
        """Where a sign-in stands. Raises `NotFound`."""
        return await self._source.status(tx, project_id, session_id)

    async def exchange(self, tx: Tx, project_id: str, code: str) -> SignedIn | None:
        """As `SignInSource.exchange`."""
        return await self._source.exchange(tx, project_id, code)

    async def take(self, tx: Tx, project_id: str, session_id: str) -> SignedIn | None:
        """As `SignInSource.take`."""
        return await self._source.take(tx, project_id, session_id)

    async def notify_denied(self, tx: Tx, project_id: str, source: str, source_id: str) -> None:
        """For the plugin that provides sign-ins: the person refused one. Calls `on_sign_in_denied`."""
        await self._on_denied(tx, project_id, source, source_id)

    @property
    def _source(self) -> SignInSource:
        source = self._find_source()
        if source is None:
            raise NotFound("nobody can sign in: no loaded plugin provides sign-ins")
        return source
