"""What a process that serves does not load, because it would hold it in memory for nothing."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from msgsvc_devkit.services import SECRET_KEY

#: The command, which tells at its end which modules it has loaded.
PROGRAM = """
import atexit, json, sys
from msgsvc_core.__main__ import main

atexit.register(lambda: print(json.dumps(sorted(sys.modules))))
sys.argv = ["msgsvc", "serve", "--port", "0"]
main()
"""

CONFIG = f"""
secret_keys = ["{SECRET_KEY}"]
plugins = ["sandbox", "auth", "otp", "webhooks"]

[channels.messenger_a]
plugin = "sandbox"
"""


def loaded(folder: Path) -> set[str]:
    """The modules of `msgsvc serve` on the database of that folder."""
    (folder / "msgsvc.toml").write_text(CONFIG)
    log = folder / "server.log"
    with log.open("w") as errors:
        serving = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    assert serving.stdout
    for line in serving.stdout:
        if line.startswith("Ctrl-C"):
            break
    serving.terminate()
    rest, _ = serving.communicate()
    assert serving.returncode == 0, log.read_text()
    return set(json.loads(rest.splitlines()[-1]))


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
        ("aiohttp", "msgsvc_devkit.webhooks"),
        ("asyncpg", "msgsvc_core.db.postgres_batches"),
        ("databases", "databases.backends.postgres"),
        ("dramatiq", "dramatiq"),
        ("greenlet", "greenlet"),
        ("jinja2", "jinja2"),
        ("opentelemetry", "msgsvc_core.telemetry.otel"),
        ("redis", "msgsvc_core.limits.redis"),
        ("rich", "rich"),
        ("sqlalchemy.dialects.postgresql", "databases.backends.postgres"),
    ],
)
def test_a_service_without_calls_pages_redis_and_postgresql_needs_no(
    second: set[str], module: str, who_loads_it: str
) -> None:
    import_module(who_loads_it)

    assert module in sys.modules
    assert module not in second
