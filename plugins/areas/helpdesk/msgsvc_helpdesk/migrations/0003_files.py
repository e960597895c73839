"""An index by which the messages that a file goes with are found: one that is fetched, or to be removed."""

from alembic import op

revision = "helpdesk_0003"
down_revision = "helpdesk_0002"


def upgrade() -> None:
    op.create_index("helpdesk_entry_files_file", "helpdesk_entry_files", ["project_id", "file_id"])
