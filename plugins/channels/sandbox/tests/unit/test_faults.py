"""The switches."""

import pytest

from msgsvc_core.channels import DeliveryError, Reason
from msgsvc_devkit import MemoryCore
from msgsvc_sandbox.faults import Faults
from msgsvc_sandbox.models import Fault
from msgsvc_sandbox.wakeups import Wakeups


class Naps(list[float]):
    """The seconds that calls took, of which none pass."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


async def test_a_channel_without_switches_takes_no_time(core: MemoryCore) -> None:
    naps = Naps()
    await Faults(core.db, Wakeups(), naps).suffer("shop")

    assert naps == []


async def test_a_slow_channel_fails_after_its_time(core: MemoryCore) -> None:
    naps = Naps()
    faults = Faults(core.db, Wakeups(), naps)
    await faults.set("shop", Fault(reason="rate_limited", retry_after_s=7, delay_s=1.5))
    with pytest.raises(DeliveryError) as refused:
        await faults.suffer("shop")

    assert naps == [1.5]
    assert (refused.value.reason, refused.value.retry_after_s) == (Reason.RATE_LIMITED, 7)


async def test_only_a_429_says_how_long_to_wait(core: MemoryCore) -> None:
    faults = Faults(core.db, Wakeups())
    await faults.set("shop", Fault(reason="platform_unavailable", retry_after_s=7))

    with pytest.raises(DeliveryError) as refused:
        await faults.suffer("shop")
    assert refused.value.retry_after_s is None


async def test_the_last_failure_heals_the_channel_and_tells_every_page(core: MemoryCore) -> None:
    wakeups = Wakeups()
    faults = Faults(core.db, wakeups)
    await faults.set("shop", Fault(reason="unknown", remaining=2))
    with wakeups.expect("per_anna") as changed:
        with pytest.raises(DeliveryError):
            await faults.suffer("shop")
        assert not changed.is_set()
        with pytest.raises(DeliveryError):
            await faults.suffer("shop")

        assert changed.is_set()
    assert await faults.get("shop") == Fault()


class Overtaken(Faults):
    """Another call takes a failure just after this one has seen it."""

    async def get(self, channel: str) -> Fault:
        found = await super().get(channel)
        with pytest.raises(DeliveryError):
            await Faults(self._db, Wakeups(), Naps()).suffer(channel)
        return found


async def test_a_failure_that_another_call_took_does_not_happen_twice(core: MemoryCore) -> None:
    naps = Naps()
    late = Overtaken(core.db, Wakeups(), naps)
    await late.set("shop", Fault(reason="unknown", remaining=1, delay_s=1))
    await late.suffer("shop")

    assert naps == []
    assert await Faults(core.db, Wakeups()).get("shop") == Fault()


async def test_a_switch_is_seen_by_every_page(core: MemoryCore) -> None:
    wakeups = Wakeups()
    faults = Faults(core.db, wakeups)
    with wakeups.expect("per_anna") as changed:
        await faults.set("shop", Fault(reason="unknown", delay_s=0.25))

        assert changed.is_set()
    assert await faults.get("shop") == Fault(reason="unknown", delay_s=0.25)
