"""Steps of migrations say their half, and those that expand do nothing that processes of the earlier release
could not live with (docs/decisions/0108-upgrades-in-two-halves.md)."""

import pytest

from msgsvc_core.config.settings import Settings
from msgsvc_core.db import MigrationSource
from msgsvc_core.db.planning import objections
from msgsvc_core.db.schema import steps_of
from msgsvc_core.db.sql import Dialect
from msgsvc_core.plugins.loading import available_plugins
from msgsvc_core.service import Service
from msgsvc_devkit.fakes.secrets import SECRET_KEY

#: Objections that don't hold, beginning with the step, and why.
ALLOWED: dict[str, str] = {}


def sources() -> list[MigrationSource]:
    """The core's and those of all our plugins."""
    plugins = tuple(
        name for name, point in available_plugins().items() if point.value.startswith("msgsvc_")
    )
    settings = {"secret_keys": (SECRET_KEY,), "channels": {}, "plugins": plugins}
    return Service(Settings.model_validate(settings)).migrations


SOURCES = sources()


@pytest.mark.parametrize("source", SOURCES, ids=[each.owner for each in SOURCES])
def test_each_step_says_its_half_where_it_can_be_read_without_alembic(
    source: MigrationSource,
) -> None:
    steps = source.read_steps()

    assert steps
    assert steps == steps_of(source)
    assert steps[0].phase == "expand", "the first creates the tables"


@pytest.mark.parametrize("dialect", ["postgresql", "sqlite"])
@pytest.mark.parametrize("source", SOURCES, ids=[each.owner for each in SOURCES])
def test_what_expands_does_not_disturb_the_earlier_release(
    source: MigrationSource, dialect: Dialect
) -> None:
    found = list(objections(source, dialect))

    assert [text for text in found if not text.startswith(tuple(ALLOWED))] == []


def test_every_allowance_is_needed() -> None:
    found = [text for source in SOURCES for text in objections(source, "postgresql")]

    assert [start for start in ALLOWED if not any(text.startswith(start) for text in found)] == []
