"""Broadcasts: mailings started by the API."""

from msgsvc_broadcasts.links import Links
from msgsvc_broadcasts.models import SOURCE, BroadcastAccepted, ChannelFigures, CreateBroadcastBody
from msgsvc_broadcasts.recent_figures import Counted, RecentFigures
from msgsvc_core.db import Tx
from msgsvc_core.events import Events
from msgsvc_core.kernel.errors import NotFound
from msgsvc_core.mailings import Mailing, NewMailing
from msgsvc_core.mailings.service import Mailings
from msgsvc_core.projects.service import Projects


class Broadcasts:
    """`service.get(Broadcasts)`."""

    def __init__(
        self, *, mailings: Mailings, events: Events, projects: Projects, links: Links
    ) -> None:
        self._mailings = mailings
        self._events = events
        self._projects = projects
        self._links = links
        self._recent = RecentFigures[ChannelFigures]()

    async def start(
        self, tx: Tx, project_id: str, body: CreateBroadcastBody, job_id: str | None = None
    ) -> BroadcastAccepted:
        """Takes a broadcast, or with `dry_run` only counts. `job_id` is its id, else a new one.

        Raises what `Mailings.start` does.
        """
        project = await self._projects.get(tx, project_id)
        new = NewMailing(
            SOURCE,
            body.to_message(),
            body.audience,
            body.send_at,
            body.messages_per_minute,
            job_id,
            name=body.name,
            experiment=body.to_experiment(),
            tracks_links=project.link_tracking,
            route_id=body.route_id,
        )
        if body.dry_run:
            counted = await self._mailings.count(tx, project_id, new)
            cost = await self._mailings.cost(tx, project_id, counted.reachable)
            return BroadcastAccepted(total=counted.total, credits=cost)
        mailing = await self._mailings.start(tx, project_id, new)
        await self._links.add(tx, mailing)
        return _accepted(mailing)

    async def by_channel(self, tx: Tx, mailing: Mailing) -> list[ChannelFigures]:
        """Who was reached, or not, by each channel of the route; none without one."""
        return [
            ChannelFigures.of(each) for each in await self._mailings.channel_outcomes(tx, mailing)
        ]

    async def recent_by_channel(
        self, tx: Tx, mailing: Mailing, now_ms: int
    ) -> Counted[ChannelFigures]:
        """The same for pages; figures of many recipients are kept for a while."""
        return await self._recent.get(mailing, now_ms, lambda: self.by_channel(tx, mailing))

    async def is_taken(self, tx: Tx, project_id: str, job_id: str) -> bool:
        """Whether a broadcast with that id exists; a concurrent request with the same id waits for `tx`."""
        await tx.lock(f"broadcast {job_id} of {project_id}")
        try:
            await self.get(tx, project_id, job_id)
        except NotFound:
            return False
        return True

    async def resend_unknown(self, tx: Tx, project_id: str, job_id: str) -> BroadcastAccepted:
        """Takes a broadcast to those of another whose fate nobody knows.

        Raises what `Mailings.resend_unknown` does.
        """
        await self.get(tx, project_id, job_id)
        mailing = await self._mailings.resend_unknown(tx, project_id, job_id)
        await self._links.add(tx, mailing)
        return _accepted(mailing)

    async def get(self, tx: Tx, project_id: str, job_id: str) -> Mailing:
        """A broadcast, or a scheduled message to an audience, which can be watched and stopped here too.

        Raises `NotFound`, for another project's as well.
        """
        return await self._mailings.find(tx, project_id, job_id)

    async def emit_finished(self, tx: Tx, mailing: Mailing) -> None:
        """Emits the event that a broadcast has ended."""
        if mailing.source == SOURCE:
            await self._events.emit(
                tx, mailing.project_id, f"broadcast.{mailing.status}", mailing.event_fields()
            )


def _accepted(mailing: Mailing) -> BroadcastAccepted:
    return BroadcastAccepted(job_id=mailing.job_id, status=mailing.status, total=mailing.total)
