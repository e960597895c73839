"""`ChannelContract`: tests of the whole contract `msgsvc_core.channels.Channel`, for a plugin to inherit.

    from msgsvc_devkit import ChannelContract, Messenger
    from msgsvc_matrix import plugin

    class TestMatrix(ChannelContract):
        plugin = plugin
        kind = "matrix"

        @pytest.fixture
        async def messenger(self) -> AsyncIterator[Messenger]:
            async with FakeMatrix() as platform:
                yield MatrixMessenger(platform)

Run pytest with `asyncio_mode = "auto"`. Checks excluded by `Capabilities` and `receiving` are skipped, with
that as the reason.
"""

from msgsvc_devkit.conformance.addresses import Addresses
from msgsvc_devkit.conformance.bot_makers import BotMakers
from msgsvc_devkit.conformance.buttons import Buttons
from msgsvc_devkit.conformance.commands import Commands
from msgsvc_devkit.conformance.doubt import Doubt
from msgsvc_devkit.conformance.editing import Changing
from msgsvc_devkit.conformance.failures import Failures
from msgsvc_devkit.conformance.files import Files
from msgsvc_devkit.conformance.life import Life
from msgsvc_devkit.conformance.limits import Limitations
from msgsvc_devkit.conformance.mini_apps import MiniApps
from msgsvc_devkit.conformance.misbehaviour import Misbehaviour
from msgsvc_devkit.conformance.polling import Polling
from msgsvc_devkit.conformance.receiving import Receiving
from msgsvc_devkit.conformance.reports import Reports
from msgsvc_devkit.conformance.sending import Sending
from msgsvc_devkit.conformance.threads import Threads
from msgsvc_devkit.conformance.webhooks import Webhooks


class ReceivingContract(Receiving, Misbehaviour, Files, Polling, Webhooks):
    """Only the part on updates: for a second class of a channel that supports both polling and webhooks."""


class ChannelContract(
    Sending,
    Buttons,
    Changing,
    Failures,
    Doubt,
    Reports,
    Threads,
    MiniApps,
    Commands,
    Life,
    Limitations,
    Addresses,
    BotMakers,
    ReceivingContract,
):
    """The whole contract. Set `plugin` and `kind`, and define the fixture `messenger`."""
