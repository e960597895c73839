"""Sign-in on the platform's own page: an optional capability of a channel.

A platform that is an OpenID provider, or the like, tells who the person in a browser is without a chat, and
often their verified phone number too. Sign-in plugins use it through `Channel.platform_sign_in`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from msgsvc_core.channels.updates import ChannelUser


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformAttempt:
    """One visit of a browser to the platform's page. All but the address are secrets made for it alone.

    `redirect_uri` is where the platform sends the browser back, exactly as it is registered there. `state`
    binds the answer to the browser, `nonce` the platform's statement to this visit, and `code_verifier` the
    code to who asked for it (RFC 7636): 43-128 characters of `A-Z a-z 0-9 - . _ ~`.
    """

    redirect_uri: str
    state: str = field(repr=False)
    nonce: str = field(repr=False)
    code_verifier: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformPerson:
    """Who signed in, as the platform states it.

    `chat_id` is that of the chat with the bot, which need not exist yet. `phone` and `email` are None unless
    the platform has verified them and the person shares them.
    """

    user: ChannelUser
    chat_id: str
    phone: str | None = field(default=None, repr=False)
    email: str | None = field(default=None, repr=False)


class PlatformSignInRefused(Exception):
    """The platform did not take the code, or its statement is not valid. The reason is for the log; it
    contains neither code nor statement. The same code will never be taken: the person has to start again."""


class PlatformSignIn(ABC):
    """Signs people in on the platform's page."""

    @abstractmethod
    def authorization_url(self, attempt: PlatformAttempt) -> str:
        """The address of the platform's page for this attempt. Makes no calls."""

    @abstractmethod
    async def exchange(self, code: str, attempt: PlatformAttempt) -> PlatformPerson:
        """Exchanges the code that the browser brought back, and verifies the platform's statement.

        Call it in a job, never in a request. Raises `PlatformSignInRefused`, and `DeliveryError` if the
        platform can't be asked; if that is not `in_doubt`, the same code can be tried again.
        """
