"""Notes what is charged, in a table without any constraint, so that a charge made twice shows."""

from msgsvc_core.billing import Charge
from msgsvc_core.db import Tx
from msgsvc_core.plugins.hookspecs import hookimpl

TABLE = "CREATE TABLE till_charges (operation TEXT, resource_id TEXT)"


@hookimpl
async def charge(tx: Tx, charge: Charge) -> None:
    await tx.insert(
        "till_charges", {"operation": charge.operation, "resource_id": charge.resource_id}
    )
