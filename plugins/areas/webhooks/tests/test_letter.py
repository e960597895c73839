"""The defaults go by the letter of the API's contract (decision 0006)."""

from typing import Any

import pytest

from msgsvc_core.service import Service
from msgsvc_devkit import settled
from msgsvc_webhooks.settings import WebhookSettings

LETTER = {"retry_timeouts_and_throttling": False, "disable_failing": False}
pytestmark = pytest.mark.parametrize("service", [LETTER], indirect=True)


def test_they_are_the_defaults(service: Service) -> None:
    defaults = WebhookSettings()

    assert {name: getattr(defaults, name) for name in LETTER} == LETTER


@pytest.mark.shared_service
@pytest.mark.parametrize("status", [404, 408, 410, 425, 429])
async def test_a_4xx_ends_the_delivery_and_moves_no_webhook(
    service: Service,
    client: Any,
    add_webhook: Any,
    receiver: Any,
    emit: Any,
    journal: Any,
    status: int,
):
    receiver.always = receiver.answer(status)
    webhook = await add_webhook()
    await emit()
    await settled(service)
    shown = (await client.get(f"/v1/webhooks/{webhook['webhook_id']}")).json()

    assert [delivery["status"] for delivery in await journal(webhook)] == ["failed"]
    assert len(receiver.received) == 1
    assert shown["status"] == "active"
