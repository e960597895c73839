"""A service with all areas and the dashboard, listening, whose project has one resource of every kind."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from playwright.async_api import BrowserContext, Page

from msgsvc_core.config.settings import Settings
from msgsvc_core.kernel.clock import Clock, SystemClock
from msgsvc_core.server import ConnectionLimits, Server, bind, check_open_files
from msgsvc_core.service import Service
from msgsvc_dashboard.frame.browser import SESSION_COOKIE
from msgsvc_devkit import RecordingPlugin
from msgsvc_devkit.clock import START
from msgsvc_devkit.dashboard import Visitor, stranger, visitor
from msgsvc_devkit.fixtures import Tenant
from msgsvc_devkit.images import shared_images
from msgsvc_devkit.services import SECRET_KEY
from tests.api.resources import MiniAppPlugin, resources_of
from tests.api.subscribing import subscribing
from tests.dashboard.walking import SETTINGS, Walk, at, pages_of
from tests.e2e.windows import NewWindow

DAY_MS = 24 * 3600 * 1000


class ShiftedClock(SystemClock):
    """Runs as the machine's does, from where tests begin: their resources have dates after that."""

    def __init__(self) -> None:
        self._shift_ms = round(START.timestamp() * 1000) - super().now_ms()

    def time(self) -> float:
        return super().time() + self._shift_ms / 1000

    def now_ms(self) -> int:
        return super().now_ms() + self._shift_ms


@dataclass(slots=True)
class Furnished:
    """Where it listens, what is in it, and who is signed in: an owner, and who runs the installation."""

    service: Service
    url: str
    tenant: Tenant
    owner: Visitor
    operator: Visitor
    ids: dict[str, str] = field(default_factory=dict)

    @property
    def walks(self) -> list[Walk]:
        """Every page that can be looked at, with the ids of what is there."""
        project_id = self.tenant.project.project_id
        return [
            at(page, project_id, self.ids)
            for page in pages_of(self.service)
            if page.method == "GET"
        ]

    def who(self, walk: Walk) -> Visitor:
        """Who may open it."""
        return self.operator if walk.page.access == "installation:operate" else self.owner

    async def enter(self, context: BrowserContext, who: Visitor) -> None:
        """Signs a browser in."""
        token = who.client.cookies[SESSION_COOKIE]
        await context.add_cookies([{"name": SESSION_COOKIE, "value": token, "url": self.url}])

    async def open(self, new_window: NewWindow, path: str, *, scripts: bool) -> Page:
        """A page of the project, as its owner has it."""
        page = await new_window(scripts=scripts)
        await self.enter(page.context, self.owner)
        await page.goto(self.url + self.owner.url(path))
        return page


@asynccontextmanager
async def furnished(
    folder: Path,
    name: str = "Pinewood Library",
    *,
    clock: Clock | None = None,
    more: Mapping[str, Any] | None = None,
) -> AsyncIterator[Furnished]:
    """The service runs in this process, so that a test can do what people elsewhere would.

    `more` are channels and plugins that it has besides.
    """
    more = more or {}
    listener = bind("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    settings = Settings.model_validate(
        {
            **SETTINGS,
            "plugins": (*SETTINGS["plugins"], *more.get("plugins", ())),
            "channels": {**SETTINGS["channels"], **more.get("channels", {})},
            "database_url": f"sqlite:///{folder / 'dashboard.db'}",
            "secret_keys": (SECRET_KEY,),
            "base_url": url,
            "limits": {"requests_per_minute": 100_000},
        }
    )
    plugins = [("recording", RecordingPlugin()), ("mini_app", MiniAppPlugin())]
    service = Service(settings, clock=clock or ShiftedClock(), extra_plugins=plugins)
    await shared_images().copy_to(folder / "dashboard.db", service.migrations)
    async with service:
        allowed = check_open_files(settings.server)
        guard = ConnectionLimits(allowed, settings.errors_url, service.metrics)
        server = Server(service.app, guard, signals=False)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            async with _tenant(service, name) as tenant:
                project_id = tenant.project.project_id
                made = Furnished(
                    service,
                    url,
                    tenant,
                    await visitor(service, project_id),
                    await stranger(service, project_id, is_operator=True),
                )
                subscribe = subscribing(service, tenant)
                made.ids = await resources_of(service, tenant, subscribe, "Ann")
                made.ids["account_id"] = made.owner.account_id
                await _history(service, project_id)
                yield made
                await made.owner.client.aclose()
                await made.operator.client.aclose()
        finally:
            server.should_exit = True
            await serving
            listener.close()


@asynccontextmanager
async def _tenant(service: Service, name: str) -> AsyncIterator[Tenant]:
    project = await service.projects.create(name)
    _, secret = await service.projects.create_key(project.project_id, "site", ("*",))
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=service.app),
        base_url="http://msgsvc.test",
        headers={"Authorization": f"Bearer {secret}"},
    ) as client:
        yield Tenant(project, secret, client)


async def _history(service: Service, project_id: str) -> None:
    """A month in which something happened every day."""
    today = service.clock.now_ms() // DAY_MS
    shapes = {
        "delivery.success": (140, 90),
        "delivery.failed": (6, 9),
        "delivery.unknown": (0, 2),
        "auth.completed": (30, 24),
        "subscription.created": (8, 6),
        "subscription.deleted": (1, 2),
        "broadcast.completed": (0, 2),
    }
    async with service.db.transaction() as tx:
        for event, (least, more) in shapes.items():
            for back in range(1, 30):
                count = least + back * back * 7 % (more + 1)
                await tx.insert(
                    "dashboard_counts",
                    {
                        "project_id": project_id,
                        "day": today - back,
                        "event": event,
                        "share": 0,
                        "count": count,
                    },
                )
