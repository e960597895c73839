"""Steps of migrations say their half, and those that expand do nothing that processes of the earlier release
could not live with (docs/decisions/0004-migrations-per-owner.md)."""

from functools import cache

from msgsvc_core.config.settings import Settings
from msgsvc_core.db import MigrationSource
from msgsvc_core.db.planning import objections
from msgsvc_core.db.schema import steps_of
from msgsvc_core.db.sql import Dialect
from msgsvc_core.plugins.loading import available_plugins
from msgsvc_core.service import Service
from msgsvc_devkit.services import SECRET_KEY
from tests.architecture.tree import assert_none

#: Objections that don't hold, beginning with the step, and why.
ALLOWED: dict[str, str] = {}


@cache
def sources() -> list[MigrationSource]:
    """The core's and those of all our plugins."""
    plugins = tuple(
        name for name, point in available_plugins().items() if point.value.startswith("msgsvc_")
    )
    settings = {"secret_keys": (SECRET_KEY,), "channels": {}, "plugins": plugins}
    return Service(Settings.model_validate(settings)).migrations


@cache
def found_objections(dialect: Dialect) -> tuple[str, ...]:
    return tuple(text for source in sources() for text in objections(source, dialect))


def test_each_step_says_its_half_where_it_can_be_read_without_alembic() -> None:
    wrong = []
    for source in sources():
        steps = source.read_steps()
        if not steps or steps != steps_of(source):
            wrong.append(f"{source.owner}: its steps can't be read without Alembic")
        elif steps[0].phase != "expand":
            wrong.append(f"{source.owner}: the first step creates the tables, and must expand")

    assert len(sources()) > 10
    assert_none(wrong)


def test_what_expands_does_not_disturb_the_earlier_release() -> None:
    on_sqlite, on_postgresql = found_objections("sqlite"), found_objections("postgresql")
    allowed = tuple(ALLOWED)

    assert_none(text for text in on_sqlite if not text.startswith(allowed))
    assert_none(text for text in on_postgresql if not text.startswith(allowed))


def test_every_allowance_is_needed() -> None:
    found = found_objections("postgresql")

    assert_none(start for start in ALLOWED if not any(text.startswith(start) for text in found))
