"""What a person sees and changes on the preferences page."""

from collections.abc import Collection

from msgsvc_core.channels.registry import Channels
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import NotFound, SubscriberNotFound
from msgsvc_core.kernel.values import value_object
from msgsvc_core.projects.models import Project
from msgsvc_core.projects.service import Projects
from msgsvc_core.subscribers.models import Subscriber, UpdateSubscriberBody
from msgsvc_core.subscribers.permissions.models import Permission
from msgsvc_core.subscribers.permissions.service import Permissions
from msgsvc_core.subscribers.preferences_links import PreferencesLinks
from msgsvc_core.subscribers.service import Subscribers


@value_object
class ShownPreferences:
    """One person's choices at one project. It says nothing of who they are: links are passed on."""

    project: Project
    subscriber: Subscriber
    messenger: str
    offered: list[Permission]


class Preferences:
    """Reads and changes them by the token of a link."""

    def __init__(
        self,
        *,
        links: PreferencesLinks,
        projects: Projects,
        subscribers: Subscribers,
        permissions: Permissions,
        channels: Channels,
        languages: Collection[str],
    ) -> None:
        self._links = links
        self._projects = projects
        self._subscribers = subscribers
        self._permissions = permissions
        self._channels = channels
        self._languages = languages

    async def get(self, tx: Tx, token: str) -> ShownPreferences:
        """Raises `NotFound`, also for an erased person and a disabled project, `LinkExpired`."""
        project_id, subscriber_id = self._links.read(token)
        project = await self._projects.get(tx, project_id)
        if project.status != "active":
            raise NotFound("there is no page at this address")
        try:
            subscriber = await self._subscribers.get(tx, project_id, subscriber_id)
        except SubscriberNotFound:
            raise NotFound("there is no page at this address") from None
        return ShownPreferences(
            project,
            subscriber,
            self._channels.display_name(subscriber.channel, project_id),
            await self._permissions.list_all(tx, project_id),
        )

    async def save(
        self, tx: Tx, token: str, *, shown: Collection[str], granted: Collection[str], lang: str
    ) -> None:
        """Grants and revokes the permissions that were `shown`; others, added since, stay as they are.

        Raises what `get` does. Does nothing for a person who is unsubscribed by now.
        """
        now = await self.get(tx, token)
        if now.subscriber.status != "active":
            return
        project_id, subscriber_id = now.subscriber.project_id, now.subscriber.subscriber_id
        for permission in now.offered:
            if permission.key in shown:
                await self._subscribers.set_permission(
                    tx, project_id, subscriber_id, permission.key, permission.key in granted
                )
        if lang in self._languages and lang != now.subscriber.lang:
            body = UpdateSubscriberBody(lang=lang)
            await self._subscribers.change(tx, project_id, subscriber_id, body)

    async def stop(self, tx: Tx, token: str) -> None:
        """Unsubscribes. Raises what `get` does."""
        project_id, subscriber_id = self._links.read(token)
        await self.get(tx, token)
        await self._subscribers.unsubscribe(tx, project_id, subscriber_id, reason="stop")

    async def start(self, tx: Tx, token: str) -> None:
        """Subscribes again who has stopped. Raises what `get` does."""
        now = await self.get(tx, token)
        if now.subscriber.status == "unsubscribed":
            await self._subscribers.resubscribe(
                tx, now.subscriber.project_id, now.subscriber.subscriber_id
            )
