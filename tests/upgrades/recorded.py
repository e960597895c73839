"""A recorded release's database, made anew for a test, and what was noted of it."""

import gzip
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg

from msgsvc_devkit.databases import PostgresDatabases, SQLiteDatabases
from tests.upgrades.releases import Release


@dataclass(frozen=True, slots=True)
class Recorded:
    """`moment` is when the release stopped using the database, `answers` are by path: see `answers.ask`."""

    release: Release
    moment: datetime
    project_id: str
    key: str
    ids: dict[str, list[str]]
    secrets: dict[str, str]
    answers: dict[str, Any]


def read_recorded(release: Release, database: str) -> Recorded:
    """What was noted of a release's database, `sqlite` or `postgresql`."""
    noted: dict[str, Any] = json.loads(_content(release.recorded / f"{database}.json.gz"))
    moment = datetime.fromtimestamp(noted.pop("moment_ms") / 1000, UTC)
    return Recorded(release, moment, **noted)


async def recorded_database(
    release: Release, backend: SQLiteDatabases | PostgresDatabases, folder: Path
) -> str:
    """The URL of a copy of a release's database."""
    if backend.name == "sqlite":
        path = folder / "recorded.db"
        path.write_bytes(_content(release.recorded / "sqlite.db.gz"))
        return f"sqlite:///{path}"
    url = await backend.empty()
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(_content(release.recorded / "postgresql.sql.gz").decode())
    finally:
        await connection.close()
    return url


def _content(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes())
