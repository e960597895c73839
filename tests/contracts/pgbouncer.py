"""PgBouncer in front of the tests' PostgreSQL, with two connections to the server for everybody."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from msgsvc_devkit.databases import postgres_answers, postgres_url
from msgsvc_devkit.machine import has, missing
from tests.ports import free_ports

#: The user as which it runs if the tests run as root, which it refuses.
UNPRIVILEGED = "nobody"

_CONFIG = """\
[databases]
* = host={host} port={port} user={user}{password}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own_port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = {size}
"""


@asynccontextmanager
async def pgbouncer(folder: Path, mode: str, *, size: int = 2) -> AsyncIterator[int]:
    """Its port, once it answers. The database of a URL is passed on. Skips the test without PgBouncer."""
    if not has("pgbouncer"):
        missing("pgbouncer", "there is no PgBouncer")
    parts = urlsplit(postgres_url())
    port = free_ports()
    config = folder / "pgbouncer.ini"
    config.write_text(
        _CONFIG.format(
            host=parts.hostname,
            port=parts.port or 5432,
            user=unquote(parts.username or "postgres"),
            password=f" password='{unquote(parts.password)}'" if parts.password else "",
            own_port=port,
            mode=mode,
            size=size,
        )
    )
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    assert program is not None
    as_user = ["-u", UNPRIVILEGED] if os.geteuid() == 0 else []
    process = await asyncio.create_subprocess_exec(program, "-q", *as_user, config)
    try:
        async with asyncio.timeout(60):
            while not await asyncio.to_thread(postgres_answers, through(postgres_url(), port)):
                assert process.returncode is None, "PgBouncer has ended"
                await asyncio.sleep(0.05)
        yield port
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def through(url: str, port: int) -> str:
    """The URL of the same database over PgBouncer."""
    name = urlsplit(url).path
    return urlunsplit(("postgresql", f"somebody@127.0.0.1:{port}", name, "", ""))
