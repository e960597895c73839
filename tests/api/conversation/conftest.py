"""Two people, and two projects beside each other on one shared bot."""

from collections.abc import Awaitable, Callable

import pytest

from msgsvc_core.channels import Capabilities, ChannelUser
from msgsvc_core.service import Service
from msgsvc_devkit import RecordingChannel
from msgsvc_devkit.fixtures import Tenant
from tests.api.conversation.people import Talker


@pytest.fixture
def ann(service: Service) -> Talker:
    return Talker(service, ChannelUser("1001", "Ann", "ann_k", "en"))


@pytest.fixture
def boris(service: Service) -> Talker:
    """Whose messenger is Russian."""
    return Talker(service, ChannelUser("1002", "Борис", None, "ru-RU"))


@pytest.fixture
async def news(service: Service, make_tenant: Callable[..., Awaitable[Tenant]]) -> Tenant:
    """Another project on the same bot; `tenant` is `Shop`."""
    return await make_tenant(service, "News")


@pytest.fixture
def without_buttons(channel: RecordingChannel) -> None:
    """The messenger has neither buttons nor edits."""
    channel.capabilities = Capabilities(buttons="words", edit=False)
