"""Codes by a route: the same code on several channels of one person."""

import sqlalchemy as sa
from alembic import op

revision = "otp_0003"
down_revision = "otp_0002"
phase = "expand"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Ms = sa.BigInteger


def upgrade() -> None:
    # All are null for a code to one channel.
    op.add_column("otp_codes", sa.Column("route_id", Id))
    # JSON: those of the route when the code was asked for.
    op.add_column("otp_codes", sa.Column("steps", sa.Text))
    # The number of the step that it was sent by last, from 0; -1 before the first.
    op.add_column("otp_codes", sa.Column("step", sa.Integer))
    # The encrypted code, while a step may follow.
    op.add_column("otp_codes", sa.Column("sealed", sa.Text))
    op.create_table(
        "otp_recipients",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("otp_id", Id, primary_key=True),
        # All subscribers of the person: their limits are those of the code.
        sa.Column("subscriber_id", Id, primary_key=True),
        # The step by which it was sent to them; null if it was not.
        sa.Column("step", sa.Integer),
        sa.Column("sent_at_ms", Ms),
        sa.Column("reason", sa.Text),
        sa.ForeignKeyConstraint(
            ["project_id", "otp_id"],
            ["otp_codes.project_id", "otp_codes.otp_id"],
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "subscriber_id"],
            ["core_subscribers.project_id", "core_subscribers.subscriber_id"],
            ondelete="CASCADE",
        ),
    )
    op.create_index("otp_recipients_subscriber", "otp_recipients", ["project_id", "subscriber_id"])
