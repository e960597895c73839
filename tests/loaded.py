"""What a process of the service imports when it starts with all that is installed.

Nobody imports this but the process that forks others; see `tests.forking`.
"""

import importlib
from importlib.metadata import entry_points

MODULES = (
    "tests.forking",
    "msgsvc_core.cli.main",
    "msgsvc_core.cli.serve",
    "msgsvc_core.cli.worker",
    "alembic.command",
    "uvloop",
    "aiosqlite",
    "asyncpg",
    *(point.module for point in entry_points(group="msgsvc.plugins")),
)

for name in MODULES:
    importlib.import_module(name)
