"""Connects a service to its database, if the schema is one that its code can work with."""

from collections.abc import Awaitable, Callable, Sequence

import structlog

from msgsvc_core.db.database import Database
from msgsvc_core.db.errors import MigrationRefused
from msgsvc_core.db.revisions import MigrationSource, Phase
from msgsvc_core.db.unfinished import check_finished
from msgsvc_core.db.upgrading import read_schema_in

log = structlog.get_logger(__name__)

#: Applies the migrations, or one half of them; returns the names of those that were applied.
Migrate = Callable[[Phase | None], Awaitable[list[str]]]


class MigrationsPending(Exception):
    """The database is older than the code. `msgsvc migrate` brings it up to date."""


async def open_database(
    db: Database, migrations: Sequence[MigrationSource], migrate: Migrate
) -> None:
    """Connects to the database. Raises `MigrationsPending`, `DatabaseTooNew`, `DatabaseUnavailable`, and
    `UnfinishedCopy` if it is a copy that was interrupted.

    SQLite is migrated automatically; PostgreSQL, which other processes may be using, by `msgsvc migrate`.
    Steps that contract may be left, and a newer release may have expanded the database.
    """
    if db.dialect == "sqlite" and not db.is_in_memory:
        await _migrate_file(migrate)
    await db.connect()
    try:
        if db.dialect == "postgresql":
            await _check_schema(db, migrations)
        async with db.read() as tx:
            await check_finished(tx)
    except BaseException:
        await db.disconnect()
        raise


async def _migrate_file(migrate: Migrate) -> None:
    """What contracts is left to a later start if another process has the file open."""
    try:
        await migrate(None)
    except MigrationRefused as refusal:
        await migrate("expand")
        log.warning("contract_refused", error=str(refusal))


async def _check_schema(db: Database, migrations: Sequence[MigrationSource]) -> None:
    """When connected: a migration that contracts now sees this process, or this process what it did."""
    async with db.transaction() as tx:
        schema = await read_schema_in(tx, migrations)
    if needed := [step.name for each in schema for step in each.needed]:
        raise MigrationsPending(
            f"the database lacks {', '.join(needed)}; run `msgsvc migrate` first"
        )
    if later := [step.name for each in schema for step in each.pending]:
        log.info("contract_pending", migrations=later)
    if ahead := [f"{each.owner}:{step.revision}" for each in schema for step in each.ahead]:
        log.warning("database_is_ahead", migrations=ahead)
