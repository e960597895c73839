"""Owners of tables whose migrations a test writes."""

from pathlib import Path

from msgsvc_core.db import MigrationSource
from msgsvc_core.plugins.hookspecs import hookimpl

SCRIPT = '''
"""A step of a test."""
from alembic import op
import sqlalchemy as sa

revision = "{owner}_{number:04}"
down_revision = {before!r}
phase = "{phase}"


def upgrade() -> None:
    {body}
'''

TABLE = 'op.create_table("{owner}_things_{number}", sa.Column("id", sa.Integer, primary_key=True))'

#: A further column of the first table.
COLUMN = 'op.add_column("{owner}_things_1", sa.Column("name", sa.Text))'

#: A table that needs one of the core's.
REFERENCE = """op.create_table(
        "{owner}_things_{number}",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("project_id", sa.Text, sa.ForeignKey("core_projects.project_id")),
    )"""


class Owner:
    """An owner whose scripts a test writes one by one."""

    def __init__(self, name: str, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.source = MigrationSource(name, folder)
        self._count = 0

    def write(self, body: str = TABLE, phase: str = "expand") -> None:
        self._count += 1
        name, number = self.source.owner, self._count
        script = SCRIPT.format(
            owner=name,
            number=number,
            before=f"{name}_{number - 1:04}" if number > 1 else None,
            phase=phase,
            body=body.format(owner=name, number=number),
        )
        (self.source.folder / f"{number:04}_step.py").write_text(script)

    def rewrite(self, body: str = TABLE) -> None:
        """Mends the last script."""
        self._count -= 1
        self.write(body)


class Shop:
    """A plugin that has tables."""

    def __init__(self, source: MigrationSource) -> None:
        self._source = source

    @hookimpl
    def register_migrations(self) -> MigrationSource:
        return self._source


def as_of(owner: Owner, steps: int, folder: Path) -> MigrationSource:
    """The owner in an earlier release, which had only the first steps; its scripts are put into `folder`."""
    folder.mkdir()
    for script in sorted(owner.source.folder.glob("*.py"))[:steps]:
        (folder / script.name).write_text(script.read_text())
    return MigrationSource(owner.source.owner, folder)
