"""Hosted pages on which people enter their codes."""

import sqlalchemy as sa
from alembic import op

revision = "otp_0002"
down_revision = "otp_0001"
phase = "expand"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Ms = sa.BigInteger


def upgrade() -> None:
    op.create_table(
        "otp_pages",
        sa.Column("project_id", Id, primary_key=True),
        # Of the page's address, which is not stored, and names no project.
        sa.Column("token_digest", sa.Text, primary_key=True, unique=True),
        # The code that the page was made for, by which the site knows it.
        sa.Column("first_otp_id", Id, nullable=False),
        # The code that the page asks for now: a new one replaces it.
        sa.Column("otp_id", Id, nullable=False),
        sa.Column("return_url", sa.Text, nullable=False),
        sa.Column("lang", sa.Text),
        sa.Column("expires_at_ms", Ms, nullable=False),
        # Of what takes the result to the site; null until the code was right.
        sa.Column("result_digest", sa.Text, unique=True),
        sa.Column("result_taken", sa.Boolean, nullable=False, server_default=sa.false()),
        # Codes are deleted after some days, and with their person.
        sa.ForeignKeyConstraint(
            ["project_id", "otp_id"],
            ["otp_codes.project_id", "otp_codes.otp_id"],
            ondelete="CASCADE",
        ),
    )
    # For the deletion of codes.
    op.create_index("otp_pages_code", "otp_pages", ["project_id", "otp_id"])
