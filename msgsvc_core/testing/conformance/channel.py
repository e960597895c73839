"""`ChannelContract`: every line of `msgsvc_core.channels.Channel`, as checks that a plugin inherits.

    from msgsvc_core.testing import ChannelContract, Messenger
    from msgsvc_matrix import plugin

    class TestMatrix(ChannelContract):
        plugin = plugin
        kind = "matrix"

        @pytest.fixture
        async def messenger(self) -> AsyncIterator[Messenger]:
            async with FakeMatrix() as platform:
                yield MatrixMessenger(platform)

Run pytest with `asyncio_mode = "auto"`. What `Capabilities` and `receiving` exclude is skipped, with
that as the reason.
"""

from msgsvc_core.testing.conformance.buttons import Buttons
from msgsvc_core.testing.conformance.changing import Changing
from msgsvc_core.testing.conformance.commands import Commands
from msgsvc_core.testing.conformance.doubt import Doubt
from msgsvc_core.testing.conformance.failures import Failures
from msgsvc_core.testing.conformance.files import Files
from msgsvc_core.testing.conformance.life import Life
from msgsvc_core.testing.conformance.mini_apps import MiniApps
from msgsvc_core.testing.conformance.polling import Polling
from msgsvc_core.testing.conformance.receiving import Receiving
from msgsvc_core.testing.conformance.sending import Sending
from msgsvc_core.testing.conformance.webhooks import Webhooks


class ReceivingContract(Receiving, Files, Polling, Webhooks):
    """The part on updates alone: for a second class of a channel that polls or is called."""


class ChannelContract(
    Sending, Buttons, Changing, Failures, Doubt, MiniApps, Commands, Life, ReceivingContract
):
    """The whole contract. Set `plugin` and `kind`, and give the fixture `messenger`."""
