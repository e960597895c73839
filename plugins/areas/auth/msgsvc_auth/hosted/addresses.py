"""Questions that the hosted page has sent to an email address or a phone number."""

from dataclasses import dataclass

from msgsvc_auth.addressed import AddressedSignIns
from msgsvc_auth.clients import Client
from msgsvc_auth.guarantees import Guarantees
from msgsvc_auth.hosted.models import BrowserSignIn
from msgsvc_auth.messengers import messenger_name
from msgsvc_auth.models import NewSession, Session
from msgsvc_auth.service import SignIn
from msgsvc_auth.session_limits import AskingLimits
from msgsvc_auth.settings import AuthSettings
from msgsvc_core.channels import Identity
from msgsvc_core.channels.registry import Channels
from msgsvc_core.db import Database
from msgsvc_core.kernel.errors import NotFound

#: Characters of an address that is read; email addresses have at most 254.
MAX_ADDRESS_LENGTH = 320


@dataclass(frozen=True, slots=True)
class AddressOffer:
    """A channel on which the person can be asked at their address."""

    channel: str
    name: str
    #: Which kind of address it is: of a `mailbox`, a `phone`, or another.
    identity: Identity


class AddressQuestions:
    """Asks at the address that somebody types. What happens is the same for every address, so that nobody
    learns which ones are known."""

    def __init__(
        self,
        *,
        db: Database,
        channels: Channels,
        settings: AuthSettings,
        sign_in: SignIn,
        addressed: AddressedSignIns,
        limits: AskingLimits,
    ) -> None:
        self._db = db
        self._channels = channels
        self._guarantees = Guarantees(channels)
        self._settings = settings
        self._sign_in = sign_in
        self._addressed = addressed
        self._limits = limits

    def offers(self, session: Session) -> list[AddressOffer]:
        """The channels with addresses that this sign-in may use."""
        found = self._guarantees.of_addresses(
            session.project_id, session.channel, session.must_prove
        )
        return [
            AddressOffer(
                each.name,
                messenger_name(self._settings, self._channels, each.name, session.project_id),
                each.capabilities.identity,
            )
            for each in found
        ]

    def get(self, session: Session, channel: str) -> AddressOffer:
        """Raises `NotFound` for a channel that is not offered."""
        for offer in self.offers(session):
            if offer.channel == channel:
                return offer
        raise NotFound("nobody can sign in by an address on {name!r}", name=channel)

    async def ask(
        self, sign_in: BrowserSignIn, offer: AddressOffer, typed: str, client: Client
    ) -> None:
        """Has the question sent, with numbers to choose from: whoever typed the address may be anybody.

        Nothing happens for a sign-in that does not wait any more. Raises `ValidationFailed` for what is no
        address, and `RateLimitProject`.
        """
        async with self._db.transaction() as tx:
            session = await self._sign_in.require_number(tx, sign_in.session)
            if session is None:
                return
            await self._limits.count(tx, session.project_id, client)
            new = NewSession(session, sign_in.ticket.token)
            await self._addressed.ask(tx, new, offer.channel, typed)
