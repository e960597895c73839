"""Variants of mailings: who gets which, the stage of an experiment, and its winner."""

import sqlalchemy as sa
from alembic import op

revision = "core_0007"
down_revision = "core_0006"
phase = "expand"


def upgrade() -> None:
    # JSON: the variants, and how one of them wins; null for a mailing without variants.
    op.add_column("core_mailings", sa.Column("experiment", sa.Text))
    # `test`, `waiting` or `rest`; null if all recipients get the variants, or there are none.
    op.add_column("core_mailings", sa.Column("stage", sa.Text))
    op.add_column("core_mailings", sa.Column("tested_at_ms", sa.BigInteger))
    # The number of the variant, from 0.
    op.add_column("core_mailings", sa.Column("winner", sa.Integer))
    # JSON: who chose the winner, when and why.
    op.add_column("core_mailings", sa.Column("decision", sa.Text))
    # The number of the variant that a recipient gets; null for the winner, or the only message.
    op.add_column("core_recipients", sa.Column("variant", sa.SmallInteger))
    # Whether a shard walks for the second time, to those who get the winner.
    op.add_column(
        "core_mailing_ways",
        sa.Column("is_rest", sa.Boolean, nullable=False, server_default=sa.false()),
    )
