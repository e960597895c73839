"""Chooses the steps of a route by which a person can be reached now."""

from collections.abc import Awaitable, Callable, Container, Mapping, Sequence

from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.registry import Channels
from msgsvc_core.db import Database, DataLoader, Tx
from msgsvc_core.kernel.values import value_object
from msgsvc_core.routing.hours import next_opening_ms
from msgsvc_core.routing.models import Candidate, Choice, RouteStep, SkippedStep
from msgsvc_core.routing.progress import Obstacle, find_obstacle, hours_obstacle
from msgsvc_core.subscribers.models import Recipient
from msgsvc_core.subscribers.permissions.service import Permissions
from msgsvc_core.subscribers.service import Subscribers

#: Which of the bots, by their channels' keys, are stopped.
FindStopped = Callable[[Tx, Sequence[str]], Awaitable[Mapping[str, bool]]]


@value_object
class RoutedPerson:
    """Whom to reach by a route's steps, from number `first` on: a person by all their subscribers.
    `permission` is the key of one that they must have granted."""

    project_id: str
    steps: Sequence[RouteStep]
    recipients: Sequence[Recipient]
    permission: str | None = None
    first: int = 0


class RouteChooser:
    """`Routes.chooser`: who is reached by a route's steps."""

    def __init__(
        self,
        *,
        db: Database,
        channels: Channels,
        find_stopped: FindStopped,
        subscribers: Subscribers,
        permissions: Permissions,
    ) -> None:
        self._channels = channels
        self._subscribers = subscribers
        self._stopped = DataLoader(db, find_stopped)
        self._granted = DataLoader(db, permissions.find_granted)

    async def choose(
        self,
        project_id: str,
        steps: Sequence[RouteStep],
        *,
        now_ms: int,
        subscriber_id: str | None = None,
        external_id: str | None = None,
        permission: str | None = None,
        for_code: bool = False,
        first: int = 0,
        tx: Tx | None = None,
    ) -> Choice:
        """The steps from number `first` on that can be used now, and why the others can't.

        The person is named by exactly one of the two identifiers; by a `subscriber_id` with an `external_id`
        all their subscribers are meant. `permission` is the key of one that they must have granted.
        `for_code`: one-time codes also reach people who asked for no messages, on channels of addresses.
        Without `tx` the lookups are batched with those of other requests.

        Raises the errors of `Subscribers.get_recipient`. An empty choice is no error.
        """
        everywhere = await self._subscribers.list_recipients(
            project_id, subscriber_id=subscriber_id, external_id=external_id, tx=tx
        )
        person = RoutedPerson(project_id, steps, everywhere, permission=permission, first=first)
        bots, permissions = _needed(person)
        stopped = {bot for bot in bots if await self._stopped.get(bot, tx)}
        granted = {key for key in permissions if await self._granted.get(key, tx)}
        return await self._choose(person, now_ms, stopped, granted, for_code=for_code)

    async def choose_many(
        self, tx: Tx, people: Sequence[RoutedPerson], *, now_ms: int
    ) -> list[Choice]:
        """As `choose`, for many at once, whose subscribers are known."""
        needed = [_needed(each) for each in people]
        stopped = await self._stopped.get_many({bot for bots, _ in needed for bot in bots}, tx)
        granted = await self._granted.get_many({key for _, keys in needed for key in keys}, tx)
        return [await self._choose(each, now_ms, stopped, granted) for each in people]

    async def _choose(
        self,
        person: RoutedPerson,
        now_ms: int,
        stopped: Container[str],
        granted: Container[tuple[str, str, str]],
        *,
        for_code: bool = False,
    ) -> Choice:
        by_channel = {recipient.channel: recipient for recipient in person.recipients}
        found: list[Candidate | SkippedStep] = []
        for number, step in enumerate(person.steps[person.first :], person.first):
            recipient = by_channel.get(step.channel)
            channel = None if recipient is None else await self._channels.find(recipient.bot)
            obstacle = self._obstacle(
                person, recipient, channel, stopped, granted, for_code=for_code
            )
            if obstacle is not None:
                found.append(SkippedStep(number, step.channel, obstacle.reason))
            elif (closed := hours_obstacle(step, now_ms)) is not None:
                assert step.hours is not None, "it is outside them"
                opens_ms = next_opening_ms(step.hours, now_ms)
                found.append(SkippedStep(number, step.channel, closed.reason, opens_ms))
            else:
                assert recipient is not None, "they are no obstacle"
                assert channel is not None, "it is no obstacle"
                found.append(Candidate(number, recipient, channel))
        return Choice(tuple(found))

    def _obstacle(
        self,
        person: RoutedPerson,
        recipient: Recipient | None,
        channel: Channel | None,
        stopped: Container[str],
        granted: Container[tuple[str, str, str]],
        *,
        for_code: bool,
    ) -> Obstacle | None:
        """Why a person can't be written to by their bot."""
        if recipient is None:
            return find_obstacle(status=None)
        project_id, key = person.project_id, person.permission
        status = recipient.status
        if status != "blocked" and for_code:
            takes = self._subscribers.recipient_takes_codes(project_id, recipient)
            status = "active" if takes else status
        is_granted = key is None or (project_id, recipient.subscriber_id, key) in granted
        return find_obstacle(
            status=status,
            has_channel=channel is not None,
            missing_permission=None if is_granted else key,
            is_stopped=recipient.bot in stopped,
        )


def _needed(person: RoutedPerson) -> tuple[set[str], set[tuple[str, str, str]]]:
    """The bots of which must be known whether they are stopped, and the permissions whether granted."""
    channels = {step.channel for step in person.steps[person.first :]}
    written = [
        each for each in person.recipients if each.channel in channels and each.status != "blocked"
    ]
    key = person.permission
    granted = {(person.project_id, each.subscriber_id, key) for each in written} if key else set()
    return {each.bot for each in written}, granted
