"""The SQL of what is stored about a subscriber."""

from collections.abc import Mapping
from typing import Any

from msgsvc_core.db import Tx
from msgsvc_core.db.personal_data import PersonalTable


async def rows_of(
    tx: Tx, declared: PersonalTable, params: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The rows of a declared table, with the declared columns."""
    columns = ", ".join(f"t.{column}" for column in declared.columns)
    order = f" ORDER BY {', '.join(f't.{one}' for one in declared.order)}" if declared.order else ""
    needed = {name: value for name, value in params.items() if f":{name}" in declared.where}
    rows = await tx.fetch_all(
        f"SELECT {columns} FROM {declared.table} t WHERE {declared.where}{order}", needed
    )
    return [{column: row[column] for column in declared.columns} for row in rows]
