"""Finds a user's subscriptions by a bot, with the projects' names."""

from msgsvc_core.channels.inbound import InboundContext
from msgsvc_core.projects.service import Projects
from msgsvc_core.subscribers.conversation.models import Subscription, Subscriptions
from msgsvc_core.subscribers.service import Subscribers


class KnownSubscriptions:
    """The subscriptions of the user who writes to a bot, across projects."""

    def __init__(self, *, projects: Projects, subscribers: Subscribers) -> None:
        self._projects = projects
        self._subscribers = subscribers

    async def of(self, ctx: InboundContext) -> Subscriptions:
        """All subscriptions by this bot, active or not."""
        found = await self._subscribers.list_by_user(ctx.tx, ctx.channel, ctx.update.user.user_id)
        projects = await self._projects.get_many(ctx.tx, [one.project_id for one in found])
        return Subscriptions(
            [
                Subscription(
                    number=number,
                    project_id=one.project_id,
                    subscriber_id=one.subscriber_id,
                    status=one.status,
                    project=projects[one.project_id].name,
                    project_is_active=projects[one.project_id].status == "active",
                )
                for number, one in enumerate(found, 1)
                # Its project may have been deleted between the two queries.
                if one.project_id in projects
            ]
        )
