"""Tracked links of broadcasts: where they lead, and who opened them first when."""

from msgsvc_broadcasts import link_store
from msgsvc_broadcasts.models import Link
from msgsvc_core.db import Tx
from msgsvc_core.events import Events
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import NotFound
from msgsvc_core.mailings import Mailing
from msgsvc_core.mailings.audience import MOST_LOOKED_AT
from msgsvc_core.mailings.links import LinkToken, LinkTracking
from msgsvc_core.mailings.service import Mailings
from msgsvc_core.subscribers.service import Subscribers

CLICKED = "link.clicked"


class Links:
    """Links are kept as long as their broadcast, so that old messages lead somewhere. Clicks are counted, and
    kept, as long as recipients."""

    def __init__(
        self,
        *,
        clock: Clock,
        mailings: Mailings,
        subscribers: Subscribers,
        events: Events,
        tracking: LinkTracking,
    ) -> None:
        self._clock = clock
        self._mailings = mailings
        self._subscribers = subscribers
        self._events = events
        self._tracking = tracking

    async def add(self, tx: Tx, mailing: Mailing) -> None:
        """Stores the links of a broadcast that was accepted; none if they are not tracked."""
        if urls := self._tracking.links_of(mailing):
            await link_store.insert(tx, mailing.project_id, mailing.job_id, urls)

    async def get(self, tx: Tx, token: str) -> tuple[Link, LinkToken]:
        """The link that an address leads to, and who got it. Raises `NotFound`."""
        read = self._tracking.read(token)
        link = await link_store.find(tx, read.link_id)
        if link is None:
            raise NotFound("there is no page at this address")
        return link, read

    async def is_clicked(self, tx: Tx, link: Link, subscriber_id: str) -> bool:
        return await link_store.is_clicked(tx, link, subscriber_id)

    async def click(self, tx: Tx, link: Link, subscriber_id: str) -> None:
        """Counts the first click of a person on a link, and emits `link.clicked`; no effect for further ones,
        for erased people, and once recipients are no longer stored."""
        mailing = await self._mailings.find(tx, link.project_id, link.job_id)
        now_ms = self._clock.now_ms()
        until_ms = self._mailings.recipients_until_ms(mailing)
        if until_ms is not None and until_ms <= now_ms:
            return
        key = link.project_id, subscriber_id
        if key not in await self._subscribers.lock_existing(tx, [key]):
            return
        if not await link_store.add_click(tx, link, subscriber_id, now_ms):
            return
        recipient = await self._mailings.find_recipient(tx, mailing, subscriber_id)
        await self._events.emit(
            tx,
            link.project_id,
            CLICKED,
            {
                "job_id": link.job_id,
                "message_id": None if recipient is None else recipient.message_id,
                "url": link.url,
            },
            subscriber=await self._subscribers.get(tx, *key),
        )

    async def count(
        self, tx: Tx, project_id: str, job_id: str, limit: int = MOST_LOOKED_AT
    ) -> dict[str, int]:
        """How many people opened each tracked link of a broadcast, by its URL, of at most `limit` clicks."""
        return await link_store.count_clicks(tx, project_id, job_id, limit)
