"""A fake homeserver, and a channel that talks to it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from msgsvc_core.channels import Channel, DeliveryError, Update
from msgsvc_core.config.settings import Settings
from msgsvc_core.kernel.clock import SystemClock
from msgsvc_core.service import Service
from msgsvc_devkit.platforms.matrix import FakeMatrix, Person
from msgsvc_devkit.services import SECRET_KEY
from msgsvc_matrix import plugin

ChannelFactory = Callable[..., Channel]


@pytest.fixture
async def homeserver() -> AsyncIterator[FakeMatrix]:
    async with FakeMatrix() as homeserver:
        yield homeserver


@pytest.fixture
async def make_channel(homeserver: FakeMatrix) -> AsyncIterator[ChannelFactory]:
    """A channel of a service that is not started: nothing else talks to the fake."""
    async with AsyncExitStack() as stack:

        def make(**options: Any) -> Channel:
            values = {
                "secret_keys": (SECRET_KEY,),
                "plugins": (),
                "channels": {"messenger_a": {**homeserver.settings, **options}},
                "media": {"allow_http": True, "allow_cidrs": ["127.0.0.0/8"]},
            }
            service = Service(
                Settings.model_validate(values),
                clock=SystemClock(),
                extra_plugins=[("matrix", plugin)],
            )
            stack.push_async_callback(service.media.close)
            channel = service.channels["messenger_a"]
            stack.push_async_callback(channel.close)
            return channel

        yield make


@pytest.fixture
def channel(make_channel: ChannelFactory) -> Channel:
    return make_channel()


@pytest.fixture
def ann(homeserver: FakeMatrix) -> Person:
    return homeserver.person("Ann")


class Reader:
    """Polls a channel as the core does."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.cursor: str | None = None

    async def take(self) -> list[Update]:
        """The updates of one poll, which has to find something new."""
        polled = await self.channel.poll_updates(self.cursor)
        self.cursor = polled.cursor
        return list(polled.updates)


@pytest.fixture
def reader(channel: Channel) -> Reader:
    return Reader(channel)


async def failure_of(call: Awaitable[Any]) -> DeliveryError:
    """The error of a call that must fail."""
    with pytest.raises(DeliveryError) as caught:
        await call
    return caught.value
