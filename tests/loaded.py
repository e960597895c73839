"""What a process of the service imports and reads when it starts with all that is installed.

Nobody imports this but the process that forks others; see `tests.forking`.
"""

import gc
import importlib
from importlib.metadata import entry_points

from msgsvc_core.plugins.loading import available_plugins
from msgsvc_core.service import Service
from msgsvc_devkit.memory import MEMORY_URL
from msgsvc_devkit.services import settings_of

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

# Reads translations and the signatures of handlers, and compiles paths, which are kept for the process.
_ = Service(settings_of(sorted(available_plugins()), database_url=MEMORY_URL, channels={})).app
# What has been loaded stays, and a forked process need not copy it to look for garbage.
gc.collect()
gc.freeze()
