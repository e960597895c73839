"""A fake mail server, and a channel that sends by it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from msgsvc_core.channels import DeliveryError
from msgsvc_core.config.settings import Settings
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock
from msgsvc_devkit.platforms.email import FakeMail, Person
from msgsvc_devkit.services import SECRET_KEY
from msgsvc_email import plugin
from msgsvc_email.channel import EmailChannel

#: Loopback hosts may be fetched from in tests.
MEDIA = {"allow_http": True, "allow_cidrs": ["127.0.0.0/8"]}

BASE_URL = "https://msgsvc.example"

ChannelFactory = Callable[..., Awaitable[EmailChannel]]


@pytest.fixture
async def platform() -> AsyncIterator[FakeMail]:
    async with FakeMail() as platform:
        yield platform


@pytest.fixture
async def make_channel(platform: FakeMail, clock: FakeClock) -> AsyncIterator[ChannelFactory]:
    """A channel of a service that is not started: nothing else talks to the fake."""
    async with AsyncExitStack() as stack:

        async def make(**options: Any) -> EmailChannel:
            values = {
                "secret_keys": (SECRET_KEY,),
                "base_url": BASE_URL,
                "plugins": (),
                "channels": {"messenger_a": {**platform.settings, **options}},
                "media": MEDIA,
            }
            service = Service(
                Settings.model_validate(values), clock=clock, extra_plugins=[("email", plugin)]
            )
            stack.push_async_callback(service.media.close)
            channel = service.channels["messenger_a"]
            stack.push_async_callback(channel.close)
            assert isinstance(channel, EmailChannel)
            return channel

        yield make


@pytest.fixture
async def channel(make_channel: ChannelFactory) -> EmailChannel:
    return await make_channel()


@pytest.fixture
def ann(platform: FakeMail) -> Person:
    return platform.person("Ann")


async def failure_of(call: Awaitable[Any]) -> DeliveryError:
    """The error of a call that must fail."""
    with pytest.raises(DeliveryError) as caught:
        await call
    return caught.value
