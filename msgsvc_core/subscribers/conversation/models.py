"""A user's subscriptions by a bot."""

from collections.abc import Iterable, Sequence

from msgsvc_core.kernel.values import value_object
from msgsvc_core.subscribers.models import Status


@value_object
class Subscription:
    """A project that the user knows through this bot. `number` counts from 1, oldest first, including
    ended ones, so that it never changes."""

    number: int
    project_id: str
    subscriber_id: str
    status: Status
    project: str
    project_is_active: bool

    @property
    def is_active(self) -> bool:
        return self.status == "active"

    @property
    def can_return(self) -> bool:
        return not self.is_active and self.project_is_active


@value_object
class Subscriptions:
    """All of a user's subscriptions by one bot, oldest first."""

    all: Sequence[Subscription]

    @property
    def active(self) -> list[Subscription]:
        return [one for one in self.all if one.is_active]

    @property
    def resumable(self) -> list[Subscription]:
        """Those that the user can resume."""
        return [one for one in self.all if one.can_return]

    def by_id(self, subscriber_id: str) -> Subscription | None:
        return _first(one for one in self.all if one.subscriber_id == subscriber_id)

    def by_number(self, text: str) -> Subscription | None:
        """The subscription with a number that the user sent."""
        return _first(one for one in self.all if str(one.number) == text)

    def by_project(self, project_id: str | None) -> Subscription | None:
        return _first(one for one in self.all if one.project_id == project_id)


def _first(found: Iterable[Subscription]) -> Subscription | None:
    return next(iter(found), None)
