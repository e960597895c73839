"""The switches, built from a fake database."""

from typing import Any

import pytest

from msgsvc_core.channels import DeliveryError, Reason
from msgsvc_sandbox.faults import Faults
from msgsvc_sandbox.models import Fault
from msgsvc_sandbox.wakeups import Wakeups

from .rows import tables


class Naps(list[float]):
    """The seconds that calls took, of which none pass."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


def switched(**fields: Any) -> list[dict[str, Any]]:
    return [{"reason": None, "retry_after_s": 5, "delay_ms": 0, "remaining": None, **fields}]


async def test_a_channel_without_switches_takes_no_time() -> None:
    naps = Naps()
    await Faults(tables(), Wakeups(), naps).suffer("shop")

    assert naps == []


async def test_a_slow_channel_fails_after_its_time() -> None:
    naps, row = Naps(), switched(reason="rate_limited", retry_after_s=7, delay_ms=1500)
    faults = Faults(tables({"FROM sandbox_faults": row}), Wakeups(), naps)
    with pytest.raises(DeliveryError) as refused:
        await faults.suffer("shop")

    assert naps == [1.5]
    assert (refused.value.reason, refused.value.retry_after_s) == (Reason.RATE_LIMITED, 7)


async def test_only_a_429_says_how_long_to_wait() -> None:
    row = switched(reason="platform_unavailable", retry_after_s=7)
    faults = Faults(tables({"FROM sandbox_faults": row}), Wakeups())

    with pytest.raises(DeliveryError) as refused:
        await faults.suffer("shop")
    assert refused.value.retry_after_s is None


async def test_the_last_failure_heals_the_channel_and_tells_every_page() -> None:
    row = switched(reason="unknown", remaining=1)
    db = tables({"UPDATE sandbox_faults": [{"remaining": 0}], "FROM sandbox_faults": row})
    wakeups = Wakeups()
    with wakeups.expect("per_anna") as changed:
        with pytest.raises(DeliveryError):
            await Faults(db, wakeups).suffer("shop")

        assert db.params_of("INTO sandbox_faults")[0]["reason"] is None
        assert changed.is_set()


async def test_a_failure_that_another_call_took_does_not_happen_twice() -> None:
    row = switched(reason="unknown", remaining=1, delay_ms=1000)
    db = tables({"UPDATE sandbox_faults": [], "FROM sandbox_faults": row})
    naps = Naps()
    await Faults(db, Wakeups(), naps).suffer("shop")

    assert naps == []
    assert db.params_of("INTO sandbox_faults") == []


async def test_a_switch_is_seen_by_every_page() -> None:
    db, wakeups = tables(), Wakeups()
    with wakeups.expect("per_anna") as changed:
        await Faults(db, wakeups).set("shop", Fault(reason="unknown", delay_s=0.25))

        assert changed.is_set()
    assert db.params_of("INTO sandbox_faults")[0]["delay_ms"] == 250
