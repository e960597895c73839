"""A fake message centre, a fake provider, and channels that use them."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from msgsvc_core.channels import Channel, DeliveryError
from msgsvc_core.config.settings import Settings
from msgsvc_core.db import CORE_MIGRATIONS, Database
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock
from msgsvc_devkit.databases import SQLiteDatabases
from msgsvc_devkit.platforms.sms import FakeSmsCentre, FakeSmsProvider, Person
from msgsvc_devkit.services import SECRET_KEY
from msgsvc_sms import plugin

#: No limits, for tests of other things.
UNLIMITED = dict.fromkeys(
    (
        "number_hour",
        "number_day",
        "prefix_hour",
        "new_numbers_hour",
        "new_numbers_day",
        "project_hour",
        "project_day",
        "segments_day",
    ),
    0,
)

ChannelFactory = Callable[..., Awaitable[Channel]]


@pytest.fixture
async def centre() -> AsyncIterator[FakeSmsCentre]:
    async with FakeSmsCentre() as centre:
        yield centre
        assert not centre.violations, "the client broke the protocol"


@pytest.fixture
async def provider() -> AsyncIterator[FakeSmsProvider]:
    async with FakeSmsProvider() as provider:
        yield provider


@pytest.fixture
async def new_database(databases: dict[str, Any]) -> AsyncIterator[Callable[[], Database]]:
    """Connections to one database, with the tables of the core and of the plugin."""
    sqlite: SQLiteDatabases = databases["sqlite"]
    url = await sqlite.fresh_in_memory([CORE_MIGRATIONS, plugin.register_migrations()])

    def connect() -> Database:
        database = sqlite.connect_to(url)
        assert database is not None
        return database

    yield connect
    await sqlite.give_back(url)


@pytest.fixture
async def make_channel(
    centre: FakeSmsCentre, clock: FakeClock, new_database: Callable[[], Database]
) -> AsyncIterator[ChannelFactory]:
    """A channel of a service that is not started: nothing else talks to the fake."""
    async with AsyncExitStack() as stack:

        async def make(settings: Any = None, **options: Any) -> Channel:
            values = {
                "secret_keys": (SECRET_KEY,),
                "plugins": (),
                "channels": {
                    "messenger_a": {**(settings or centre.settings), **UNLIMITED, **options}
                },
            }
            service = Service(
                Settings.model_validate(values),
                clock=clock,
                extra_plugins=[("sms", plugin)],
                database=new_database(),
            )
            await service.db.connect()
            stack.push_async_callback(service.db.disconnect)
            channel = service.channels["messenger_a"]
            stack.push_async_callback(channel.close)
            return channel

        yield make


@pytest.fixture
async def channel(make_channel: ChannelFactory) -> Channel:
    return await make_channel()


@pytest.fixture
def ann(centre: FakeSmsCentre) -> Person:
    return centre.person("Ann")


async def failure_of(call: Awaitable[Any]) -> DeliveryError:
    """The error of a call that must fail."""
    with pytest.raises(DeliveryError) as caught:
        await call
    return caught.value
