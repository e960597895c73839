"""Measurements of large deployments: many projects, webhooks, rows, waiting pages and processes."""

from tests.bench.scale.partitions import partitions
from tests.bench.scale.processes import processes
from tests.bench.scale.projects import projects
from tests.bench.scale.retention import retention
from tests.bench.scale.rows import rows
from tests.bench.scale.sign_in_pages import sign_in_pages
from tests.bench.scale.slow_webhooks import slow_webhooks

__all__ = [
    "partitions",
    "processes",
    "projects",
    "retention",
    "rows",
    "sign_in_pages",
    "slow_webhooks",
]
