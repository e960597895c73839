"""What a process of the service imports when it starts with all that is installed.

Nobody imports this but the process that forks others; see `tests.forking`.
"""

import importlib
from importlib.metadata import entry_points

import tests.forking  # noqa: F401 - what forked processes run

for name in ("msgsvc_core.cli.main", "alembic.command", "uvloop", "aiosqlite", "asyncpg"):
    importlib.import_module(name)
for point in entry_points(group="msgsvc.plugins"):
    importlib.import_module(point.module)
