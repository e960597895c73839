"""Webhooks, their secrets, and the journal of deliveries and attempts.

Times are Unix milliseconds. The journal has no foreign keys: it is written for every event and at
every attempt, and stays until the purge when its webhook is deleted.
"""

import sqlalchemy as sa
from alembic import op

revision = "webhooks_0001"
down_revision = None
phase = "expand"

# Ids sort by creation where they compare byte by byte.
Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Ms = sa.BigInteger


def upgrade() -> None:
    _webhooks()
    _journal()


def _webhooks() -> None:
    op.create_table(
        "webhooks_endpoints",
        sa.Column(
            "project_id",
            Id,
            sa.ForeignKey("core_projects.project_id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("webhook_id", Id, primary_key=True),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("events", sa.Text, nullable=False),
        sa.Column("description", sa.Text),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("updated_at_ms", Ms, nullable=False),
        # Null while it does not fail.
        sa.Column("failing_since_ms", Ms),
        sa.Column("disabled_reason", sa.Text),
        # Since it fails; those shortly after one another count as one.
        sa.Column("failed_deliveries", sa.Integer, nullable=False, server_default="0"),
        sa.Column("failed_delivery_at_ms", Ms),
    )
    op.create_table(
        "webhooks_secrets",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("webhook_id", Id, primary_key=True),
        sa.Column("secret_id", Id, primary_key=True),
        sa.Column("encrypted", sa.Text, nullable=False),
        sa.Column("expires_at_ms", Ms),
        sa.ForeignKeyConstraint(
            ["project_id", "webhook_id"],
            ["webhooks_endpoints.project_id", "webhooks_endpoints.webhook_id"],
            ondelete="CASCADE",
        ),
    )


def _journal() -> None:
    op.create_table(
        "webhooks_deliveries",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("delivery_id", Id, primary_key=True),
        sa.Column("webhook_id", Id, nullable=False),
        sa.Column("event_id", Id, nullable=False),
        sa.Column("event", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("step", sa.Integer, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("first_attempt_at_ms", Ms),
        sa.Column("next_attempt_at_ms", Ms),
        sa.Column("finished_at_ms", Ms),
    )
    of_webhook = ["project_id", "webhook_id"]
    for name, columns in (
        ("webhook", ["delivery_id"]),
        # For replays, and for the list.
        ("event", ["event_id"]),
        ("name", ["event", "delivery_id"]),
    ):
        op.create_index(
            f"webhooks_deliveries_{name}", "webhooks_deliveries", [*of_webhook, *columns]
        )
    # But for `delivered`, which is what becomes of most.
    others = sa.text("status <> 'delivered'")
    op.create_index(
        "webhooks_deliveries_status",
        "webhooks_deliveries",
        [*of_webhook, "status", "delivery_id"],
        sqlite_where=others,
        postgresql_where=others,
    )
    op.create_index("webhooks_deliveries_age", "webhooks_deliveries", ["created_at_ms"])
    op.create_table(
        "webhooks_attempts",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("delivery_id", Id, primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("started_at_ms", Ms, nullable=False),
        sa.Column("duration_ms", sa.Integer, nullable=False),
        sa.Column("status_code", sa.Integer),
        sa.Column("error", sa.Text),
        sa.Column("answer", sa.Text, nullable=False),
    )
    op.create_index("webhooks_attempts_age", "webhooks_attempts", ["started_at_ms"])
