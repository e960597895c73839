"""`msgsvc explain` on real databases: a delivery by its id, and the webhooks that an event went to."""

from typing import Any

import pytest

from msgsvc_core.service import Service
from msgsvc_devkit import settled

pytestmark = pytest.mark.parametrize("backend", ["sqlite", "postgresql"], indirect=True)


@pytest.mark.both_databases
async def test_a_delivery_is_explained_by_its_id_alone(
    service: Service, add_webhook: Any, receiver: Any, emit: Any
) -> None:
    receiver.then(receiver.answer(404))
    webhook = await add_webhook()
    event = await emit()
    await settled(service)
    delivery_id = receiver.received[0].headers["X-Service-Delivery-Id"]
    [explainer] = [each for each in service.explainers() if each.prefix == "whd"]
    async with service.db.read() as tx:
        found = await explainer.explain(tx, delivery_id)
        assert explainer.follow_events is not None
        told = await explainer.follow_events(tx, event.project_id, [event.event_id])
        nothing = await explainer.explain(tx, "whd_0000000000000000000000")

    assert found is not None
    assert found.summary.startswith(
        "Failed at 2026-01-15 12:00:00 UTC, after one attempt: HTTP 404"
    )
    assert found.facts["webhook_id"] == webhook["webhook_id"]
    assert [entry.text for entry in told] == [
        f"webhook {webhook['webhook_id']}: failed, {delivery_id}"
    ]
    assert nothing is None
