"""Routes of projects: validation and storage."""

from collections.abc import Sequence
from dataclasses import replace

from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.registry import Channels
from msgsvc_core.config.limits import LimitSettings
from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Conflict, NotFound, ValidationFailed
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.routing import store
from msgsvc_core.routing.choosing import RouteChooser
from msgsvc_core.routing.models import (
    CreateRouteBody,
    Route,
    RouteStep,
    Until,
    UpdateRouteBody,
)


class Routes:
    """The routes of projects. A message in progress has a copy of its steps: routes can be changed and
    deleted at any time. `chooser` finds the steps that reach a person."""

    def __init__(
        self, *, clock: Clock, channels: Channels, limits: LimitSettings, chooser: RouteChooser
    ) -> None:
        self.chooser = chooser
        self._clock = clock
        self._channels = channels
        self._limits = limits

    @property
    def most_steps(self) -> int:
        """Maximum steps of a route."""
        return self._limits.route_steps

    async def create(self, tx: Tx, project_id: str, body: CreateRouteBody) -> Route:
        """Raises `ValidationFailed`, and `Conflict` for a name in use and at the limit."""
        self._check(project_id, body.steps)
        await tx.lock(f"routes of {project_id}")
        now_ms = self._clock.now_ms()
        route = Route(
            project_id=project_id,
            route_id=new_id("rte"),
            name=body.name,
            steps=tuple(body.steps),
            version=1,
            created_at_ms=now_ms,
            updated_at_ms=now_ms,
        )
        known, limit = await store.count(tx, project_id), self._limits.routes
        if not await store.insert(tx, route):
            raise _name_in_use(body.name)
        if known >= limit:
            raise Conflict("a project has at most {limit} routes", limit=limit)
        return route

    async def get(self, tx: Tx, project_id: str, route_id: str) -> Route:
        """Raises `NotFound`, also for another project's route."""
        route = await store.find(tx, project_id, route_id)
        if route is None:
            raise _not_found(route_id)
        return route

    async def find_many(
        self, tx: Tx, keys: Sequence[tuple[str, str]]
    ) -> dict[tuple[str, str], Route]:
        """Existing routes by project and id: requests that arrive together name few."""
        found = {key: await store.find(tx, *key) for key in keys}
        return {key: route for key, route in found.items() if route is not None}

    async def page(self, tx: Tx, project_id: str, after: str | None, limit: int) -> list[Route]:
        """Up to `limit` routes, newest first, from before `after`."""
        return await store.list_page(tx, project_id, after, limit)

    async def list_all(self, tx: Tx, project_id: str) -> list[Route]:
        """All routes of a project, by name."""
        found = await store.list_page(tx, project_id, None, self._limits.routes)
        return sorted(found, key=lambda route: route.name.casefold())

    async def update(
        self,
        tx: Tx,
        project_id: str,
        route_id: str,
        body: UpdateRouteBody,
        *,
        version: int | None = None,
    ) -> Route:
        """The route after the change. What is being sent keeps the steps it began with.

        Raises `NotFound` and `ValidationFailed`; `Conflict` for a name in use, and if `version` is outdated.
        """
        await tx.lock(f"routes of {project_id}")
        route = await self.get(tx, project_id, route_id)
        if version not in {None, route.version}:
            raise _changed_meanwhile()
        if body.steps is not None:
            self._check(project_id, body.steps)
        changed = replace(
            route,
            name=route.name if body.name is None else body.name,
            steps=route.steps if body.steps is None else tuple(body.steps),
            version=route.version + 1,
            updated_at_ms=self._clock.now_ms(),
        )
        if changed.name != route.name and await store.find_by_name(tx, project_id, changed.name):
            raise _name_in_use(changed.name)
        if not await store.update(tx, changed):
            raise _changed_meanwhile()
        return changed

    async def delete(self, tx: Tx, project_id: str, route_id: str) -> None:
        """Raises `NotFound`. What is being sent by the route goes on."""
        if not await store.delete(tx, project_id, route_id):
            raise _not_found(route_id)

    def _check(self, project_id: str, steps: Sequence[RouteStep]) -> None:
        """Raises `ValidationFailed` for steps that the project's channels or the settings don't allow."""
        limit = self._limits.route_steps
        if len(steps) > limit:
            raise ValidationFailed("must be at most {limit}", field="steps", limit=limit)
        seen: set[str] = set()
        for number, step in enumerate(steps):
            field = f"steps[{number}]"
            channel = self._channels.resolve(project_id, step.channel)
            if channel is None:
                known = [each.name for each in self._channels.list_for_project(project_id)]
                raise ValidationFailed(
                    "must be one of {choices}", field=f"{field}.channel", choices=", ".join(known)
                )
            if step.channel in seen:
                raise ValidationFailed(
                    "{channel} is in an earlier step already",
                    field=f"{field}.channel",
                    channel=step.channel,
                )
            seen.add(step.channel)
            if not can_tell(channel, step.until):
                raise _untold(step, f"{field}.until")
            longest = self._limits.route_wait_s
            if step.within_seconds is not None and step.within_seconds > longest:
                raise ValidationFailed(
                    "must be at most {limit}", field=f"{field}.within_seconds", limit=longest
                )


def can_tell(channel: Channel, until: Until) -> bool:
    """Whether it becomes known on a channel that a message was delivered, read or answered."""
    if until == "sent":
        return True
    if until == "answered":
        return channel.capabilities.answers
    return until in channel.capabilities.reports


def _untold(step: RouteStep, field: str) -> ValidationFailed:
    """Why a step can't wait for what it says."""
    match step.until:
        case "answered":
            return ValidationFailed(
                "people can't answer a bot on {channel}", field=field, channel=step.channel
            )
        case "read":
            return ValidationFailed(
                "{channel} does not report that a message was read",
                field=field,
                channel=step.channel,
            )
        case _:
            return ValidationFailed(
                "{channel} does not report that a message was delivered",
                field=field,
                channel=step.channel,
            )


def _not_found(route_id: str) -> NotFound:
    return NotFound("there is no route {route_id!r}", route_id=route_id)


def _name_in_use(name: str) -> Conflict:
    return Conflict("you have a route {name!r} already", field="name", name=name)


def _changed_meanwhile() -> Conflict:
    return Conflict("the route was changed meanwhile: review it and try again")
