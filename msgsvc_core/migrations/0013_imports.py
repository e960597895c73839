"""Imports of people: their rows, which go away slice by slice, and what was refused."""

import sqlalchemy as sa
from alembic import op

revision = "core_0013"
down_revision = "core_0012"
phase = "expand"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "core_imports",
        sa.Column(
            "project_id",
            Id,
            sa.ForeignKey("core_projects.project_id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("import_id", Id, primary_key=True),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("dry_run", sa.Boolean, nullable=False),
        # JSON: the columns of the file that are used, and those that are not.
        sa.Column("columns", sa.Text, nullable=False),
        # JSON: what holds for all rows.
        sa.Column("options", sa.Text, nullable=False),
        sa.Column("total", sa.Integer, nullable=False),
        sa.Column("added", sa.Integer, nullable=False),
        sa.Column("updated", sa.Integer, nullable=False),
        sa.Column("unchanged", sa.Integer, nullable=False),
        sa.Column("refused", sa.Integer, nullable=False),
        sa.Column("must_start", sa.Integer, nullable=False),
        sa.Column("error", sa.Text),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("finished_at_ms", sa.BigInteger),
    )
    op.create_index("core_imports_by_age", "core_imports", ["created_at_ms"])
    op.create_table(
        "core_import_slices",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("import_id", Id, primary_key=True),
        # The line of the file with which it begins.
        sa.Column("place", sa.Integer, primary_key=True, autoincrement=False),
        # JSON of rows of the file, encrypted.
        sa.Column("content", sa.Text, nullable=False),
        _of_import(),
    )
    op.create_table(
        "core_import_notes",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("import_id", Id, primary_key=True),
        # The line of the file with which it begins.
        sa.Column("place", sa.Integer, primary_key=True, autoincrement=False),
        # JSON of lines of the report, encrypted.
        sa.Column("content", sa.Text, nullable=False),
        _of_import(),
    )


def _of_import() -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["project_id", "import_id"],
        ["core_imports.project_id", "core_imports.import_id"],
        ondelete="CASCADE",
    )
