"""The frame: who is signed in, whether they may, and forms that other sites make."""

from typing import Any

from msgsvc_dashboard import plugin
from msgsvc_devkit.dashboard import visitor
from msgsvc_devkit.fixtures import ServiceFactory

WITH_DASHBOARD: dict[str, Any] = {"extra_plugins": [("dashboard", plugin)]}


async def test_a_member_sees_the_overview_and_nobody_else_does(
    make_service: ServiceFactory,
) -> None:
    service = await make_service(**WITH_DASHBOARD)
    project = await service.projects.create("Shop")
    other = await service.projects.create("Other")
    agent = await visitor(service, project.project_id, "agent")

    seen = await agent.get("")
    hidden = await agent.get(f"/dashboard/projects/{other.project_id}")

    assert seen.status_code == 200
    assert hidden.status_code == 404
