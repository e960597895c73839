"""The switches: failing in each of seven ways, being slow, asking to wait."""

import pytest

from msgsvc_core.channels import DeliveryError, OutgoingMessage, Reason
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled
from msgsvc_devkit.platforms.sandbox import Sandbox, SandboxPerson
from msgsvc_sandbox.faults import Faults
from msgsvc_sandbox.models import Fault
from msgsvc_sandbox.service import Messenger
from msgsvc_sandbox.wakeups import Wakeups

HELLO = OutgoingMessage("hello")


@pytest.mark.parametrize("reason", list(Reason))
async def test_a_channel_fails_in_each_of_the_seven_ways(
    service: Service, sandbox: Sandbox, anna: SandboxPerson, reason: Reason
) -> None:
    channel = service.channels["messenger_a"]
    await anna.start("messenger_a")
    await settled(service)
    await sandbox.fail("messenger_a", reason.value, retry_after_s=7)

    with pytest.raises(DeliveryError) as sent:
        await channel.send(anna.person_id, HELLO)
    with pytest.raises(DeliveryError) as edited:
        await channel.edit(anna.person_id, "1", HELLO)

    assert sent.value.reason is edited.value.reason is reason
    assert sent.value.retry_after_s == (7 if reason is Reason.RATE_LIMITED else None)


async def test_only_the_switched_channel_fails(
    service: Service, sandbox: Sandbox, anna: SandboxPerson
) -> None:
    await anna.start("messenger_b")
    await sandbox.fail("messenger_a", "unknown")

    await service.channels["messenger_b"].send(anna.person_id, HELLO)


async def test_a_healed_channel_works_again(
    service: Service, sandbox: Sandbox, anna: SandboxPerson
) -> None:
    await anna.start("messenger_a")
    await sandbox.fail("messenger_a", "bot_banned")
    await sandbox.heal("messenger_a")

    await service.channels["messenger_a"].send(anna.person_id, HELLO)


async def test_a_channel_fails_only_so_many_times(
    service: Service, sandbox: Sandbox, anna: SandboxPerson
) -> None:
    channel = service.channels["messenger_a"]
    await anna.start("messenger_a")
    await settled(service)
    await sandbox.fail("messenger_a", "platform_unavailable", times=2)

    for _ in range(2):
        with pytest.raises(DeliveryError):
            await channel.send(anna.person_id, HELLO)
    await channel.send(anna.person_id, HELLO)

    assert await service.get(Messenger).fault("messenger_a") == Fault()


async def test_a_slow_channel_takes_its_time(service: Service) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    faults = Faults(service.db, Wakeups(), sleep)
    await faults.set("messenger_a", Fault(delay_s=2.5))

    await faults.suffer("messenger_a")

    assert slept == [2.5]


@pytest.mark.parametrize("reason", ["bot_banned", "platform_unavailable"])
async def test_a_check_finds_what_concerns_the_whole_bot(
    service: Service, sandbox: Sandbox, reason: str
) -> None:
    channel = service.channels["messenger_a"]
    well = await channel.check()
    await service.get(Messenger).set_fault("messenger_a", Fault.model_validate({"reason": reason}))

    ill = await channel.check()

    assert (well.ok, ill.ok) == (True, False)
    assert reason in ill.detail


async def test_a_reply_arrives_once_the_messenger_lets_it_through(
    service: Service, sandbox: Sandbox, anna: SandboxPerson, clock: FakeClock
) -> None:
    await sandbox.fail("messenger_a", "rate_limited", retry_after_s=30, times=1)
    await anna.start("messenger_a", "echo_1")
    await settled(service)
    held_back = await anna.messages()

    clock.advance(31)

    await anna.wait_for(button="Yes")
    assert held_back == []
