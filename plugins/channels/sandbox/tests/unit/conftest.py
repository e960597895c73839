"""A messenger with two people, of whom Anna has started the bot `shop`."""

from collections.abc import AsyncIterator

import pytest

from msgsvc_core.channels import OutgoingMessage, Update
from msgsvc_devkit import MemoryCore, memory_core
from msgsvc_sandbox import store
from msgsvc_sandbox.mailbox import Mailbox
from msgsvc_sandbox.models import NewPerson
from msgsvc_sandbox.service import Messenger

#: The bot `shop` is in the sandbox, and one is elsewhere.
BOTS = {"shop": {"plugin": "sandbox"}, "other": {"plugin": "recording"}}


@pytest.fixture
async def core() -> AsyncIterator[MemoryCore]:
    async with memory_core(plugins=["sandbox"], channels=BOTS) as core:
        async with core.db.transaction() as tx:
            for person_id, name in (("per_anna", "Anna"), ("per_boris", "Boris")):
                await store.add_person(tx, person_id, NewPerson(name=name), 0)
            await store.open_chat(tx, "per_anna", "shop")
        yield core


@pytest.fixture
def messenger(core: MemoryCore) -> Messenger:
    return core.get(Messenger)


@pytest.fixture
def mailbox(core: MemoryCore) -> Mailbox:
    return core.get(Mailbox)


@pytest.fixture
async def asked(mailbox: Mailbox) -> str:
    """The `ref` of a message that the bot has sent Anna."""
    return await mailbox.add("shop", "per_anna", OutgoingMessage("How many?"))


@pytest.fixture
def received(core: MemoryCore, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Update]]:
    """The updates that the core was told of, each with its channel."""
    told: list[tuple[str, Update]] = []

    async def receive(channel: str, update: Update) -> None:
        told.append((channel, update))

    monkeypatch.setattr(core.channels, "receive", receive)
    return told
