"""The plugin's objects on a database in memory, and a receiver that answers as a test says."""

from collections.abc import AsyncIterator

import pytest

from msgsvc_devkit.core import MemoryCore, memory_core
from msgsvc_webhooks.service import Webhooks
from plugins.areas.webhooks.tests.unit.parts import ScriptedReceiver


@pytest.fixture
async def core(request: pytest.FixtureRequest) -> AsyncIterator[MemoryCore]:
    """With the settings of `[webhooks]` that an indirect parameter has."""
    settings = getattr(request, "param", {})
    async with memory_core(plugins=["webhooks"], webhooks=settings) as core:
        yield core


@pytest.fixture
def receiver(core: MemoryCore, monkeypatch: pytest.MonkeyPatch) -> ScriptedReceiver:
    """Called instead of the webhooks' URLs."""
    scripted = ScriptedReceiver()
    monkeypatch.setattr(core.get(Webhooks), "send", scripted.send)
    return scripted
