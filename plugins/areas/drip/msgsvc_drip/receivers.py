"""Who gets a step that names a route: the person's subscriber on the first channel that reaches them now."""

import asyncio
from collections.abc import Sequence

from msgsvc_core.channels import Channel
from msgsvc_core.db import Database
from msgsvc_core.kernel.errors import ApiError, Conflict, NotFound
from msgsvc_core.kernel.values import value_object
from msgsvc_core.messages.models import PreparedRoute
from msgsvc_core.routing import Route, Routes
from msgsvc_core.routing.models import Choice
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_drip import enrollment_store
from msgsvc_drip.models import Enrollment


@value_object
class RoutedStep:
    """A step that is due for a subscriber who is enrolled, by the id of its route."""

    enrollment: Enrollment
    subscriber: Subscriber
    route_id: str
    permission: str | None


@value_object
class Receiver:
    """The subscriber by whom the person is reached first, by which bot, and the rest of the route."""

    subscriber: Subscriber
    channel: Channel
    route: PreparedRoute


class Receivers:
    """Finds the receivers of a batch of steps."""

    def __init__(self, *, db: Database, routes: Routes, subscribers: Subscribers) -> None:
        self._db = db
        self._routes = routes
        self._subscribers = subscribers

    async def find(self, steps: Sequence[RoutedStep], now_ms: int) -> list[Receiver | ApiError]:
        """The receiver of each step, or why there is none.

        A person who is enrolled by two of their subscribers gets such steps by the earlier enrollment alone:
        both would lead to the same channel.
        """
        if not steps:
            return []
        keys = {(step.subscriber.project_id, step.route_id) for step in steps}
        async with self._db.read() as tx:
            routes = await self._routes.find_many(tx, sorted(keys))
        # At once: their lookups are batched.
        choices = await asyncio.gather(*(self._choose(routes, step, now_ms) for step in steps))
        earlier = await self._find_earlier(steps)
        chosen = {
            (step.subscriber.project_id, choice.candidates[0].recipient.subscriber_id)
            for step, choice in zip(steps, choices, strict=True)
            if isinstance(choice, Choice)
        }
        async with self._db.read() as tx:
            people = await self._subscribers.get_many(tx, sorted(chosen))
        found: list[Receiver | ApiError] = []
        for step, choice in zip(steps, choices, strict=True):
            if (other := earlier.get(step.enrollment.enrollment_id)) is not None:
                found.append(Conflict("the person gets it by {enrollment_id}", enrollment_id=other))
                continue
            if isinstance(choice, ApiError):
                found.append(choice)
                continue
            first = choice.candidates[0]
            person = people.get((step.subscriber.project_id, first.recipient.subscriber_id))
            if person is None:
                found.append(
                    Conflict("{name} is not subscribed", name=first.recipient.subscriber_id)
                )
                continue
            route = routes[step.subscriber.project_id, step.route_id]
            before = tuple(skip for skip in choice.skipped if skip.step < first.step)
            prepared = PreparedRoute(route.route_id, route.steps, first.step, before)
            found.append(Receiver(person, first.channel, prepared))
        return found

    async def _find_earlier(self, steps: Sequence[RoutedStep]) -> dict[str, str]:
        """As `enrollment_store.find_earlier`, of the steps' enrollments."""
        linked = [step for step in steps if step.subscriber.external_id is not None]
        if not linked:
            return {}
        async with self._db.read() as tx:
            people = await self._subscribers.list_recipients_of(
                tx,
                [
                    (
                        step.subscriber.project_id,
                        step.subscriber.subscriber_id,
                        step.subscriber.external_id,
                    )
                    for step in linked
                ],
            )
            others = [
                (
                    step.enrollment,
                    [
                        each.subscriber_id
                        for each in person
                        if each.subscriber_id != step.subscriber.subscriber_id
                    ],
                )
                for step, person in zip(linked, people, strict=True)
            ]
            return await enrollment_store.find_earlier(tx, others)

    async def _choose(
        self, routes: dict[tuple[str, str], Route], step: RoutedStep, now_ms: int
    ) -> Choice | ApiError:
        """The steps of the route that can be used now, one at least."""
        project_id = step.subscriber.project_id
        route = routes.get((project_id, step.route_id))
        if route is None:
            return NotFound("there is no route {route_id!r}", route_id=step.route_id)
        try:
            choice = await self._routes.chooser.choose(
                project_id,
                route.steps,
                now_ms=now_ms,
                subscriber_id=step.subscriber.subscriber_id,
                permission=step.permission,
            )
        except ApiError as error:
            if error.status >= 500:
                raise
            return error
        if not choice.candidates:
            why = ", ".join(f"{skip.channel}: {skip.reason}" for skip in choice.skipped)
            return Conflict("no step of the route reaches this person now ({why})", why=why)
        return choice
