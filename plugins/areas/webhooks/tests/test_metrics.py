"""What `/metrics` says of attempts."""

from typing import Any

from msgsvc_core.service import Service
from msgsvc_devkit import settled


def counted(service: Service) -> dict[str, float | None]:
    """Attempts by outcome."""
    value = service.metrics.registry.get_sample_value
    return {
        outcome: value("msgsvc_webhooks_attempts_total", {"outcome": outcome})
        for outcome in ("delivered", "retried", "failed", "gone")
    }


async def test_attempts_are_counted_by_how_they_end(
    service: Service, add_webhook: Any, receiver: Any, emit: Any, clock: Any
):
    await add_webhook()
    before = counted(service)
    receiver.then(receiver.answer(500))
    await emit()
    await settled(service)
    clock.advance(1)
    await settled(service)
    receiver.then(receiver.answer(400))
    await emit()
    await settled(service)
    receiver.then(receiver.answer(410))
    await emit()
    await settled(service)

    assert set(before.values()) == {0.0}
    assert counted(service) == {"delivered": 1.0, "retried": 1.0, "failed": 1.0, "gone": 1.0}
