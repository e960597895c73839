"""Whether a project may have its data as a file for spreadsheets: its owner's plan says so."""

from typing import TYPE_CHECKING

from msgsvc_core.kernel.errors import Forbidden

if TYPE_CHECKING:
    from msgsvc_core.service import Service


async def check_export(service: "Service", project_id: str) -> None:
    """Raises `Forbidden`, which names the plan. For endpoints that hold no connection."""
    async with service.db.read() as tx:
        plan = await service.accounts.plan_of(tx, await service.accounts.owner_of(tx, project_id))
    if plan is not None and not plan.csv_export:
        raise Forbidden(f"the plan {plan.name!r} has no CSV export; a higher plan has")
