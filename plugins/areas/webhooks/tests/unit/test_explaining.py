"""Each state of a delivery has its sentence."""

from typing import Any

import pytest

from msgsvc_core.db import Tx
from msgsvc_devkit.core import PROJECT, MemoryCore
from plugins.areas.webhooks.tests.unit.parts import NOW_MS, URL, add_delivery, add_webhook

REFUSED = {
    "project_id": PROJECT,
    "delivery_id": "whd_1",
    "started_at_ms": NOW_MS,
    "duration_ms": 5,
    "status_code": 500,
    "error": "the receiver answered 500",
    "answer": "",
}


@pytest.mark.parametrize(
    ("fields", "attempts", "summary"),
    [
        (
            {},
            [],
            "Waiting: its first attempt is due, and made when a process that runs jobs takes it.",
        ),
        (
            {"attempts": 1, "next_attempt_at_ms": NOW_MS + 30_000},
            [REFUSED],
            (
                "Waiting: its next attempt is at 2026-01-15 12:00:30 UTC (in 30 s); one attempt failed:"
                " HTTP 500, the receiver answered 500."
            ),
        ),
        (
            {"status": "delivered", "attempts": 1, "finished_at_ms": NOW_MS},
            [{**REFUSED, "status_code": 204, "error": None}],
            "Delivered at 2026-01-15 12:00:00 UTC, after one attempt: HTTP 204.",
        ),
        (
            {"status": "failed", "attempts": 2, "finished_at_ms": NOW_MS},
            [REFUSED, {**REFUSED, "status_code": None, "error": "connection refused"}],
            "Failed at 2026-01-15 12:00:00 UTC, after 2 attempts: no response, connection refused.",
        ),
        (
            {"status": "cancelled", "finished_at_ms": NOW_MS},
            [],
            "Cancelled at 2026-01-15 12:00:00 UTC: its webhook was disabled.",
        ),
    ],
)
async def test_each_state_of_a_delivery_has_its_sentence(
    core: MemoryCore, tx: Tx, fields: dict[str, Any], attempts: list[dict[str, Any]], summary: str
) -> None:
    webhook = await add_webhook(core, tx)
    await add_delivery(
        core, tx, webhook, delivery_id="whd_1", **{"next_attempt_at_ms": None, **fields}
    )
    for number, attempt in enumerate(attempts, 1):
        await tx.insert("webhooks_attempts", {**attempt, "number": number})
    [explainer] = [each for each in core.service.explainers() if each.prefix == "whd"]
    found = await explainer.explain(tx, "whd_1")

    assert found is not None
    assert found.summary == summary
    assert found.facts["url"] == URL
    assert len([entry for entry in found.timeline if "attempt " in entry.text]) >= len(attempts)
