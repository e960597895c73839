"""Records a release: `python -m tests.upgrades.record NAME`, once, when `releases.toml` has it.

The release's own code makes a database on SQLite and one on PostgreSQL and fills each through its API. Into
`recorded/NAME` go both databases, as SQLite's file and as SQL; what a program keeps that uses the service
(keys, ids, codes); and what the release answers to every GET.
"""

import argparse
import asyncio
import gzip
import json
import re
import shutil
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2

from msgsvc_devkit.databases import PostgresDatabases, postgres_url
from tests.paths import by_kind
from tests.upgrades import answers, filling
from tests.upgrades.releases import Installed, Release, releases

#: Writes a database that is not in use to a file.
Keep = Callable[[str, Path], None]


def record(release: Release, folder: Path) -> None:
    installed = release.unpack(folder / "release")
    release.recorded.mkdir(parents=True, exist_ok=True)
    databases = PostgresDatabases(postgres_url())
    url = asyncio.run(databases.empty())
    try:
        _record(installed, folder / "postgresql", url, _keep_postgres, release.recorded)
    finally:
        asyncio.run(databases.drop_all())
    url = f"sqlite:///{folder / 'sqlite.db'}"
    _record(installed, folder / "sqlite", url, _keep_sqlite, release.recorded)


def _record(installed: Installed, folder: Path, url: str, keep: Keep, recorded: Path) -> None:
    folder.mkdir()
    deployment = installed.deployment(folder)
    deployment.configure(filling.CONFIGURATION, url)
    deployment.run("migrate")
    project = json.loads(deployment.run("project", "create", "Shop", "--json"))["project_id"]
    key = json.loads(deployment.run("key", "create", project, "--json"))["key"]
    owner = ("account", "create", "owner@shop.example", "--name", "Olga Owner", "--operator")
    deployment.run(*owner)
    deployment.run("project", "give", project, "owner@shop.example")
    with (
        deployment.serving() as server,
        httpx2.Client(
            base_url=server.url, headers={"Authorization": f"Bearer {key}"}, timeout=60
        ) as client,
    ):
        made = filling.fill(client, project, key)
    moment_ms = time.time_ns() // 1_000_000
    keep(url, recorded / folder.name)

    document = json.loads((installed.code / "contrib" / "openapi.json").read_text("utf-8"))
    asked, answered = folder / "asked.json", folder / "answers.json"
    document["paths"] = {by_kind(path): each for path, each in document["paths"].items()}
    ids = {**made.ids, "project_id": [project]}
    asked.write_text(json.dumps(answers.paths_of(document, ids)), "utf-8")
    script = Path(answers.__file__)
    deployment.run_script(script, str(moment_ms), key, asked, answered)
    found: dict[str, Any] = {
        "moment_ms": moment_ms,
        **made.as_json(),
        "answers": json.loads(answered.read_text("utf-8")),
    }
    _write(
        recorded / f"{folder.name}.json.gz",
        json.dumps(found, ensure_ascii=False, indent=1).encode(),
    )


def _keep_sqlite(url: str, path: Path) -> None:
    whole = path.with_suffix(".vacuumed")
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        connection.execute("VACUUM INTO ?", (str(whole),))
    _write(path.with_suffix(".db.gz"), whole.read_bytes())
    whole.unlink()


def _keep_postgres(url: str, path: Path) -> None:
    """As statements, which any client runs: psql need not be there where the test is."""
    program = shutil.which("pg_dump")
    assert program is not None, "pg_dump is needed, as new as the server"
    dumped = subprocess.run(
        [program, "--inserts", "--rows-per-insert=100", "--no-owner", "--no-privileges", url],
        check=True,
        capture_output=True,
        text=True,
    )
    # Commands of psql, which newer versions write around it.
    script = re.sub(r"^\\(un)?restrict .*\n", "", dumped.stdout, flags=re.MULTILINE)
    _write(path.with_suffix(".sql.gz"), script.encode())


def _write(path: Path, content: bytes) -> None:
    # The same content makes the same bytes.
    path.write_bytes(gzip.compress(content, mtime=0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=[each.name for each in releases()])
    name = parser.parse_args().name
    [release] = [each for each in releases() if each.name == name]
    with tempfile.TemporaryDirectory() as folder:
        record(release, Path(folder))


if __name__ == "__main__":
    main()
