"""Phone numbers that a messenger's platform has verified, and tells with its updates."""

import structlog

from msgsvc_core.channels import ChannelUser
from msgsvc_core.db import Tx
from msgsvc_core.kernel import phone as phone_numbers
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.subscribers.contacts import VerifiedContacts
from msgsvc_core.subscribers.service import Subscribers

log = structlog.get_logger(__name__)


class PlatformPhones:
    """Records a user's phone number as a verified contact of their subscriptions by a bot."""

    def __init__(self, *, subscribers: Subscribers, contacts: VerifiedContacts) -> None:
        self._subscribers = subscribers
        self._contacts = contacts

    async def record(self, tx: Tx, channel: str, channel_name: str, user: ChannelUser) -> None:
        """Records `user.phone` where it is not known yet. `channel` is the bot's key; its name is the source.

        A number that is none is logged, and ignored.
        """
        try:
            phone = phone_numbers.from_platform(user.phone or "")
        except InvalidValue:
            log.warning("phone_unreadable", channel=channel)
            return
        for one in await self._subscribers.list_by_user(tx, channel, user.user_id):
            known = await self._contacts.find(tx, one.project_id, one.subscriber_id)
            if known.phone != phone:
                await self._contacts.record(
                    tx,
                    one.project_id,
                    one.subscriber_id,
                    kind="phone",
                    value=phone,
                    source=channel_name,
                )
