"""Routes in memory."""

from collections.abc import Sequence
from dataclasses import replace

from msgsvc_core.channels.registry import Channels
from msgsvc_core.config.settings import LimitSettings
from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Conflict, NotFound
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.routing.choosing import RouteChooser
from msgsvc_core.routing.models import CreateRouteBody, Route, UpdateRouteBody
from msgsvc_core.routing.service import Routes
from msgsvc_core.subscribers.permissions.service import Permissions
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_devkit.clock import FakeClock
from msgsvc_devkit.fakes.channels import FakeChannels
from msgsvc_devkit.fakes.database import FakeDatabase
from msgsvc_devkit.fakes.subscribers import FakePermissions, FakeSubscribers


class FakeRoutes(Routes):
    """`by_id` contains the routes, by project and id."""

    chooser: "FakeRouteChooser"

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        channels: Channels | None = None,
        chooser: "FakeRouteChooser | None" = None,
    ) -> None:
        self.by_id: dict[tuple[str, str], Route] = {}
        clock = clock or FakeClock()
        channels = channels or FakeChannels(clock=clock)
        super().__init__(
            clock=clock,
            channels=channels,
            limits=LimitSettings(),
            chooser=chooser or FakeRouteChooser(clock=clock, channels=channels),
        )

    async def create(self, tx: Tx, project_id: str, body: CreateRouteBody) -> Route:
        self._check(project_id, body.steps)
        self._check_name(project_id, body.name)
        limit, now_ms = self._limits.routes, self._clock.now_ms()
        if len(self._of(project_id)) >= limit:
            raise Conflict("a project has at most {limit} routes", limit=limit)
        route = Route(
            project_id=project_id,
            route_id=new_id("rte"),
            name=body.name,
            steps=tuple(body.steps),
            version=1,
            created_at_ms=now_ms,
            updated_at_ms=now_ms,
        )
        self.by_id[project_id, route.route_id] = route
        return route

    async def get(self, tx: Tx, project_id: str, route_id: str) -> Route:
        if (project_id, route_id) not in self.by_id:
            raise NotFound("there is no route {route_id!r}", route_id=route_id)
        return self.by_id[project_id, route_id]

    async def find_many(
        self, tx: Tx, keys: Sequence[tuple[str, str]]
    ) -> dict[tuple[str, str], Route]:
        return {key: self.by_id[key] for key in keys if key in self.by_id}

    async def page(self, tx: Tx, project_id: str, after: str | None, limit: int) -> list[Route]:
        newest = sorted(self._of(project_id), key=lambda each: each.route_id, reverse=True)
        return [each for each in newest if after is None or each.route_id < after][:limit]

    async def list_all(self, tx: Tx, project_id: str) -> list[Route]:
        return sorted(self._of(project_id), key=lambda each: each.name.casefold())

    async def update(
        self,
        tx: Tx,
        project_id: str,
        route_id: str,
        body: UpdateRouteBody,
        *,
        version: int | None = None,
    ) -> Route:
        route = await self.get(tx, project_id, route_id)
        if version not in {None, route.version}:
            raise Conflict("the route was changed meanwhile: review it and try again")
        if body.steps is not None:
            self._check(project_id, body.steps)
        if body.name not in {None, route.name}:
            self._check_name(project_id, body.name or "")
        changed = replace(
            route,
            name=route.name if body.name is None else body.name,
            steps=route.steps if body.steps is None else tuple(body.steps),
            version=route.version + 1,
            updated_at_ms=self._clock.now_ms(),
        )
        self.by_id[project_id, route_id] = changed
        return changed

    async def delete(self, tx: Tx, project_id: str, route_id: str) -> None:
        await self.get(tx, project_id, route_id)
        del self.by_id[project_id, route_id]

    def _check_name(self, project_id: str, name: str) -> None:
        if any(each.name == name for each in self._of(project_id)):
            raise Conflict("you have a route {name!r} already", field="name", name=name)

    def _of(self, project_id: str) -> list[Route]:
        return [each for each in self.by_id.values() if each.project_id == project_id]


class FakeRouteChooser(RouteChooser):
    """`stopped` contains the keys of the bots that are stopped."""

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        channels: Channels | None = None,
        subscribers: Subscribers | None = None,
        permissions: Permissions | None = None,
    ) -> None:
        self.stopped: set[str] = set()
        clock = clock or FakeClock()
        channels = channels or FakeChannels(clock=clock)
        super().__init__(
            db=FakeDatabase(),
            channels=channels,
            find_stopped=self._find_stopped,
            subscribers=subscribers or FakeSubscribers(clock=clock, channels=channels),
            permissions=permissions or FakePermissions(clock=clock),
        )

    async def _find_stopped(self, _tx: Tx, keys: Sequence[str]) -> dict[str, bool]:
        return {key: True for key in keys if key in self.stopped}
