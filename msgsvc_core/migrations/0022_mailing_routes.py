"""Mailings that are sent by a route: a row of the ledger for each channel of a person."""

import sqlalchemy as sa
from alembic import op

revision = "core_0022"
down_revision = "core_0021"
phase = "expand"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("core_mailings", sa.Column("route_id", Id))
    # JSON: the steps of the route when the mailing was accepted.
    op.add_column("core_mailings", sa.Column("route_steps", sa.Text))
    # The last row of the ledger of which is known whether it is the first of its person.
    op.add_column("core_mailings", sa.Column("chosen_to", Id))
    # The person's `external_id`, which their rows share; null if they are on one channel alone.
    op.add_column("core_recipients", sa.Column("person", Id))
    # The number of the route's step, from 0.
    op.add_column("core_recipients", sa.Column("step", sa.SmallInteger))
    # When the step began, for a recipient who waits for a retry or is at a later step.
    op.add_column("core_recipients", sa.Column("began_ms", sa.BigInteger))
