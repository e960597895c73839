"""A sign-in by address."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from msgsvc_auth.addressed import AddressedSignIns
from msgsvc_auth.models import CreateSessionBody
from msgsvc_core.channels import Capabilities
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import RateLimitProject, ValidationFailed
from msgsvc_devkit import MemoryCore, memory_core
from msgsvc_devkit.core import PROJECT


@pytest.fixture
async def core() -> AsyncIterator[MemoryCore]:
    """With a channel of addresses, `messenger_a`."""
    async with memory_core(plugins=["auth"], auth={"sessions_per_hour": 7}) as core:
        core.recording("messenger_a").capabilities = Capabilities(addresses=True, buttons="pages")
        yield core


async def begin(core: MemoryCore, tx: Tx, address: str, **body: Any) -> None:
    given = CreateSessionBody(address=address, **{"channel": "messenger_a", **body})
    await core.get(AddressedSignIns).open(tx, PROJECT, given)


async def test_a_question_is_sent_to_the_normal_form_of_an_address(
    core: MemoryCore, tx: Tx
) -> None:
    await begin(core, tx, "Ann@Example.com")

    [call] = await core.calls(tx)
    assert (call.call, call.channel, call.chat_id) == ("send", "messenger_a", "ann@example.com")


async def test_the_hour_of_a_mailbox_is_over(core: MemoryCore, tx: Tx) -> None:
    for _ in range(5):
        await begin(core, tx, "ann@example.com")
    await begin(core, tx, "bob@example.com")

    with pytest.raises(RateLimitProject, match="sessions_per_hour_per_recipient"):
        await begin(core, tx, "ANN@example.com")


async def test_an_address_needs_a_channel(core: MemoryCore, tx: Tx) -> None:
    with pytest.raises(ValidationFailed, match="channel: say on which the address is"):
        await begin(core, tx, "a@b.example", channel=None)


async def test_a_blocked_address_is_sent_nothing(core: MemoryCore, tx: Tx) -> None:
    await core.person(tx, user_id="ann@example.com", status="blocked")
    await begin(core, tx, "ann@example.com")

    assert await core.calls(tx) == []
