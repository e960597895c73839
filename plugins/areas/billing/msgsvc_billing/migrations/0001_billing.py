"""Accounts' credits, the ledger of what was done to them, and what was used on each day.

`granted` and `used` are of this month's allowance, `packs` are credits that stay. `took_allowance` and
`took_packs` are what the last change took: an UPDATE says by them what it found. An account's lines of
the ledger sum to what it has. Times are Unix milliseconds, days are counted from 1970 in UTC.
"""

import sqlalchemy as sa
from alembic import op

revision = "billing_0001"
down_revision = None
phase = "expand"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Count = sa.BigInteger
Ms = sa.BigInteger


def upgrade() -> None:
    op.create_table(
        "billing_accounts",
        sa.Column("account_id", Id, primary_key=True),
        sa.Column("plan", sa.Text, nullable=False),
        sa.Column("anchor_ms", Ms, nullable=False),
        sa.Column("period_started_ms", Ms, nullable=False),
        sa.Column("period_ends_ms", Ms, nullable=False),
        sa.Column("granted", Count, nullable=False),
        sa.Column("used", Count, nullable=False),
        sa.Column("packs", Count, nullable=False),
        sa.Column("took_allowance", Count, nullable=False),
        sa.Column("took_packs", Count, nullable=False),
        sa.Column("exhausted_at_ms", Ms),
        sa.CheckConstraint(
            "packs >= 0 AND used >= 0 AND granted >= 0", name="billing_not_negative"
        ),
    )
    op.create_index("billing_accounts_end", "billing_accounts", ["period_ends_ms"])
    op.create_index(
        "billing_accounts_exhausted",
        "billing_accounts",
        ["exhausted_at_ms"],
        sqlite_where=sa.text("exhausted_at_ms IS NOT NULL"),
        postgresql_where=sa.text("exhausted_at_ms IS NOT NULL"),
    )
    op.create_table(
        "billing_ledger",
        sa.Column("account_id", Id, _account(), primary_key=True),
        sa.Column("entry_id", Id, primary_key=True),
        # Null for what concerns the account: its allowance, packs, plan.
        sa.Column("project_id", Id),
        sa.Column("operation", Id, nullable=False),
        sa.Column("resource_id", Id, nullable=False),
        sa.Column("quantity", Count, nullable=False),
        sa.Column("allowance", Count, nullable=False),
        sa.Column("packs", Count, nullable=False),
        sa.Column("unpaid", Count, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("at_ms", Ms, nullable=False),
        sa.UniqueConstraint("account_id", "operation", "resource_id", name="billing_ledger_once"),
    )
    for name, columns in (
        ("operation", ["account_id", "operation", "entry_id"]),
        ("project", ["account_id", "project_id", "entry_id"]),
        ("both", ["account_id", "project_id", "operation", "entry_id"]),
    ):
        op.create_index(f"billing_ledger_{name}", "billing_ledger", columns)
    op.create_table(
        "billing_usage",
        sa.Column("account_id", Id, _account(), primary_key=True),
        sa.Column("day", sa.Integer, primary_key=True),
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("operation", Id, primary_key=True),
        sa.Column("quantity", Count, nullable=False),
        sa.Column("credits", Count, nullable=False),
    )


def _account() -> sa.ForeignKey:
    return sa.ForeignKey("billing_accounts.account_id", ondelete="CASCADE")
