"""What a process that serves does not load, because it would hold it in memory for nothing."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from msgsvc_devkit.fakes.secrets import SECRET_KEY

#: Starts and stops the service of the command line, and tells the modules that were loaded.
PROGRAM = """
import asyncio, json, sys
from pathlib import Path
from msgsvc_core.cli.main import app
from msgsvc_core.cli.serve import serve
from msgsvc_core.service import Service
from msgsvc_core.config.settings import load_settings

async def main():
    service = Service(load_settings(Path("msgsvc.toml")))
    service.app
    async with service:
        pass

asyncio.run(main())
print(json.dumps(sorted(sys.modules)))
"""

CONFIG = f"""
secret_keys = ["{SECRET_KEY}"]
plugins = ["sandbox", "auth", "otp", "webhooks"]

[channels.messenger_a]
plugin = "sandbox"
"""


def loaded(folder: Path) -> set[str]:
    """The modules of a process that starts a service on the database of that folder."""
    (folder / "msgsvc.toml").write_text(CONFIG)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a service was started before."""
    made = tmp_path_factory.mktemp("served")
    # Else the other tests would pass with names that nothing ever loads.
    assert {"alembic", "mako", "sqlalchemy.orm"} <= loaded(made)
    return made


@pytest.fixture(scope="module")
def second(folder: Path) -> set[str]:
    return loaded(folder)


@pytest.mark.parametrize("module", ["alembic", "mako", "sqlalchemy"])
def test_a_database_that_is_up_to_date_needs_no(second: set[str], module: str) -> None:
    assert module not in second


@pytest.mark.parametrize(
    ("module", "who_loads_it"),
    [
        ("aiohttp", "msgsvc_webhooks.sender"),
        ("asyncpg", "msgsvc_core.db.postgres_batches"),
        ("databases", "databases.backends.postgres"),
        ("dramatiq", "dramatiq"),
        ("jinja2", "jinja2"),
        ("redis", "msgsvc_core.limits.redis"),
        ("sqlalchemy.dialects.postgresql", "databases.backends.postgres"),
    ],
)
def test_a_service_without_calls_pages_redis_and_postgresql_needs_no(
    second: set[str], module: str, who_loads_it: str
) -> None:
    import_module(who_loads_it)

    assert module in sys.modules
    assert module not in second
