"""Who a phone number or an email address is, on the channels of a gateway."""

from collections.abc import Sequence

from msgsvc_core.channels.registry import Channels
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import InvalidValue, ValidationFailed
from msgsvc_core.subscribers.contacts.models import ContactKind
from msgsvc_core.subscribers.contacts.service import VerifiedContacts
from msgsvc_core.subscribers.models import Subscriber, SubscriberFilters
from msgsvc_core.subscribers.service import Subscribers

#: Subscribers with one `external_id`: one on each channel. More channels than this, nobody has.
MOST_CHANNELS = 100


def kind_of(to: str) -> ContactKind:
    return "email" if "@" in to else "phone"


def hint(to: str) -> str:
    """A part of a normalized phone number or address, by which its owner knows it: `+12•••••0123`."""
    if kind_of(to) == "email":
        name, _, host = to.rpartition("@")
        return f"{name[:1]}•••@{host}"
    return f"{to[:3]}{'•' * max(1, len(to) - 7)}{to[-4:]}" if len(to) > 9 else f"{to[:3]}•••"


class Recipients:
    """Finds the people who can be written to."""

    def __init__(
        self, *, subscribers: Subscribers, contacts: VerifiedContacts, channels: Channels
    ) -> None:
        self._subscribers = subscribers
        self._contacts = contacts
        self._channels = channels

    def normalized(self, to: str) -> str:
        """A phone number as `+` and digits, an email address in lower case. Raises `ValidationFailed`."""
        try:
            return self._contacts.normalized(kind_of(to), to)
        except InvalidValue as error:
            raise ValidationFailed.because(error, field="to") from None

    async def find(
        self, tx: Tx, project_id: str, channels: Sequence[str], to: str, lang: str | None
    ) -> list[Subscriber]:
        """Those whose verified contact or `external_id` is `to`, one for each of `channels` in
        their order, as far as codes reach them.

        Of several on a channel it is the one verified last: a number may have had another owner before, who
        must not get the code, even if the present one can't be reached. On a channel of addresses, an address
        that nobody knew is added as one that gets codes alone.
        """
        holders = await self._contacts.find_holders(tx, project_id, kind_of(to), to)
        known = await self._subscribers.get_many(tx, [(project_id, one) for one in holders])
        # Those verified last come first.
        people = [known[key] for one in holders if (key := (project_id, one)) in known]
        people += await self._subscribers.list_after(
            tx, project_id, SubscriberFilters(external_id=to), None, MOST_CHANNELS
        )
        found: list[Subscriber] = []
        for name in channels:
            on_channel = [one for one in people if one.channel == name]
            by_address = await self._by_address(tx, project_id, name, to, lang)
            one = by_address or next(iter(on_channel), None)
            if one is not None and self._subscribers.takes_codes(one):
                found.append(one)
        return found

    async def _by_address(
        self, tx: Tx, project_id: str, name: str, to: str, lang: str | None
    ) -> Subscriber | None:
        channel = self._channels.resolve(project_id, name)
        if channel is None or not channel.capabilities.addresses:
            return None
        if channel.capabilities.identity != {"email": "mailbox", "phone": "phone"}[kind_of(to)]:
            return None
        try:
            subscriber, _ = await self._subscribers.register(
                tx, project_id, name, to, source="otp", lang=lang
            )
        except ValidationFailed:
            # No address of this channel, which may be stricter than contacts are.
            return None
        return subscriber
