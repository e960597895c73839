"""Databases for what is measured: as durable as those that people keep."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import asyncpg

from msgsvc_core.kernel.ids import new_token
from msgsvc_devkit.databases import postgres_answers, postgres_url

#: What can be measured.
KINDS = ("sqlite", "postgresql")


class Databases:
    """New databases of the `wanted` kinds that are there.

    Not those of the tests, which are told not to wait for the disk.
    """

    def __init__(self, folder: Path, wanted: Sequence[str] = KINDS) -> None:
        self._folder = folder
        self._made: list[str] = []
        there = {"sqlite": True, "postgresql": postgres_answers(postgres_url())}
        self.kinds = [kind for kind in wanted if there[kind]]
        self.missing = [kind for kind in wanted if not there[kind]]

    def new(self, kind: str) -> str:
        """The URL of a new database. Raises RuntimeError if PostgreSQL would not wait for its disk."""
        name = f"msgsvc_bench_{new_token().lower()}"
        if kind == "sqlite":
            return f"sqlite:///{self._folder / name}.db"
        asyncio.run(self._create(name))
        return postgres_url().rpartition("/")[0] + f"/{name}"

    def drop_all(self) -> None:
        asyncio.run(self._drop())

    async def _create(self, name: str) -> None:
        connection = await asyncpg.connect(postgres_url())
        try:
            for setting in ("fsync", "synchronous_commit"):
                if await connection.fetchval(f"SHOW {setting}") != "on":
                    raise RuntimeError(f"PostgreSQL's {setting} is not on: it would lose writes")
            await connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        finally:
            await connection.close()
        self._made.append(name)

    async def _drop(self) -> None:
        if not self._made:
            return
        connection = await asyncpg.connect(postgres_url())
        try:
            for name in self._made:
                await connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        finally:
            await connection.close()
