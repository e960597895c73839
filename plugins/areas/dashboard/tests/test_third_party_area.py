"""Pages of the dashboard show what a plugin of others declares, without a line in the dashboard."""

from collections.abc import AsyncIterator, Sequence
from typing import Annotated

import pytest
from pydantic import Field

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Endpoint, ResponseModel, Router
from msgsvc_core.config.sections import OWN_USERS, LimitTitle, Section
from msgsvc_core.config.settings import SettingsSection
from msgsvc_core.dashboard import FirstStep, Pages
from msgsvc_core.events import EventSpec
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_dashboard import plugin as dashboard
from msgsvc_devkit.dashboard import Visitor, visitor
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.subscribing import subscribing


class StockSettings(Section):
    """The section `[stock]`."""

    shelves: Annotated[int, LimitTitle(lambda _: _("Shelves of a shop"))] = Field(
        7, description="Shelves.", json_schema_extra={OWN_USERS: 70}
    )


class Counted(ResponseModel):
    """Fields of `stock.counted`, and the answer of the endpoint."""

    items: int = Field(description="How many there are.", examples=[3])


router = Router("stock", description="What is on the shelves.", key_purpose="send")


@router.get("/v1/stock")
async def count_stock(ctx: Context) -> Counted:
    """Counts the stock."""
    return Counted(items=3)


class StockPlugin:
    """A plugin of others."""

    @hookimpl
    def register_settings(self) -> SettingsSection:
        return SettingsSection("stock", StockSettings)

    @hookimpl
    def register_endpoints(self) -> Sequence[Endpoint]:
        return router.endpoints

    @hookimpl
    def register_events(self) -> Sequence[EventSpec]:
        return [
            EventSpec("stock.counted", "It was counted.", Counted, of_subscriber=False),
            EventSpec(
                "stock.bought",
                "A subscriber bought something.",
                Counted,
                title=lambda _, _data: _("Went shopping"),
                detail=lambda _, data: _("{count} pieces", count=data["items"]),
            ),
        ]

    @hookimpl
    def register_dashboard(self) -> Sequence[Pages]:
        step = FirstStep(
            lambda _: _("Count your stock"),
            lambda _: _("Nobody buys what you have not counted."),
            event="stock.counted",
            path="/keys",
            action=lambda _: _("Count"),
        )
        return [Pages("stock", package="msgsvc_dashboard.overview", first_steps=[step])]


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(extra_plugins=[("stock", StockPlugin()), ("dashboard", dashboard)])


@pytest.fixture
async def owner(service: Service) -> AsyncIterator[Visitor]:
    project = await service.projects.create("Shop")
    found = await visitor(service, project.project_id)
    yield found
    await found.client.aclose()


async def test_its_limit_has_its_title(owner: Visitor) -> None:
    settings = await owner.get("/settings")

    assert "Shelves of a shop" in settings.text


async def test_its_area_is_in_the_preset_of_its_purpose(owner: Visitor) -> None:
    form = await owner.get("/keys/new")

    assert "<code>messages</code> <code>files</code> <code>stock</code>" in form.text


async def test_its_first_step_is_done_once_its_event_has_happened(
    service: Service, owner: Visitor
) -> None:
    before = await owner.get("")
    async with service.db.transaction() as tx:
        await service.events.emit(tx, owner.project_id, "stock.counted", {"items": 3})
    after = await owner.get("")

    assert "Count your stock" in before.text
    assert before.text.count('class="done"') + 1 == after.text.count('class="done"')


async def test_its_event_is_in_a_history_with_its_title_and_its_detail(
    service: Service, tenant: Tenant
) -> None:
    ann = await subscribing(service, tenant)("Ann")
    async with service.db.transaction() as tx:
        subscriber = await service.subscribers.get(tx, tenant.project.project_id, ann)
        await service.events.emit(
            tx, tenant.project.project_id, "stock.bought", {"items": 3}, subscriber=subscriber
        )
    member = await visitor(service, tenant.project.project_id)
    history = await member.get(f"/subscribers/{ann}")
    await member.client.aclose()

    assert "<strong>Went shopping</strong>" in history.text
    assert '<span class="told">3 pieces</span>' in history.text
