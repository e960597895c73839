"""Databases of tests are what the migrations make, though those of each owner run only once."""

import sqlite3
from contextlib import closing
from pathlib import Path

from msgsvc_core.db import migrate
from msgsvc_core.db.database import sqlite_path
from msgsvc_devkit.databases import PostgresDatabases, SQLiteDatabases
from msgsvc_devkit.images import dumped, shared_images
from msgsvc_devkit.services import migrations_of

Backend = SQLiteDatabases | PostgresDatabases

SOURCES = migrations_of(("webhooks", "otp"))


def statements(url: str) -> list[str]:
    """The script of a database, without the history of its migrations, which has times."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(sqlite_path(url))) as connection:
            script = sorted(connection.iterdump())
    else:
        text = dumped(url, "public.*")
        assert text is not None
        script = text.splitlines()
    return [line for line in script if not ("INSERT INTO" in line and "_migrations" in line)]


async def test_a_database_made_of_scripts_is_the_one_that_all_migrations_make(
    backend: Backend,
) -> None:
    made, migrated = await backend.empty(), await backend.empty()
    if isinstance(backend, PostgresDatabases):
        await shared_images().migrate_postgres(made, SOURCES)
    else:
        await shared_images().copy_to(Path(sqlite_path(made)), SOURCES)
    await migrate(migrated, SOURCES)

    found, expected = statements(made), statements(migrated)
    left = await migrate(made, SOURCES)
    await backend.give_back(made)
    await backend.give_back(migrated)

    assert any("otp_codes" in line for line in expected)
    assert found == expected
    assert left == []
