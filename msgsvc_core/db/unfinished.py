"""Whether a database is an unfinished copy. Services check it when they start, without `copying`, which loads
SQLAlchemy."""

from msgsvc_core.db.tx import Tx

#: A copy's record in its target: the last key copied of each table, as JSON, and in the row with an empty
#: name the source. The table is dropped when the copy has been compared.
RECORD = "msgsvc_copy"


class UnfinishedCopy(Exception):
    """The database is the target of a copy that was interrupted."""


async def check_finished(tx: Tx) -> None:
    """Raises `UnfinishedCopy` if the database is an unfinished copy."""
    found = await tx.fetch_val(
        "SELECT to_regclass(:name)::text"
        if tx.dialect == "postgresql"
        else "SELECT name FROM sqlite_master WHERE type = 'table' AND name = :name",
        {"name": RECORD},
    )
    if found is not None:
        raise UnfinishedCopy(
            "the database is a copy that was interrupted: run the same `msgsvc copy` or `msgsvc restore`"
            " again, which continues it"
        )
